"""The looks that text can have, in the terminal's own colours, so that they fit any theme."""

from __future__ import annotations

import os
import re
from typing import Literal

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
COLOURS = 30
SGR = re.compile(r"\x1b\[[0-9;]*m")
TRAILING = re.compile(r"(?:\s|\x1b\[[0-9;]*m)+$")
RESET = "\x1b[0m"


class Palette:
    """Paints text. Without ``colours`` it is bold, dim or reversed at most."""

    def __init__(self, *, colours: bool = True) -> None:
        self.colours = colours

    @classmethod
    def of_environment(cls) -> Palette:
        """The colours that the user wants."""
        return cls(colours=not os.environ.get("NO_COLOR"))

    def __call__(self, text: str, *looks: Look) -> str:
        """The text in these looks."""
        codes = [CODES[look] for look in looks if self.colours or CODES[look] < COLOURS]
        if not text or not codes:
            return text
        return f"\x1b[{';'.join(map(str, codes))}m{text}{RESET}"


def plain(line: str) -> str:
    """A painted line without its looks."""
    return SGR.sub("", line)


def trimmed(line: str) -> str:
    """A painted line without blanks at its end: a terminal that gets narrower would fold them."""
    found = TRAILING.search(line)
    if found is None:
        return line
    return line[: found.start()] + (RESET if SGR.search(found[0]) else "")
