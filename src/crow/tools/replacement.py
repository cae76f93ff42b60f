"""Exact replacement in a text, and errors that help where there is no exact match."""

from __future__ import annotations

import re
from itertools import islice

from crow.tools.errors import ToolError

_END = r"(?:\r\n|(?<!\r)\n)"
_NUMBERED = re.compile(r"^ *\d+(\t|→)")
_WINDOWS = 10
_ROWS = 20_000
_SHOWN = 8
_ALIKE = 0.6
_MOST = 1000
_LARGEST = 16 * 1024 * 1024


def replaced(
    text: str, old: str, new: str, name: str, *, every: bool = False
) -> tuple[str, int, int]:
    r"""The new text, the line of the first change (from 1), and the number of changes.

    A newline in ``old`` stands for any end of line (``\n`` or ``\r\n``); new lines get the ends
    that the file has. Raises `ToolError` where ``old`` does not occur, or more than once.
    """
    pattern = _pattern(text, old)
    places = _places(text, pattern)
    if not places:
        raise ToolError(_not_found(text, old, name))
    if len(places) > 1 and not every:
        lines = ", ".join(str(_line(text, start)) for start in places[:10])
        count = len(places) if len(places) < _MOST else f"more than {_MOST - 1}"
        raise ToolError(
            f"old_string occurs {count} times in {name} (lines {lines}). Give more of the "
            "text around it, so that it is unique, or set replace_all."
        )
    new = _with_ends_of(text, new)
    count = sum(1 for _ in re.finditer(pattern, text))
    if len(text) + count * (len(new) - len(old)) > _LARGEST:
        raise ToolError(f"{name} would have more than {_LARGEST} characters: nothing was changed.")
    return re.sub(pattern, lambda _: new, text), _line(text, places[0]), count


def _pattern(text: str, old: str) -> str:
    """A regular expression for a string as it can stand in a text."""
    if "\r\n" not in text or "\n" not in old or "\r" in old:
        return re.escape(old)
    return _END.join(map(re.escape, old.split("\n")))


def _places(text: str, pattern: str) -> list[int]:
    """Where it occurs, overlapping occurrences included; no more than anybody reads."""
    found = re.finditer(f"(?={pattern})", text)
    return [match.start() for match in islice(found, _MOST)]


def _with_ends_of(text: str, new: str) -> str:
    r"""New lines with ``\r\n`` where that is what most lines of the file end with."""
    carriage = text.count("\r\n")
    if "\r\n" in new or carriage * 2 <= text.count("\n"):
        return new
    return new.replace("\n", "\r\n")


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _not_found(text: str, old: str, name: str) -> str:
    first = f"old_string does not occur in {name}."
    lines, sought = text.replace("\r\n", "\n").split("\n"), old.replace("\r\n", "\n").split("\n")
    if all(_NUMBERED.match(line) for line in sought if line):
        return f"{first} It contains line numbers as Read shows them: leave them out."
    blank = _same_but_blanks(lines, sought)
    if blank is not None:
        return (
            f"{first} At line {blank + 1} it differs in blanks alone (tabs, spaces, indentation). "
            f"There it reads:\n{_excerpt(lines, blank, len(sought))}"
        )
    nearest = _nearest(lines, sought)
    if nearest is None:
        return f"{first} Nothing in the file is like it: read the file again."
    start, ratio = nearest
    return (
        f"{first} Nearest, {ratio:.0%} alike, is line {start + 1}:\n"
        f"{_excerpt(lines, start, len(sought))}"
    )


def _same_but_blanks(lines: list[str], sought: list[str]) -> int | None:
    """Where the text stands when blanks do not count; a line may be a part of one of the file's."""
    wanted = ["".join(line.split()) for line in sought]
    if not any(wanted):
        return None
    bare = ["".join(line.split()) for line in lines]
    for start in range(len(bare) - len(wanted) + 1):
        if wanted[0] in bare[start] and _fits(bare[start : start + len(wanted)], wanted):
            return start
    return None


def _fits(bare: list[str], wanted: list[str]) -> bool:
    if len(wanted) == 1:
        return wanted[0] in bare[0]
    return (
        bare[0].endswith(wanted[0])
        and bare[-1].startswith(wanted[-1])
        and bare[1:-1] == wanted[1:-1]
    )


def _nearest(lines: list[str], sought: list[str]) -> tuple[int, float] | None:
    """The start of the piece that is most alike, and how much, from 0 to 1."""
    import difflib

    anchor = max(range(len(sought)), key=lambda n: len(sought[n].strip()))
    rows = {n: line.strip() for n, line in enumerate(lines[:_ROWS]) if line.strip()}
    wanted = sought[anchor].strip()
    matcher = difflib.SequenceMatcher(None, autojunk=False)
    matcher.set_seq2(wanted[:500])
    scored: list[tuple[float, int]] = []
    for number, row in rows.items():
        matcher.set_seq1(row[:500])
        if matcher.real_quick_ratio() >= _ALIKE and matcher.quick_ratio() >= _ALIKE:
            scored.append((matcher.quick_ratio(), number))
    best: tuple[int, float] | None = None
    for _, number in sorted(scored, reverse=True)[:_WINDOWS]:
        start = max(0, number - anchor)
        ratio = _ratio(lines[start : start + len(sought)], sought)
        if ratio >= _ALIKE and (best is None or ratio > best[1]):
            best = (start, ratio)
    return best


def _ratio(one: list[str], other: list[str]) -> float:
    import difflib

    left, right = "\n".join(one)[:2000], "\n".join(other)[:2000]
    return difflib.SequenceMatcher(None, left, right, autojunk=False).ratio()


def _excerpt(lines: list[str], start: int, count: int) -> str:
    shown = lines[start : start + min(count, _SHOWN)]
    return "\n".join(f"{n:>6}\t{line[:300]}" for n, line in enumerate(shown, start + 1))
