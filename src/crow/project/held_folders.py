"""Folders that are held open: no link that is put on the way to one leads anywhere else."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator
from pathlib import PurePath

_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextlib.contextmanager
def held_folder(path: str, *, make: bool = False) -> Generator[int]:
    """A descriptor of a folder, reached step by step without following any link.

    ``path`` is a real path: a step that is a link by now raises ``OSError``. ``make`` creates
    what is missing.
    """
    descriptor = os.open("/", _FOLDER)
    try:
        for step in PurePath(path).parts[1:]:
            below = _enter(step, descriptor, make=make)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def _enter(step: str, descriptor: int, *, make: bool) -> int:
    try:
        return os.open(step, _FOLDER, dir_fd=descriptor)
    except FileNotFoundError:
        if not make:
            raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(step, dir_fd=descriptor)
    return os.open(step, _FOLDER, dir_fd=descriptor)


def replace_in(
    folder: int,
    name: str,
    data: bytes,
    mode: int,
    prepare: Callable[[int], object],
    check: Callable[[], object] = lambda: None,
) -> None:
    """Put a file in its place in a held folder: written beside it, down to the disk, then renamed.

    ``prepare`` is called with its descriptor once it is written, ``check`` before it is renamed.
    Whatever goes wrong, the old file is there, and nothing beside it. Raises ``OSError``.
    """
    with put_in(folder, name) as fresh:
        with os.fdopen(os.open(fresh, _NEW, mode, dir_fd=folder), "wb") as file:
            file.write(data)
            prepare(file.fileno())
            file.flush()
            os.fsync(file.fileno())
        check()


@contextlib.contextmanager
def put_in(folder: int, name: str) -> Generator[str]:
    """A fresh name, to make what takes a name's place: renamed then, or gone where that fails."""
    fresh = f".crow-{os.urandom(6).hex()}.tmp"
    try:
        yield fresh
        os.replace(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(fresh, dir_fd=folder)
        raise
