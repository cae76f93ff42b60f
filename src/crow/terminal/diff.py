"""Changes as people read them: numbered lines in colour, with the words marked that differ."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest

from crow.core.tools import Diff
from crow.terminal.palette import Look, Palette
from crow.terminal.wrapping import cut
from crow.text import shorten, visible

WORDS = re.compile(r"\w+|\s+|.")
ALIKE = 0.4
"""How much of two lines must be the same, so that the words that differ are marked."""
Row = tuple[str, int | None, str]
"""A sign, the number of the line, and its text."""


def diff_lines(diff: Diff, width: int, palette: Palette, *, whole: bool = False) -> list[str]:
    """The hunks of a diff, none of the lines wider than ``width``.

    Those that are too long are cut, or go on in the next one where the ``whole`` is to be seen.
    """
    rows = list(_rows(diff))
    digits = max((len(str(number)) for _, number, _ in rows if number), default=1)
    room = max(4, width - digits - len(" + "))
    if whole:
        rows = [part for row in rows for part in _folded(row, room)]
    return [line for group in _groups(rows) for line in _painted(group, digits, width, palette)]


def _folded(row: Row, room: int) -> Iterator[Row]:
    """A line in pieces that fit, of which the first has the number."""
    sign, number, text = row
    for index, piece in enumerate(cut(text, room)):
        yield sign, None if index else number, piece


def counts(diff: Diff) -> tuple[int, int]:
    """How many lines came, and how many went."""
    signs = [sign for sign, _, _ in _rows(diff)]
    return signs.count("+"), signs.count("-")


def _rows(diff: Diff) -> Iterator[Row]:
    from crow.tools.patch import UNENDED, hunks

    first = (diff.line or 1) - 1
    for index, hunk in enumerate(hunks(diff.old or "", diff.new)):
        if index:
            yield "…", None, ""
        old, new = hunk["oldStart"] + first, hunk["newStart"] + first
        for line in hunk["lines"]:
            if line == UNENDED:
                continue
            sign = line[0]
            yield sign, old if sign == "-" else new, visible(line[1:]).expandtabs(4)
            old += sign in "- "
            new += sign in "+ "


def _groups(rows: list[Row]) -> Iterator[list[Row]]:
    """Lines that went together with those that came in their place; all others alone."""
    group: list[Row] = []
    for row in rows:
        if group and not (row[0] in "-+" and group[-1][0] + row[0] in ("--", "-+", "++")):
            yield group
            group = []
        group.append(row)
    if group:
        yield group


def _painted(group: list[Row], digits: int, width: int, palette: Palette) -> Iterator[str]:
    gone = [row for row in group if row[0] == "-"]
    came = [row for row in group if row[0] == "+"]
    if len(gone) != len(came):
        yield from (_line(row, digits, width, palette) for row in group)
        return
    marks = [
        _differing(old[2], new[2]) for old, new in zip_longest(gone, came, fillvalue=("", 0, ""))
    ]
    for row, (old, _) in zip(gone, marks, strict=True):
        yield _line(row, digits, width, palette, old)
    for row, (_, new) in zip(came, marks, strict=True):
        yield _line(row, digits, width, palette, new)
    yield from (_line(row, digits, width, palette) for row in group if row[0] not in "-+")


Marks = frozenset[int]
"""The places of characters that differ."""


def _differing(old: str, new: str) -> tuple[Marks, Marks]:
    """What differs in each of two lines; nothing where they have little in common."""
    from difflib import SequenceMatcher

    olds, news = WORDS.findall(old), WORDS.findall(new)
    matcher = SequenceMatcher(None, olds, news, autojunk=False)
    if len(old) + len(new) > 2000 or matcher.ratio() < ALIKE:
        return frozenset(), frozenset()
    alike = matcher.get_matching_blocks()
    kept_old = {n for block in alike for n in range(block.a, block.a + block.size)}
    kept_new = {n for block in alike for n in range(block.b, block.b + block.size)}
    return _places(olds, kept_old), _places(news, kept_new)


def _places(words: list[str], kept: set[int]) -> Marks:
    places: set[int] = set()
    at = 0
    for number, word in enumerate(words):
        if number not in kept:
            places.update(range(at, at + len(word)))
        at += len(word)
    return frozenset(places)


def _line(row: Row, digits: int, width: int, palette: Palette, marks: Marks = frozenset()) -> str:
    sign, number, text = row
    head = f"{number or '':>{digits}} {sign} "
    text = shorten(text, max(4, width - len(head)))
    if sign not in "+-":
        return palette(f"{head}{text}".rstrip(), "dim")
    colour: Look = "green" if sign == "+" else "red"
    return palette(head, colour) + "".join(
        palette(part, colour, *(("reverse",) if marked else ()))
        for marked, part in _parts(text, marks)
    )


def _parts(text: str, marks: Marks) -> Iterator[tuple[bool, str]]:
    """The text in pieces that are marked or not."""
    start = 0
    for at in range(1, len(text) + 1):
        if at == len(text) or (at in marks) != (start in marks):
            yield start in marks, text[start:at]
            start = at
