"""Files on disk, opened without following links and replaced whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Generator
from functools import partial
from pathlib import Path

from crow.project.held_folders import held_folder, replace_in
from crow.tools.errors import ToolError

LARGEST = 16 * 1024 * 1024
_IN_PLACE = {errno.EACCES, errno.EPERM, errno.EBUSY, errno.EXDEV, errno.EROFS}

Version = tuple[int, int, int, int]
"""Device, inode, size and time of change: differs when a file was changed or replaced."""


def version_of(status: os.stat_result) -> Version:
    """The version of a file with this status."""
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


@contextlib.contextmanager
def opened(real: str) -> Generator[tuple[int, os.stat_result]]:
    """A regular file, open for reading. Raises ``OSError``, or `ToolError` for anything else."""
    path = Path(real)
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with held_folder(str(path.parent)) as parent:
        descriptor = _open(path.name or ".", flags, parent, real)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise ToolError(f"{real} is a directory. LS lists it.")
        if not stat.S_ISREG(status.st_mode):
            raise ToolError(irregular(real))
        yield descriptor, status
    finally:
        os.close(descriptor)


def _open(name: str, flags: int, parent: int, real: str) -> int:
    try:
        return os.open(name, flags, dir_fd=parent)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket, or a device without a driver
            raise ToolError(irregular(real)) from error
        raise


def irregular(path: str) -> str:
    """The error for what may never end, or block whoever opens it."""
    return f"{path} is no regular file (a device, a pipe or a socket)."


def read_whole(real: str) -> tuple[bytes, os.stat_result] | None:
    """The bytes of a file, and its status; None where there is none.

    Raises ``OSError``, or `ToolError` where it is no regular file or larger than `LARGEST`; files
    that the system makes up, such as those in ``/proc``, do not say how large they are.
    """
    try:
        with opened(real) as (descriptor, status):
            if status.st_size > LARGEST:
                raise ToolError(_too_large(real, status.st_size))
            with os.fdopen(os.dup(descriptor), "rb") as file:
                data = file.read(LARGEST + 1) or b""
    except FileNotFoundError:
        return None
    if len(data) > LARGEST:
        raise ToolError(_too_large(real, len(data)))
    return data, status


def _too_large(real: str, size: int) -> str:
    return (
        f"{real} has {size} bytes, more than fit into one piece ({LARGEST}): "
        "Grep finds places in it, Read with offset and limit shows them."
    )


def demand_writable(real: str) -> None:
    """Raise ``OSError`` where a file cannot be written, or not be made."""
    path = Path(real)
    if path.exists():
        may = os.access(path, os.W_OK)
    else:
        folder = next(parent for parent in path.parents if parent.exists())
        may = os.access(folder, os.W_OK | os.X_OK)
    if not may:
        raise PermissionError(errno.EACCES, "it is read-only")


def demand_searchable(path: str) -> None:
    """Raise `ToolError` for a folder or file that may not be looked into."""
    if not os.access(path, os.R_OK | (os.X_OK if Path(path).is_dir() else 0)):
        raise ToolError(f"{path} cannot be searched: Permission denied.")


def replace_file(real: str, data: bytes, before: os.stat_result | None) -> None:
    """Write a file whole: a temporary file beside it, fsync, rename; its mode is kept.

    ``before`` is the status that it had when it was read, None for a file that is new; raises
    `ToolError` where it has changed since. Raises ``OSError``. Folders are made.
    """
    path = Path(real)
    with held_folder(str(path.parent), make=before is None) as parent:
        _demand_unchanged(path.name, parent, before, real)
        if before is not None and not os.access(path.name, os.W_OK, dir_fd=parent):
            raise PermissionError(errno.EACCES, "it is read-only")
        try:
            keep = partial(_keep_owner_and_mode, before=before)
            check = partial(_demand_unchanged, path.name, parent, before, real)
            replace_in(parent, path.name, data, 0o666, keep, check)
        except OSError as error:
            if before is None or error.errno not in _IN_PLACE:
                raise
            _write_in_place(path.name, parent, data)


def _demand_unchanged(name: str, parent: int, before: os.stat_result | None, real: str) -> None:
    try:
        now = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        if before is None:
            return
        raise ToolError(f"{real} was removed meanwhile. Nothing was written.") from None
    if before is None or version_of(now) != version_of(before):
        raise ToolError(f"{real} was changed meanwhile. Nothing was written: read it again.")


def _keep_owner_and_mode(descriptor: int, before: os.stat_result | None) -> None:
    if before is None:
        return
    mine = os.fstat(descriptor)
    if (mine.st_uid, mine.st_gid) != (before.st_uid, before.st_gid):
        with contextlib.suppress(OSError):
            os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode))


def _write_in_place(name: str, parent: int, data: bytes) -> None:
    """For a file that can be written in a folder that cannot, such as a mounted single file."""
    flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_TRUNC | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, dir_fd=parent), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
