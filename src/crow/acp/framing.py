"""Cuts a stream of bytes into lines, and skips the ones that are too long to keep."""

from __future__ import annotations

LIMIT = 32 * 1024 * 1024
KEPT = 4096


class Oversized:
    """What is left of a line that was too long: its beginning and its end."""

    __slots__ = ("head", "tail")

    def __init__(self, head: bytes, tail: bytes) -> None:
        self.head = head
        self.tail = tail


class Lines:
    """Bytes in, lines out, without their line ends. Holds at most ``limit`` bytes and a chunk."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size = 0
        self._head = b""

    def feed(self, data: bytes) -> list[bytes | Oversized]:
        """The lines that end in this piece of the stream."""
        *ended, rest = data.split(b"\n")
        lines: list[bytes | Oversized] = []
        for piece in ended:
            self._hold(piece)
            lines.append(self._take())
        self._hold(rest)
        return lines

    def rest(self) -> list[bytes | Oversized]:
        """What came behind the last line end; for the end of the stream."""
        return [self._take()] if self._size else []

    def _hold(self, piece: bytes) -> None:
        self._size += len(piece)
        self._pieces.append(piece)
        if self._size > self._limit:
            whole = b"".join(self._pieces)
            self._head = self._head or whole[:KEPT]
            self._pieces = [whole[-KEPT:]]

    def _take(self) -> bytes | Oversized:
        whole, head, size = b"".join(self._pieces), self._head, self._size
        self._pieces, self._head, self._size = [], b"", 0
        return Oversized(head, whole) if size > self._limit else whole
