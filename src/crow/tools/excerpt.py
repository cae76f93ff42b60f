"""A change as people are shown it: the whole file where it is small, else what is different."""

from __future__ import annotations

from dataclasses import replace

from crow.core.tools import Diff
from crow.tools.patch import UNENDED, Hunk, hunks, shared

ROOM = 96 * 1024
_LEFT_OUT = "[... left out here ...]"
_BEFORE = 200
_LEAST = 200


def excerpts(change: Diff, room: int = ROOM) -> tuple[Diff, ...]:
    """A change in at most about ``room`` characters: whole, or place by place.

    What does not fit is left out, the last places first; the last that is shown says how many.
    """
    old, new = change.old, change.new
    if len(old or "") + len(new) <= room:
        return (change,)
    if old is None:
        return (Diff(change.path, None, _head(new, room), change.line or 1),)
    parts: list[Diff] = []
    places = hunks(old, new)
    for hunk in places:
        if room < _LEAST:
            break
        part = _part(change, hunk, room)
        parts.append(part)
        room -= len(part.old or "") + len(part.new)
    if missing := len(places) - len(parts):
        last, more = parts[-1], f"[... {missing} more places are changed ...]\n"
        parts[-1] = replace(last, old=f"{last.old}{more}", new=f"{last.new}{more}")
    return tuple(parts)


def _part(change: Diff, hunk: Hunk, room: int) -> Diff:
    """One place of a change, cut around what is different where it is still too long."""
    old, new = _side(hunk, "-"), _side(hunk, "+")
    line = hunk["newStart"] + (change.line or 1) - 1
    if len(old) + len(new) <= room:
        return Diff(change.path, old, new, line)
    start = max(0, shared(old, new) - _BEFORE)
    half = room // 2
    return Diff(
        change.path,
        _window(old, start, half),
        _window(new, start, half),
        line + old.count("\n", 0, start),
    )


def _side(hunk: Hunk, sign: str) -> str:
    is_own = False
    lines: list[str] = []
    for line in hunk["lines"]:
        if line != UNENDED:
            is_own = line[:1] in (" ", sign)
            lines += [f"{line[1:]}\n"] if is_own else []
        elif is_own:
            lines[-1] = lines[-1].removesuffix("\n")
    return "".join(lines)


def _window(text: str, start: int, size: int) -> str:
    before = _LEFT_OUT if start else ""
    return before + _head(text[start:], size)


def _head(text: str, size: int) -> str:
    return text if len(text) <= size else f"{text[:size]}{_LEFT_OUT}"
