"""The looks that text can have: the terminal's own colours, or what is seen on its background."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Literal

from crow.terminal.background import Theme

Look = Literal[
    "bold", "dim", "italic", "underline", "reverse",
    "red", "green", "yellow", "blue", "magenta", "cyan",
]  # fmt: skip
CODES: dict[Look, int] = {
    "bold": 1,
    "dim": 2,
    "italic": 3,
    "underline": 4,
    "reverse": 7,
    "red": 31,
    "green": 32,
    "yellow": 33,
    "blue": 34,
    "magenta": 35,
    "cyan": 36,
}
Protocol = Literal["", "kitty", "iterm", "sixel"]
"""How a terminal is shown pictures; not at all where it is empty."""
COLOURS = 30
THEMES: Mapping[Theme, Mapping[Look, int]] = {
    "": {},
    "dark": {"red": 203, "blue": 75, "magenta": 176},
    "light": {"red": 160, "green": 28, "yellow": 130, "blue": 26, "magenta": 90, "cyan": 30},
}
"""Colours, of the 256, in the place of those that a dark or a light background swallows."""
SGR = re.compile(r"\x1b\[[0-9;]*m")
TRAILING = re.compile(r"(?:\s|\x1b\[[0-9;]*m)+$")
RESET = "\x1b[0m"


class Palette:
    """Paints text for a ``theme``. Without ``colours`` it is bold, dim or reversed at most.

    ``pictures`` says how these are shown.
    """

    def __init__(self, *, colours: bool = True, theme: Theme = "", pictures: Protocol = "") -> None:
        self.colours = colours
        self.theme: Theme = theme
        self.pictures: Protocol = pictures

    @classmethod
    def of_environment(cls) -> Palette:
        """The colours that the user wants."""
        return cls(colours=not os.environ.get("NO_COLOR"))

    def __call__(self, text: str, *looks: Look) -> str:
        """The text in these looks."""
        codes = [self._code(look) for look in looks if self.colours or CODES[look] < COLOURS]
        if not text or not codes:
            return text
        return f"\x1b[{';'.join(codes)}m{text}{RESET}"

    def _code(self, look: Look) -> str:
        own = THEMES[self.theme].get(look)
        return f"38;5;{own}" if own else str(CODES[look])


def plain(line: str) -> str:
    """A painted line without its looks."""
    return SGR.sub("", line)


def trimmed(line: str) -> str:
    """A painted line without blanks at its end: a terminal that gets narrower would fold them."""
    found = TRAILING.search(line)
    if found is None:
        return line
    return line[: found.start()] + (RESET if SGR.search(found[0]) else "")
