"""How a path was, so that a change shows and can be undone; bounded, whatever lies there."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
import time
from pathlib import Path
from typing import TypeAlias

from crow.project import state_directory

_MONTH = 30 * 24 * 3600.0  # seconds
_ENTRIES = 300
_FILE, _ALL = 256 * 1024, 4 * 1024 * 1024  # bytes that are kept
Stamp: TypeAlias = tuple[int, int, int, int]


class Snapshot:
    """A file, a link, or a folder with what is in it; ``with_data`` to be restored."""

    def __init__(self, path: str, *, with_data: bool) -> None:
        self.path = path
        self._stamps = _stamps(path)
        self._data = _data(path, self._stamps) if with_data else None
        self._folder = os.path.realpath(os.path.dirname(path)) if with_data else ""  # noqa: PTH120

    @property
    def was_there(self) -> bool:
        """Whether anything was there."""
        return bool(self._stamps)

    def has_changed(self) -> bool:
        """True where it is not what it was."""
        return _stamps(self.path) != self._stamps

    def restore(self) -> bool:
        """Make it as it was, and keep what it is now elsewhere; False where too little is known."""
        if self._data is None:
            return False
        if os.path.lexists(self.path):
            take_away(self.path)
        with contextlib.suppress(OSError):
            self._clear_way()
            for inner, content in self._data.items():
                _make(f"{self.path}{inner}", content, stat.S_IMODE(self._stamps[inner][1]))
            return True
        return False

    def _clear_way(self) -> None:
        """Have the folder again that it was in, and no link to another one."""
        folder = Path(self.path).parent
        if str(folder) == self._folder:
            for each in (*reversed(folder.parents), folder):
                if each.is_symlink():
                    take_away(str(each))
        folder.mkdir(parents=True, exist_ok=True)


def take_away(path: str) -> str:
    """Move something to where nothing looks for it; where it is now, "" where it cannot be moved.

    That is a folder of the user's, or one beside it where that is another disk: nothing is copied.
    """
    kept = state_directory() / "sandbox" / "removed"
    with contextlib.suppress(OSError):
        kept.mkdir(parents=True, exist_ok=True, mode=0o700)
        _sweep(kept)
    for folder in (kept, Path(path).parent):
        with contextlib.suppress(OSError):
            place = Path(tempfile.mkdtemp(prefix=".crow-removed-", dir=folder))
            try:
                return str(Path(path).rename(place / Path(path).name))
            except OSError:
                place.rmdir()
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


def _make(path: str, content: bytes | str | None, mode: int) -> None:
    if content is None:
        Path(path).mkdir(mode=mode)
    elif isinstance(content, str):
        Path(path).symlink_to(content)
    else:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(path, flags, mode), "wb") as file:  # noqa: PTH123
            file.write(content)
