"""A snapshot of a path, so that a change shows and can be undone; bounded, whatever lies there."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import TypeAlias

from crow.extensions.sandbox.mounts import is_below, real
from crow.project import held_folder, state_directory

_MONTH = 30 * 24 * 3600.0  # seconds
_ENTRIES = 300
_REMOVED = ".crow-removed-"
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_FILE, _ALL = 256 * 1024, 4 * 1024 * 1024  # bytes that are kept
Stamp: TypeAlias = tuple[int, int, int, int]


class Snapshot:
    """A file, a link, or a folder with what is in it; ``with_data`` to be restored."""

    def __init__(self, path: str, *, with_data: bool) -> None:
        self.path = path
        self._stamps = _stamps(path)
        self._data = _data(path, self._stamps) if with_data else None
        self._folder = real(os.path.dirname(path)) if with_data else ""  # noqa: PTH120

    @property
    def was_there(self) -> bool:
        """Whether anything was there."""
        return bool(self._stamps)

    def has_changed(self) -> bool:
        """True where it is not what it was."""
        return _stamps(self.path) != self._stamps

    def restore(self, tops: Iterable[str]) -> bool:
        """Make it as it was, and keep what it is now elsewhere; False where too little is known.

        Nothing is written but below ``tops``, whatever links lead there meanwhile.
        """
        if self._data is None or not is_below(self._folder, tops):
            return False
        with contextlib.suppress(OSError):
            folder = self._clear_way()
            try:
                name = os.path.basename(self.path)  # noqa: PTH119
                if os.path.lexists(f"{self._folder}/{name}") and not _move(
                    folder, name, self._folder
                ):
                    return False
                self._write(folder, name)
            finally:
                os.close(folder)
            return True
        return False

    def _write(self, folder: int, name: str) -> None:
        """All of it, in a folder that is open."""
        opened = {"": folder}
        try:
            for inner, content in (self._data or {}).items():
                above, _, last = inner.rpartition("/")
                mode = stat.S_IMODE(self._stamps[inner][1])
                into = opened[above] if inner else folder
                _make(into, last or name, content, mode)
                if content is None:
                    opened[inner] = os.open(last or name, _FOLDER, dir_fd=into)
        finally:
            for number in {*opened.values()} - {folder}:
                os.close(number)

    def _clear_way(self) -> int:
        """Open the folder again that it was in, and no link to another one."""
        at = os.open("/", _FOLDER)
        try:
            for name in PurePath(self._folder).parts[1:]:
                try:
                    inner = os.open(name, _FOLDER, dir_fd=at)
                except OSError as error:
                    if error.errno != errno.ENOENT:
                        _move(at, name, "")
                    os.mkdir(name, dir_fd=at)
                    inner = os.open(name, _FOLDER, dir_fd=at)
                at, before = inner, at
                os.close(before)
        except BaseException:
            os.close(at)
            raise
        return at


def take_away(path: str, tops: Iterable[str]) -> str:
    """Move something to where nothing looks for it; where it is now, "" where it cannot be moved.

    That is a folder of the user's, or one beside it where that is another disk: nothing is copied.
    What links lead to outside of ``tops``, which are real, stays where it is.
    """
    folder, name = os.path.split(path)
    folder = real(folder)
    if not is_below(folder, tops):
        return ""
    with contextlib.suppress(OSError), held_folder(folder) as number:
        return _move(number, name, folder)
    return ""


def _move(folder: int, name: str, path: str) -> str:
    """Take something out of an open folder, ``path``; where it is now, "" where it cannot be."""
    import secrets
    import tempfile

    kept = state_directory() / "sandbox" / "removed"
    with contextlib.suppress(OSError):
        kept.mkdir(parents=True, exist_ok=True, mode=0o700)
        _sweep(kept)
        place = Path(tempfile.mkdtemp(prefix=_REMOVED, dir=kept))
        try:
            os.rename(name, place / name, src_dir_fd=folder)
            return str(place / name)
        except OSError:
            place.rmdir()
    with contextlib.suppress(OSError):
        beside = f"{_REMOVED}{secrets.token_hex(4)}"
        os.mkdir(beside, 0o700, dir_fd=folder)
        os.rename(name, f"{beside}/{name}", src_dir_fd=folder, dst_dir_fd=folder)
        return f"{path}/{beside}/{name}"
    return ""


def _sweep(kept: Path) -> None:
    """Forget what was taken away a month ago."""
    import shutil

    for place in kept.iterdir():
        if place.lstat().st_mtime < time.time() - _MONTH:
            shutil.rmtree(place, ignore_errors=True)


def _stamps(path: str) -> dict[str, Stamp]:
    """What a change would change, by the name below the path; empty where nothing is."""
    found: dict[str, Stamp] = {}
    left = [""]
    while left and len(found) < _ENTRIES:
        inner = left.pop()
        try:
            found[inner] = mark = _mark(os.lstat(f"{path}{inner}"))
            if stat.S_ISDIR(mark[1]):
                names = sorted(os.listdir(f"{path}{inner}"))  # noqa: PTH208
                left += [f"{inner}/{name}" for name in names]
        except OSError:
            continue
    return found


def _mark(seen: os.stat_result) -> Stamp:
    if stat.S_ISDIR(seen.st_mode):
        return seen.st_ino, seen.st_mode, 0, 0
    return seen.st_ino, seen.st_mode, seen.st_size, seen.st_ctime_ns


def _data(path: str, stamps: dict[str, Stamp]) -> dict[str, bytes | str | None] | None:
    """Contents, targets of links, None for folders; nothing at all where it would be too much."""
    if len(stamps) == _ENTRIES or sum(size for _, _, size, _ in stamps.values()) > _ALL:
        return None
    data: dict[str, bytes | str | None] = {}
    for inner, (_, mode, size, _) in stamps.items():
        whole = f"{path}{inner}"
        try:
            if stat.S_ISDIR(mode):
                data[inner] = None
            elif stat.S_ISLNK(mode):
                data[inner] = os.readlink(whole)  # noqa: PTH115
            elif stat.S_ISREG(mode) and size <= _FILE:
                data[inner] = Path(whole).read_bytes()
            else:
                return None
        except OSError:
            return None
    return data


def _make(folder: int, name: str, content: bytes | str | None, mode: int) -> None:
    if content is None:
        os.mkdir(name, mode, dir_fd=folder)
    elif isinstance(content, str):
        os.symlink(content, name, dir_fd=folder)
    else:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(name, flags, mode, dir_fd=folder), "wb") as file:  # noqa: PTH123
            file.write(content)
