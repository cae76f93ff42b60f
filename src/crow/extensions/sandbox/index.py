"""Git's index, as far as it names other repositories: submodules, and what was added like one."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from functools import lru_cache

_LINK = b"\0\0\xe0\0"  # the mode of an entry that is a repository
_LARGEST = 256 * 1024 * 1024
_MODE, _FIXED = 24, 42  # bytes before an entry's mode, and of all that is no hash
_EXTENDED = 0x4000


def gitlinks(folder: str, repository: str) -> list[str]:
    """The paths of other repositories in the index of git's folder; it may be one of several files.

    ``repository`` is where its settings are.
    """
    found: list[str] = []
    for name in ("index", *_shared(folder)):
        path = f"{folder}/{name}"
        try:
            state = os.stat(path)  # noqa: PTH116
        except OSError:
            continue
        if state.st_size <= _LARGEST:
            width = 32 if _is_wide(f"{repository}/config") else 20
            found += _links(path, (state.st_ino, state.st_mtime_ns, state.st_size), width)
    return found


def _shared(folder: str) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if name.startswith("sharedindex.")]  # noqa: PTH208
    except OSError:
        return []


def _is_wide(config: str) -> bool:
    """Whether the repository names its objects by SHA-256."""
    try:
        with open(config, "rb") as file:  # noqa: PTH123
            return b"sha256" in file.read(65536).lower()
    except OSError:
        return False


@lru_cache(64)
def _links(path: str, stamp: tuple[int, ...], width: int) -> list[str]:
    """Those of a file; ``stamp`` is what tells it from another one of the same name."""
    del stamp
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            data = file.read()
    except OSError:
        return []
    if not data.startswith(b"DIRC") or _LINK not in data:
        return []
    entries = _compressed if data[7] == 4 else _plain
    try:
        return [os.fsdecode(name) for name in entries(data, width)]
    except (IndexError, struct.error):
        return []


def _plain(data: bytes, width: int) -> Iterator[bytes]:
    """What may be such an entry of versions 2 and 3; what only looks like one names nothing."""
    place = data.find(_LINK)
    while place >= 0:
        start = place - _MODE + _FIXED + width
        if start < len(data):
            start += 2 if _flags(data, start) & _EXTENDED else 0
            yield data[start : data.find(b"\0", start)][:4096]
        place = data.find(_LINK, place + 1)


def _compressed(data: bytes, width: int) -> Iterator[bytes]:
    """Those of version 4, where each name begins as the one before it."""
    place, name = 12, b""
    for _ in range(int.from_bytes(data[8:12], "big")):
        mode = data[place + _MODE : place + _MODE + 4]
        place += _FIXED + width
        place += 2 if _flags(data, place) & _EXTENDED else 0
        cut, place = _varint(data, place)
        end = data.index(b"\0", place)
        name = name[: len(name) - cut] + data[place:end]
        place = end + 1
        if mode == _LINK:
            yield name


def _flags(data: bytes, end: int) -> int:
    return int.from_bytes(data[end - 2 : end], "big")


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A number of git's own kind, and the place behind it."""
    number = data[place] & 127
    while data[place] & 128:
        place += 1
        number = ((number + 1) << 7) | (data[place] & 127)
    return number, place + 1
