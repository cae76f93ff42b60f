"""Concurrent writers: other commands that can change a workspace while one is started in it."""

from __future__ import annotations

import os
import struct
from typing import Self

from crow.project import state_directory

_LOCK = "hhqqi4x"  # the kernel's `struct flock`


class ConcurrentWriters:
    """Counts a command among those that write, for as long as the context, unless it only reads.

    The lock of a file tells processes of each other, and is gone with them.
    """

    def __init__(self, *, is_writing: bool) -> None:
        self._is_writing = is_writing
        self._file = -1

    def __enter__(self) -> Self:
        folder = state_directory() / "sandbox"
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            self._file = os.open(folder / "running", flags, 0o600)
            if self._is_writing:
                import fcntl

                fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, _lock(fcntl.F_RDLCK))
        except OSError:
            self.__exit__()
        return self

    def __exit__(self, *_: object) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    @property
    def are_there(self) -> bool:
        """True where others write as well, and where nobody knows."""
        import fcntl

        try:
            told = fcntl.fcntl(self._file, fcntl.F_OFD_GETLK, _lock(fcntl.F_WRLCK))
        except (OSError, ValueError):
            return True
        return struct.unpack(_LOCK, told)[0] != fcntl.F_UNLCK


def _lock(kind: int) -> bytes:
    return struct.pack(_LOCK, kind, os.SEEK_SET, 0, 0, 0)
