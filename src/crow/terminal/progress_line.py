"""The progress line: what is being done, for how long, and what it has taken so far."""

from __future__ import annotations

import time

from crow.core.events import (
    CallDelta,
    Event,
    Retrying,
    TextDelta,
    ThoughtDelta,
    ToolEnded,
    ToolPending,
    ToolStarted,
)
from crow.core.messages import Usage
from crow.terminal.palette import Palette
from crow.text import columns, one_line, shorten

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
BEAT = 0.1
"""Seconds between two pictures of the spinner."""
BESIDE = 38
"""Cells for what else stands in the line."""
LETTERS = 4
"""Letters of a token, about."""


class ProgressLine:
    """A run that is on. ``doing`` is what it does now."""

    def __init__(self) -> None:
        self.doing = "Waiting for the model"
        self.began = time.monotonic()
        self._sent = self._received = 0
        self._letters = 0

    def hear(self, text: str) -> None:
        """Count what the model says before anybody reports it."""
        self._letters += len(text)

    def note(self, event: Event) -> None:
        """Hear what happens."""
        match event:
            case TextDelta(text):
                self.hear(text)
                self.doing = "Writing"
            case ThoughtDelta(text):
                self.hear(text)
                self.doing = "Thinking"
            case CallDelta(_, name, text):
                self.hear(text)
                self.doing = f"Preparing {one_line(name)}"
            case ToolPending(_, title):
                self.doing = f"Judging {one_line(title)}"
            case ToolStarted(_, _, title):
                self.doing = f"Running {one_line(title)}"
            case ToolEnded():
                self.doing = "Waiting for the model"
            case Retrying():
                self.doing = "Waiting to try again"
            case _:
                pass

    def report(self, last: Usage) -> None:
        """Count what was reported for a request."""
        self._sent += last.get("input_tokens", 0)
        self._received += last.get("output_tokens", 0)
        self._letters = 0

    def line(self, width: int, now: float, palette: Palette, *, moves: bool) -> str:
        """The line, as far as it fits."""
        seconds = now - self.began
        mark = SPINNER[int(seconds / BEAT) % len(SPINNER)] if moves else "·"
        parts = [lasted(seconds), self._tokens(), "esc stops"]
        doing = shorten(self.doing, max(8, width - BESIDE))
        line = f"{mark} {doing}"
        for part in filter(None, parts):
            if columns(line) + columns(part) + 3 <= width:
                line += f" · {part}"
        return palette(line[:1], "cyan") + palette(line[1:], "dim")

    def _tokens(self) -> str:
        received = self._received + self._letters // LETTERS
        told = [f"↑{short(self._sent)}"] if self._sent else []
        return " ".join([*told, f"↓{short(received)}"]) if received or told else ""


def short(number: int) -> str:
    """``950``, ``3.1k``, ``42k``, ``1.2M``."""
    for limit, digits, unit in ((1_000, 0, ""), (10_000, 1, "k"), (1_000_000, 0, "k")):
        if number < limit:
            return f"{number / (1_000 if unit else 1):.{digits}f}{unit}"
    return f"{number / 1_000_000:.1f}M"


def lasted(seconds: float) -> str:
    """``12 s``, ``3 min 5 s``."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
