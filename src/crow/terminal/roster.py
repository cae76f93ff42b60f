"""The sessions of a window in one line: which works, which waits for the person."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from crow.terminal.palette import Look, Palette
from crow.terminal.progress_line import lasted
from crow.terminal.tab import State, Tab
from crow.text import columns, one_line, shorten

MARKS: Mapping[State, str] = {"waits": "?", "works": "✳", "done": "✓", "idle": "·"}
WORDS: Mapping[State, str] = {"waits": "waits for you", "works": "", "done": "done", "idle": ""}
LOOKS: Mapping[State, tuple[Look, ...]] = {
    "waits": ("bold", "yellow"),
    "works": (),
    "done": ("green",),
    "idle": ("dim",),
}
BETWEEN = "  "
ROOMY = 24
"""Cells for each session from which on a word says what its mark means."""
LEAST = 5
"""Cells of a session: its number, its mark, and a letter of its name."""


def roster_line(tabs: Sequence[Tab], front: Tab, width: int) -> str:
    """All that fit around the one in front, each with its number, its mark and its name."""
    shown = list(enumerate(tabs, 1))
    most = max(1, (width + len(BETWEEN)) // (LEAST + len(BETWEEN)))
    first = max(0, min(tabs.index(front) - most // 2, len(tabs) - most))
    shown = shown[first : first + most]
    room = (width + len(BETWEEN)) // len(shown) - len(BETWEEN)
    return BETWEEN.join(entry(number, tab, room) for number, tab in shown)


def entry(number: int, tab: Tab, room: int) -> str:
    """A session: reversed where it is the one in front."""
    palette, state = tab.window.palette, tab.state
    head = f"{number}{MARKS[state]}"
    more = f" {said}" if room >= ROOMY and (said := about(tab)) else ""
    name = shorten(one_line(tab.name), max(1, room - columns(head) - 1 - columns(more)))
    looks: tuple[Look, ...] = ("reverse",) if tab.is_front else LOOKS[state]
    return palette(f"{head} {name}{more}", *looks)


def about(tab: Tab) -> str:
    """What a mark means, in words."""
    if tab.state == "works" and tab.working is not None:
        return lasted(time.monotonic() - tab.working.began)
    return "" if tab.is_front else WORDS[tab.state]


def heading(number: int, name: str, width: int, palette: Palette) -> str:
    """A line between what was said in one session and in another."""
    text = shorten(one_line(name), max(1, width - 10))
    line = f"── {number} · {text} "
    return palette(line + "─" * max(0, width - columns(line)), "dim")
