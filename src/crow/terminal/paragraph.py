"""A paragraph that grows long: its first rows are final while it still comes."""

from __future__ import annotations

import re
from typing import Any

from crow.terminal.palette import Palette
from crow.terminal.rendering import leftover, lines_of, painted, rows_of, styled

LONG = 480
"""Letters from which on a paragraph is drawn in parts: all of it takes longer each time."""
OPEN = 240
"""Letters at its end that stay open, for marks that are closed there."""
ENDLESS = 4000
"""Letters after which a mark that is still open is taken for no mark."""
BLOCK = re.compile(
    r"^(?:[ \t]*(?:[-+*](?:\s|$)|[-=:|>#]|\d{1,9}[.)](?:\s|$)|[*_](?: *[*_]){2,} *$)|[ ]{4}|\t)",
    re.MULTILINE,
)
"""A line that makes something else of a paragraph, or ends it."""
GAP = re.compile(r"(?<=[^\s\\])\s(?=\S)")
MARKS = "`*_~["
OPENING = re.compile(r"`|\*(?=\S)|(?<!\w)_(?=\S)|~~(?=\S)|\[(?![^\[\]]*\](?!\())")
"""A mark that may be closed by what comes behind it."""


class Paragraph:
    """Draws the open end of a text; `settle` gives the rows of it that are final.

    What was given is remembered by its letters, and the row that is not full yet as it was drawn.
    """

    def __init__(self) -> None:
        self._at = 0
        self._row: Any = None
        self._looked = 0

    @property
    def has_begun(self) -> bool:
        """True once some of it is final."""
        return self._at > 0

    def settle(self, text: str, width: int, palette: Palette) -> list[str]:
        """The rows that are final and were not given yet."""
        if len(text) - max(self._at, self._looked) < LONG or not is_prose(text, self._at):
            return []
        end = self._end(text)
        if end == self._at:
            self._looked = len(text) - LONG // 2
            return []
        *rows, self._row = rows_of(self._styled(text[self._at : end], palette), width, palette)
        self._at = end
        return [painted(row, palette) for row in rows]

    def rest(self, text: str, width: int, palette: Palette) -> list[str]:
        """The rows behind those, as far as the text goes by now."""
        if not self.has_begun:
            return lines_of(text, width, palette)
        block = BLOCK.search(text, self._at)
        prose, more = (text[: block.start()], text[block.start() :]) if block else (text, "")
        rows = rows_of(self._styled(prose[self._at :], palette), width, palette)
        lines = [painted(row, palette) for row in rows]
        return [*lines, "", *lines_of(more, width, palette)] if more.strip() else lines

    def _styled(self, text: str, palette: Palette) -> Any:
        """More of it, behind the row that is not full yet."""
        more = styled(text.strip(), palette)
        return more if self._row is None else self._row.copy().append(" ").append(more)

    def _end(self, text: str) -> int:
        """Up to where nothing can change any more; where it begins, if that is nowhere."""
        end = last_gap(text, self._at, len(text) - OPEN)
        latest = end
        while end > self._at:
            if not OPENING.search(leftover(text[self._at : end])):
                return end
            mark = max(text.rfind(mark, self._at, end) for mark in MARKS)
            end = last_gap(text, self._at, mark)
        return latest if len(text) - self._at > ENDLESS else self._at


def is_prose(text: str, start: int) -> bool:
    """True for a paragraph that is nothing else so far."""
    return not text[:1].isspace() and BLOCK.search(text, start) is None


def last_gap(text: str, start: int, end: int) -> int:
    """The last place between two words; ``start`` where there is none."""
    return max((gap.start() for gap in GAP.finditer(text, start, max(start, end))), default=start)
