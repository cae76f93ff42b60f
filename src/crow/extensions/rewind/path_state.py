"""The state of a path: nothing, a file, a link, a folder; and the stamp that shows a change."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import time
from typing import Literal, TypeAlias

from crow.dataclasses import frozen

Kind = Literal["absent", "file", "link", "folder", "other", "unknown"]
Stamp: TypeAlias = "tuple[int, ...]"
"""Mode, size, times of change and inode; of a folder the mode alone."""
TICK = 20_000_000
"""Nanoseconds in which a file can change twice and look the same."""


@frozen
class PathState:
    """The state of a path. ``mark`` is a file's hash, empty where none is kept, or a link's text.

    ``unknown`` is for what a call that was cut off may have left.
    """

    kind: Kind
    mode: int = 0
    mark: str = ""
    size: int = 0

    @property
    def is_kept(self) -> bool:
        """True where it can be made again."""
        return self.kind in ("absent", "link", "folder") or (
            self.kind == "file" and bool(self.mark)
        )

    def same(self, other: PathState) -> bool:
        """True where both are surely the same."""
        if self.kind == "folder" == other.kind:
            return True
        return self.is_kept and (self.kind, self.mode, self.mark) == (
            other.kind,
            other.mode,
            other.mark,
        )

    def as_text(self) -> str:
        """The shape as it is stored."""
        return f"{self.kind} {self.mode} {self.size} {self.mark}"

    @classmethod
    def of_text(cls, text: str) -> PathState:
        """The shape that was stored."""
        kind, mode, size, mark = text.split(" ", 3)
        return cls(kind, int(mode), mark, int(size))  # pyright: ignore[reportArgumentType]


ABSENT = PathState("absent")
UNKNOWN = PathState("unknown")


def stamp_of(path: str, unseen: Stamp | None = None) -> Stamp | None:
    """The stamp of what is at a path; None where nothing is, ``unseen`` where nobody may look."""
    try:
        return stamp(os.lstat(path))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError:
        return unseen


def inode_of_many(path: str) -> int:
    """The inode of a file or link that has more names than this one; zero for anything else."""
    with contextlib.suppress(OSError, ValueError):
        status = os.lstat(path)
        if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
            return status.st_ino
    return 0


def stamp(status: os.stat_result) -> Stamp:
    """What is told of a path without reading it."""
    mode = status.st_mode
    if stat.S_ISDIR(mode):
        return (mode,)
    return (mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def is_settled(what: Stamp) -> bool:
    """False for what changed just now: it can change again and keep its stamp."""
    return len(what) == 1 or time.time_ns() - max(what[2:4]) > TICK


def unread(what: Stamp) -> PathState:
    """The shape of a file that nobody has read."""
    return PathState("file", stat.S_IMODE(what[0]), "", what[1])


@frozen
class Keeping:
    """A filter of contents to keep: of so many bytes at most, with none of these keys in them."""

    largest: int
    secrets: tuple[bytes, ...] = ()

    def refuses(self, data: bytes) -> bool:
        """True for what is not to lie in one more place."""
        return len(data) > self.largest or any(secret in data for secret in self.secrets)


def look(path: str, keeping: Keeping) -> tuple[PathState, Stamp | None, bytes]:
    """What is at a path, its stamp, and what is in it where that is to be kept.

    What changes while it is read is read again, and is not kept where that does not end.
    """
    for _ in range(3):
        before = stamp_of(path)
        if before is None:
            return ABSENT, None, b""
        shape, data = _look(path, before, keeping)
        if shape.kind == "folder" or stamp_of(path) == before:
            return shape, before, data
    return PathState("other"), None, b""


def _look(path: str, what: Stamp, keeping: Keeping) -> tuple[PathState, bytes]:
    mode = stat.S_IMODE(what[0])
    if stat.S_ISDIR(what[0]):
        return PathState("folder", mode), b""
    if stat.S_ISLNK(what[0]):
        with contextlib.suppress(OSError):
            return PathState("link", 0, os.readlink(path)), b""  # noqa: PTH115 - as it stands
    if not stat.S_ISREG(what[0]):
        return PathState("other"), b""
    if what[1] > keeping.largest:
        return unread(what), b""
    try:
        with open(path, "rb", opener=_no_link, buffering=0) as file:
            data = file.read(keeping.largest + 1)
    except OSError:
        return unread(what), b""
    if keeping.refuses(data):
        return unread(what), b""
    return PathState("file", mode, hashlib.sha256(data).hexdigest(), len(data)), data


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
