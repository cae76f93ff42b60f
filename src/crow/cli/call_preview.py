"""The preview of a call: the lines that a person reads before it may run."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from crow.cli.output import Style
from crow.core.ports.client import PermissionRequest
from crow.core.tools import Diff
from crow.text import visible

LINES = 40
WIDTH = 400
COLOURS: dict[str, tuple[Style, ...]] = {"+": ("green",), "-": ("red",), "@": ("cyan",)}

Line = tuple[str, tuple[Style, ...]]


def preview(request: PermissionRequest) -> Iterator[Line]:
    """The changes, else the arguments where the title does not tell of them, as far as they fit."""
    lines = [*_changes(request.diffs), *map(_plain, request.details.splitlines())]
    yield from islice(lines, LINES)
    if len(lines) > LINES:
        more = len(lines) - LINES
        yield f"… and {more:,} more line{'s' if more > 1 else ''}", ("dim",)


def _changes(diffs: tuple[Diff, ...]) -> Iterator[Line]:
    """The lines of the hunks, with the name of each file where there are several."""
    paths = {diff.path for diff in diffs}
    for diff in diffs:
        if len(paths) > 1:
            yield _cut(diff.path), ("bold",)
        yield from _hunks(diff)


def _hunks(diff: Diff) -> Iterator[Line]:
    from crow.tools.patch import hunks

    first = (diff.line or 1) - 1
    for hunk in hunks(diff.old or "", diff.new):
        if diff.old:
            yield f"@@ line {hunk['newStart'] + first}", COLOURS["@"]
        for line in hunk["lines"]:
            yield _cut(line), COLOURS.get(line[:1], ("dim",))


def _plain(line: str) -> Line:
    return _cut(line), ()


def _cut(text: str) -> str:
    """A line that shows what a terminal would obey, and says how much of a long one is missing."""
    text = visible(text)
    missing = len(text) - WIDTH
    return text if missing <= 0 else f"{text[:WIDTH]}… ({missing:,} characters more)"
