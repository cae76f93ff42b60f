"""Text that cannot steer a terminal, and how many of its cells it takes."""

from __future__ import annotations

import re
from unicodedata import category, east_asian_width

SEQUENCES = (
    r"\x1b\[[0-?]*[ -/]*[@-~]?"  # CSI: colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS, SOS, PM, APC: titles, links
    r"|\x1b[ -/]*[0-~]?"
    r"|\x9b[0-?]*[ -/]*[@-~]?"
)
CONTROLS = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"

JOINED = ("Mn", "Me", "Cf")
"""Categories of characters that stand on others, or nowhere."""
ZERO_WIDTH_JOINER = "\u200d"


def clean(text: str) -> str:
    """Text without anything that a terminal would obey: sequences, controls, direction marks."""
    if text.isprintable():  # nothing of that is
        return text
    return re.sub(
        CONTROLS, "", re.sub(SEQUENCES, "", text.replace("\r\n", "\n").replace("\r", "\n"))
    )


def visible(text: str) -> str:
    """A line that shows what a terminal would obey."""
    return re.sub(CONTROLS, lambda found: f"<{ord(found[0]):04X}>", text.removesuffix("\r"))


def one_line(text: str) -> str:
    """Clean text with every run of white space as one blank."""
    return " ".join(clean(text).split())


def shorten(text: str, width: int) -> str:
    """A line cut to a number of cells, with an ellipsis where something is missing."""
    if columns(text) <= width:
        return text
    kept, used = "", 1
    for char in text:
        used += columns(char)
        if used > width:
            break
        kept += char
    return f"{kept.rstrip()}…"


def columns(text: str) -> int:
    """How many cells a terminal needs for a line; what is joined to a character needs none."""
    if text.isascii():
        return len(text)
    cells, joined = 0, False
    for char in text:
        if not joined and category(char) not in JOINED:
            cells += 2 if east_asian_width(char) in "WF" else 1
        joined = char == ZERO_WIDTH_JOINER
    return cells
