"""The right to write one session: a locked file, which is also the session's tail.

The kernel frees the lock when its holder dies, however it dies. Into the tail goes, with one
``write`` of some microseconds and before the client hears of it, what the database does not have
yet: records on their way there, and text that is streaming and no message yet. What a killed
process leaves in its tail is read when the session is next loaded.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import time
import weakref
from collections.abc import Iterable
from dataclasses import field
from pathlib import Path
from typing import Any, Literal, Protocol, cast

from crow.dataclasses import frozen
from crow.errors import SessionInUse
from crow.extensions.persistence.record import Kind, Row

Sort = Literal["text", "thought", "output"]
GLANCE = 0.005
"""Seconds in which whoever only looks whether a lock is held has let go of it."""


@frozen
class Piece:
    """A piece of streamed text. ``where`` is the message's index, or the call's id for output."""

    segment: int
    where: int | str
    sort: Sort
    text: str


class Claim(Protocol):
    """The right to write one session, and what of it is no record yet.

    ``is_lost`` is true as soon as it is known that another has the session. ``opened`` is what to
    write down of whose it is, where it can be another machine's.
    """

    is_lost: bool

    @property
    def opened(self) -> dict[str, Any] | None: ...

    def stream(self, piece: Piece) -> None:
        """Keep streamed text, until `reached`. Raises ``OSError`` where the disk is full."""
        ...

    def keep(self, rows: list[Row]) -> None:
        """Keep records that are on their way to the database. Raises ``OSError``."""
        ...

    def reached(self) -> None:
        """Say that the streamed text is part of a record now."""
        ...

    def settle(self) -> None:
        """Forget the records: they are in the database now."""
        ...

    def clear(self) -> None:
        """Forget everything: it is in the database now."""
        ...

    def release(self) -> None:
        """Let others have the session."""
        ...


class Lease:
    """A held lock; `release` it. Taken with `take`."""

    opened = None

    __slots__ = ("__weakref__", "_close", "_empty", "_fd", "_streaming", "is_lost", "path")

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self.is_lost = False
        self._fd = fd
        self._empty = os.fstat(fd).st_size == 0
        self._streaming = False
        self._close = weakref.finalize(self, os.close, fd)

    @classmethod
    def take(cls, folder: Path, session_id: str) -> Lease:
        """Lock a session. Raises `SessionInUse` where another holds it, ``OSError`` for trouble."""
        path = folder / file_name(session_id)
        is_patient = True
        while True:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_file_at(fd, path):
                    return cls(path, fd)
            except BlockingIOError:
                if is_patient:  # with whoever looks just now (`user_of`)
                    is_patient = False
                    os.close(fd)
                    time.sleep(GLANCE)
                    continue
                who = holder(fd)
                os.close(fd)
                raise SessionInUse(
                    f"the session {session_id} is in use by another process{who}: close it there, "
                    "or fork it"
                ) from None
            except OSError:
                os.close(fd)
                raise
            os.close(fd)

    def stream(self, piece: Piece) -> None:
        """Keep streamed text, until `reached`. Raises ``OSError`` where the disk is full."""
        self._write(json.dumps([piece.segment, piece.where, piece.sort, piece.text]))
        self._streaming = True

    def keep(self, rows: Iterable[Row]) -> None:
        """Keep records that are on their way to the database. Raises ``OSError``."""
        lines = [f"{row.seq} {row.segment} {row.kind} {row.at!r} {row.data}" for row in rows]
        if lines:
            self._write("\n".join(lines))

    def _write(self, lines: str) -> None:
        text = f"\n{lines}".encode()
        self._empty = False
        if os.write(self._fd, text) < len(text):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def reached(self) -> None:
        """Say that the streamed text is part of a record now."""
        self._streaming = False

    def settle(self) -> None:
        """Forget the records: they are in the database now. Streaming text stays."""
        if not self._streaming:
            self.clear()

    def clear(self) -> None:
        """Forget everything: it is in the database now."""
        if not self._empty:
            os.ftruncate(self._fd, 0)
            self._empty, self._streaming = True, False

    def release(self) -> None:
        """Let others have the session; a file that holds nothing goes with it."""
        if not self._close.alive:
            return
        if self._empty:
            self.path.unlink(missing_ok=True)
        self._close()


@frozen
class Tail:
    """The content of a lease's file."""

    rows: list[Row] = field(default_factory=list["Row"])
    pieces: list[Piece] = field(default_factory=list[Piece])


def read_tail(folder: Path, session_id: str) -> Tail:
    """A session's tail, whoever holds the lock; a line that was cut off does not count."""
    tail = Tail()
    try:
        lines = (folder / file_name(session_id)).read_bytes().split(b"\n")
    except OSError:
        return tail
    for line in filter(None, lines):
        try:
            if line.startswith(b"["):
                tail.pieces.append(Piece(*json.loads(line)))
            else:
                tail.rows.append(_row(line.decode()))
        except (ValueError, TypeError):
            continue
    return tail


def _row(line: str) -> Row:
    seq, segment, kind, at, data = line.split(" ", 4)
    json.loads(data)
    return Row(int(seq), int(segment), cast(Kind, kind), data, float(at))


def holder(fd: int) -> str:
    """Which process holds a file's lock, as far as the system says (Linux does)."""
    here = os.fstat(fd)
    try:
        locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        pids = [lock[4] for lock in locks if lock[1] == "FLOCK" and _inode(lock[5]) == here.st_ino]
        for pid in pids:
            if any(
                os.path.samestat(here, each.stat()) for each in Path(f"/proc/{pid}/fd").iterdir()
            ):
                return f" ({Path(f'/proc/{pid}/comm').read_text().strip()}, process {pid})"
    except (OSError, ValueError, IndexError):
        pass
    return ""


def user_of(folder: Path, session_id: str) -> str:
    """Who has a session open, this process included; empty where nobody has."""
    try:
        fd = os.open(folder / file_name(session_id), os.O_RDONLY)
    except OSError:
        return ""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return holder(fd).strip(" ()") or "another process"
    except OSError:
        return ""
    finally:
        os.close(fd)
    return ""


def _inode(place: str) -> int:
    """The last part of ``major:minor:inode``."""
    return int(place.rpartition(":")[2])


def _is_file_at(fd: int, path: Path) -> bool:
    """False where a holder removed the file between our opening and our locking it."""
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    here = os.fstat(fd)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def file_name(session_id: str) -> str:
    """A file name for any session id: itself where that is harmless."""
    if re.fullmatch(r"[A-Za-z0-9_-]{1,100}", session_id):
        return session_id
    return "." + hashlib.sha256(session_id.encode()).hexdigest()
