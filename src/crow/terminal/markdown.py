"""Markdown while it still comes: which part of it is final."""

from __future__ import annotations

import re
from typing import TypeAlias

from crow.core.support.frozen import frozen
from crow.text import clean

FENCE = re.compile(r"(?P<indent> *)(?P<mark>`{3,}|~{3,})\s*(?P<info>[^`]*)$")
HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
ITEM = re.compile(r"(?P<indent> *)(?:[-*+]|\d{1,9}[.)])(?:\s|$)")
LONGEST = 120
"""Lines of one paragraph after which it is final, whatever comes: drawing it takes too long."""


@frozen
class Block:
    """A heading, a paragraph, a list's item, a table, a quotation: Markdown that is whole.

    ``spaced`` is False for what follows the block before without a gap: the items of one list.
    """

    text: str
    spaced: bool = True


@frozen
class Fence:
    """Code begins, so far from the left."""

    language: str
    indent: int = 0


@frozen
class Code:
    """A line of code."""

    text: str


@frozen
class FenceEnd:
    """Code ends."""


Piece: TypeAlias = Block | Fence | Code | FenceEnd


class Splitter:
    """Takes a text as it comes and gives its pieces once they are final.

    Final is what stands before a blank line, unless a list goes on behind it; an item, once the
    next one begins; a heading's line; a line of code. Everything else stays `open`.
    """

    def __init__(self) -> None:
        self._rest = ""
        self._lines: list[str] = []
        self._fence: re.Match[str] | None = None
        self._item: int | None = None
        self._list_goes_on = False
        self._is_loose = False

    @property
    def open(self) -> tuple[Piece, ...]:
        """What has begun and may still change."""
        if self._fence is not None:
            return (Code(self._dedented(clean(self._rest))),) if self._rest else ()
        text = "\n".join([*self._lines, clean(self._rest)])
        return (self._block(text),) if text.strip() else ()

    def feed(self, text: str) -> list[Piece]:
        """What is final now that this has come."""
        *lines, self._rest = (self._rest + text).split("\n")
        return [piece for line in lines for piece in self._cleaned(line)]

    def _cleaned(self, line: str) -> list[Piece]:
        """The pieces of a line without what a terminal would obey, which may have come in parts."""
        return [
            piece
            for each in clean(line.removesuffix("\r")).split("\n")
            for piece in self._line(each)
        ]

    def end(self) -> list[Piece]:
        """The rest, now that nothing more comes."""
        rest, self._rest = self._rest, ""
        pieces = self._cleaned(rest) if rest else []
        pieces += [FenceEnd()] if self._fence is not None else self._flush()
        self._fence = None
        self._list_goes_on = False
        return pieces

    def _line(self, line: str) -> list[Piece]:
        if self._fence is not None:
            return self._code(line)
        if (fence := FENCE.match(line)) is not None:
            pieces = self._flush()
            self._fence = fence
            language = fence["info"].split()
            return [*pieces, Fence(language[0] if language else "", len(fence["indent"]))]
        if HEADING.match(line):
            return [*self._flush(), self._alone(line)]
        return self._prose(line)

    def _code(self, line: str) -> list[Piece]:
        assert self._fence is not None
        mark = self._fence["mark"]
        bare = line.strip()
        if bare.startswith(mark) and not bare.strip(mark[0]):
            self._fence = None
            return [FenceEnd()]
        return [Code(self._dedented(line))]

    def _dedented(self, line: str) -> str:
        assert self._fence is not None
        blanks = len(line) - len(line.lstrip(" "))
        return line[min(blanks, len(self._fence["indent"])) :]

    def _prose(self, line: str) -> list[Piece]:
        if not line.strip():
            return self._blank()
        item = ITEM.match(line)
        pieces: list[Piece] = []
        if self._item is not None:
            if item and len(item["indent"]) <= self._item:
                pieces = self._flush()
                self._list_goes_on = True
            elif self._is_loose and not line.startswith((" ", "\t")):
                pieces = self._flush()
        if item and not self._lines:
            self._item = len(item["indent"])
        self._is_loose = False
        self._lines.append(line)
        return pieces + (self._flush() if len(self._lines) > LONGEST else [])

    def _blank(self) -> list[Piece]:
        if self._item is None:
            return self._flush()
        self._is_loose = True
        if self._lines:
            self._lines.append("")
        return []

    def _alone(self, line: str) -> Block:
        self._list_goes_on = False
        return Block(line)

    def _block(self, text: str) -> Block:
        return Block(text.strip("\n"), not self._list_goes_on)

    def _flush(self) -> list[Piece]:
        """What is open is final."""
        lines, self._lines = self._lines, []
        block = self._block("\n".join(lines))
        self._item = None
        self._list_goes_on = self._is_loose = False
        return [block] if block.text.strip() else []
