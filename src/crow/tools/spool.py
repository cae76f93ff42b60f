"""The whole output of a command on disk, begun only when memory no longer holds it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from crow.tools.spill import create_output

CAP = 64 * 1024 * 1024


class Spool:
    """Takes bytes; past ``threshold`` they go to a file, past `CAP` they are dropped."""

    def __init__(self, directory: Callable[[], Path], stem: str, *, threshold: int) -> None:
        self._directory, self._stem = directory, stem
        self._threshold, self._room = threshold, CAP
        self._held: bytearray | None = bytearray()
        self._file: BinaryIO | None = None

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        if self._held is not None:
            self._held += data
            if len(self._held) <= self._threshold:
                return
            data, self._held = bytes(self._held), None
            self._open()
        self._write(data)

    @property
    def path(self) -> str | None:
        """Where the output is; None while it is in memory alone."""
        return None if self._file is None else str(self._file.name)

    @property
    def whereabouts(self) -> str:
        """Words that lead to the output; empty while it is in memory alone."""
        part = "all of it" if self._room >= 0 else f"its first {CAP} bytes"
        return "" if self.path is None else f"{part} in {self.path}"

    def flush(self) -> None:
        """Let readers of the file see everything."""
        if self._file and not self._file.closed:
            self._file.flush()

    def close(self) -> None:
        """Close the file; it stays."""
        self._held, self._room = None, 0
        if self._file:
            self._file.close()

    def _open(self) -> None:
        try:
            self._file = create_output(self._directory(), self._stem)
        except OSError:  # a full disk must not end the command
            self._room = 0

    def _write(self, data: bytes) -> None:
        if self._file is None or self._room <= 0:
            return
        try:
            self._file.write(data[: self._room])
        except OSError:
            self._room = 0
        self._room -= len(data)
