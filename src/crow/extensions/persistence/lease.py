"""The right to write one session: a locked file, which also holds the text that is streaming.

The kernel frees the lock when its holder dies, however it dies. Text goes into the file before
the client hears of it (one ``write``, some microseconds) and leaves it once the whole message is
in the database; what a killed process leaves there is what its user had seen.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from crow.core.errors import SessionError

Sort = Literal["text", "thought", "output"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of streamed text. ``where`` is the message's index, or the call's id for output."""

    segment: int
    where: int | str
    sort: Sort
    text: str


class Lease:
    """A held lock; `release` it. Taken with `take`."""

    __slots__ = ("__weakref__", "_close", "_empty", "_fd", "path")

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self._fd = fd
        self._empty = os.fstat(fd).st_size == 0
        self._close = weakref.finalize(self, os.close, fd)

    @classmethod
    def take(cls, folder: Path, session_id: str) -> Lease:
        """Lock a session. Raises `SessionError` where another holds it, ``OSError`` for trouble."""
        path = folder / file_name(session_id)
        while True:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_file_at(fd, path):
                    return cls(path, fd)
            except BlockingIOError:
                os.close(fd)
                raise SessionError(
                    f"the session {session_id} is in use by another process: close it there, "
                    "or fork it"
                ) from None
            except OSError:
                os.close(fd)
                raise
            os.close(fd)

    @property
    def held(self) -> bool:
        """True until it is released."""
        return self._close.alive

    def add(self, piece: Piece) -> None:
        """Keep streamed text. Raises ``OSError`` where the disk is full."""
        self._empty = False
        line = json.dumps([piece.segment, piece.where, piece.sort, piece.text])
        os.write(self._fd, f"\n{line}".encode())

    def clear(self) -> None:
        """Forget the streamed text: it is in the database now."""
        if not self._empty:
            os.ftruncate(self._fd, 0)
            self._empty = True

    def release(self) -> None:
        """Let others have the session; a file that holds nothing goes with it."""
        if not self._close.alive:
            return
        if self._empty:
            self.path.unlink(missing_ok=True)
        self._close()


def read_pieces(path: Path) -> list[Piece]:
    """The streamed text in a lease's file, whoever holds it; a line that was cut off is none."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return []
    return [piece for line in lines if (piece := _piece(line)) is not None]


def _piece(line: bytes) -> Piece | None:
    try:
        segment, where, sort, text = json.loads(line)
        return Piece(segment, where, sort, text)
    except ValueError:
        return None


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
