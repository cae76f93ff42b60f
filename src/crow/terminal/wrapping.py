"""Plain text in lines that fit, broken between words."""

from __future__ import annotations

import re

from crow.text import columns

WORDS = re.compile(r"\s+|\S+")


def folded(text: str, width: int) -> list[str]:
    """A text in lines of ``width`` cells at most."""
    return [row for line in text.split("\n") for row in _rows(line.expandtabs(4), max(width, 2))]


def _rows(line: str, width: int) -> list[str]:
    if columns(line) <= width:
        return [line]
    rows = [""]
    for word in WORDS.findall(line):
        if columns(rows[-1]) + columns(word) <= width:
            rows[-1] += word
        elif not word.isspace():
            rows += cut(word, width)
    return [row.rstrip() for row in rows if row.strip()] or [""]


def cut(word: str, width: int) -> list[str]:
    """A word in pieces that fit."""
    pieces = [""]
    for char in word:
        if columns(pieces[-1] + char) > width:
            pieces.append("")
        pieces[-1] += char
    return pieces
