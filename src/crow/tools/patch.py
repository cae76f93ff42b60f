"""The difference between two texts as hunks, in the shape that hooks know."""

from __future__ import annotations

from collections import Counter
from typing import TypedDict

UNENDED = "\\ No newline at end of file"
_CONTEXT = 3
_LONGEST = 1000
_MOST_PAIRS = 30_000


class Hunk(TypedDict):
    """One place that differs; lines count from 1 and begin with a blank, ``-`` or ``+``.

    `UNENDED` stands below a line that ends the file without a line end; it is not counted.
    """

    oldStart: int
    oldLines: int
    newStart: int
    newLines: int
    lines: list[str]


def hunks(old: str, new: str) -> list[Hunk]:
    """What changed. Of very long changes, or very repetitive ones, the whole region is one hunk."""
    skipped, old, new = _near(old, new)
    before, after = _lines(old), _lines(new)
    start = _common(before, after)
    end = _common(before[start:][::-1], after[start:][::-1])
    first = max(0, start - _CONTEXT)
    last = max(0, end - _CONTEXT)
    olds, news = before[first : len(before) - last], after[first : len(after) - last]
    if olds == news:
        return []
    if max(len(olds), len(news)) > _LONGEST or _pairs(olds, news) > _MOST_PAIRS:
        return [_whole(olds, news, skipped + first)]

    import difflib

    groups = difflib.SequenceMatcher(None, olds, news, autojunk=False).get_grouped_opcodes(_CONTEXT)
    return [_hunk(group, olds, news, skipped + first) for group in groups]


def _pairs(olds: list[str], news: list[str]) -> int:
    """How many lines of one text are the same as one of the other: what comparing them costs."""
    counts = Counter(news)
    return sum(counts[line] for line in olds)


def _near(old: str, new: str) -> tuple[int, str, str]:
    """Both texts without most of what they begin and end with alike; how many lines went before.

    Comparing whole texts first is a hundred times faster than comparing all of their lines.
    """
    start = shared(old, new)
    end = shared(old[start:][::-1], new[start:][::-1])
    first = start
    for _ in range(_CONTEXT + 2):
        first = old.rfind("\n", 0, max(first, 0))
    first = max(first + 1, 0)
    last = len(old) - end
    for _ in range(_CONTEXT + 2):
        last = old.find("\n", last) + 1 or len(old)
    return old.count("\n", 0, first), old[first:last], new[first : len(new) - (len(old) - last)]


def shared(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def line_counts(found: list[Hunk]) -> str:
    """How many lines came and went, as ``+3 -1``."""
    lines = [line for hunk in found for line in hunk["lines"]]
    plus = sum(line.startswith("+") for line in lines)
    return f"+{plus} -{sum(line.startswith('-') for line in lines)}"


def _lines(text: str) -> list[str]:
    """The lines of a text with their ends."""
    *ended, last = text.split("\n")
    return [f"{line}\n" for line in ended] + ([last] if last else [])


def _signed(sign: str, lines: list[str]) -> list[str]:
    shown: list[str] = []
    for line in lines:
        shown.append(sign + line.removesuffix("\n"))
        if not line.endswith("\n"):
            shown.append(UNENDED)
    return shown


def _common(one: list[str], other: list[str]) -> int:
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _whole(olds: list[str], news: list[str], first: int) -> Hunk:
    lines = _signed("-", olds) + _signed("+", news)
    return Hunk(
        oldStart=first + 1, oldLines=len(olds), newStart=first + 1, newLines=len(news), lines=lines
    )


def _hunk(
    group: list[tuple[str, int, int, int, int]], olds: list[str], news: list[str], first: int
) -> Hunk:
    lines: list[str] = []
    for tag, old_start, old_end, new_start, new_end in group:
        if tag == "equal":
            lines += _signed(" ", olds[old_start:old_end])
        else:
            lines += _signed("-", olds[old_start:old_end])
            lines += _signed("+", news[new_start:new_end])
    start, end = group[0], group[-1]
    return Hunk(
        oldStart=first + start[1] + 1,
        oldLines=end[2] - start[1],
        newStart=first + start[3] + 1,
        newLines=end[4] - start[3],
        lines=lines,
    )
