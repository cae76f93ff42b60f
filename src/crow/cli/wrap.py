"""Words that come in pieces, in lines that are no wider than the terminal."""

from __future__ import annotations

import re
from unicodedata import east_asian_width

PIECES = r"\n|[^\S\n]+|\S+"
FENCE = "```"
ERASE = "\x1b[K"


def columns(text: str) -> int:
    """How many cells a terminal needs for a line."""
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)


class Wrap:
    """Breaks a stream of text between words.

    The beginning of a word is shown at once, and taken back to the next line where the word turns
    out to be too long for this one. What stands between code fences is left as it is: a terminal
    folds that by itself, and lets it be copied whole.
    """

    def __init__(self) -> None:
        self._column = 0
        self._word = ""
        self._in_code = False

    def feed(self, text: str, width: int) -> str:
        """What to write, so that the text stands in ``width`` columns."""
        return "".join(self._take(piece, width) for piece in re.findall(PIECES, text))

    def _take(self, piece: str, width: int) -> str:
        if piece == "\n":
            self._end_word()
            self._column = 0
            return piece
        if piece.isspace():
            self._end_word()
            piece = piece if self._in_code else piece[: max(0, width - 1 - self._column)]
            self._column += columns(piece)
            return piece
        return self._grow(piece, width)

    def _grow(self, piece: str, width: int) -> str:
        """Write more of a word, in the next line with all of it where it is too long for this."""
        shown, self._word = self._word, self._word + piece
        start = self._column - columns(shown)
        self._column += columns(piece)
        if self._column < width or not start or self._in_code:
            return piece
        self._column = columns(self._word)
        back = "\b" * columns(shown) + ERASE if shown else ""
        return f"{back}\n{self._word}"

    def _end_word(self) -> None:
        if self._word.startswith(FENCE) and self._column == columns(self._word):
            self._in_code = not self._in_code
        self._word = ""
