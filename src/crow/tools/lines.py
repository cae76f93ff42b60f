"""Some lines of a file of any size, in bounded memory and time."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from time import monotonic

from crow.tools.errors import ToolError

KEPT = 8192
ROOM = 256 * 1024
PATIENCE = 20.0
LONGEST = 64 * 1024 * 1024
_PIECE = 1024 * 1024


@dataclass(slots=True)
class Line:
    """A line without its end: its beginning, and how many bytes more it has."""

    start: bytes = b""
    missing: int = 0


@dataclass(slots=True)
class Page:
    """Consecutive lines; ``at_end`` where the file has no more."""

    lines: list[Line] = field(default_factory=list[Line])
    at_end: bool = False


def read_page(descriptor: int, offset: int, limit: int) -> Page:
    """At most ``limit`` lines from line ``offset`` on (from 1), read from the file's beginning.

    Raises `ToolError` where that line is too far away, or is not there; ``OSError``.
    """
    position = _start_of(descriptor, offset)
    found, size, end = Page(), 0, monotonic() + PATIENCE
    while len(found.lines) < limit and size < ROOM and monotonic() < end:
        line, position, has_end = _line(descriptor, position)
        if not has_end and not line.start:
            found.at_end = True
            break
        found.lines.append(line)
        size += len(line.start) + 1
        if not has_end:
            found.at_end = not line.missing or line.missing < LONGEST
            break
    return found


def _start_of(descriptor: int, offset: int) -> int:
    """The position of a line."""
    position, left, end = 0, offset - 1, monotonic() + PATIENCE
    while left:
        piece = os.pread(descriptor, _PIECE, position)
        if not piece:
            raise ToolError(f"The file has fewer than {offset} lines.")
        if monotonic() > end:
            raise ToolError(f"Line {offset} was not reached within {PATIENCE:g} s.")
        ends = piece.count(b"\n")
        position += len(piece) if ends < left else _behind(piece, left)
        left -= min(ends, left)
    return position


def _behind(piece: bytes, count: int) -> int:
    """Where the bytes begin that stand behind so many line ends."""
    place = 0
    for _ in range(count):
        place = piece.index(b"\n", place) + 1
    return place


def _line(descriptor: int, position: int) -> tuple[Line, int, bool]:
    """The line at a position, the position behind it, and whether an end of it was found."""
    line, size = Line(), KEPT
    while line.missing < LONGEST:
        piece = os.pread(descriptor, size, position)
        here, end, _ = piece.partition(b"\n")
        if size == KEPT:
            line.start, size = here, _PIECE
        else:
            line.missing += len(here)
        position += len(here) + len(end)
        if end or not piece:
            return line, position, bool(end)
    return line, position, False
