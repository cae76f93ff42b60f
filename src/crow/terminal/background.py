"""The terminal's background, as it says itself, and so whether it is dark or light; sixels.

The answer may come at any time, or never. It is no text that somebody types, however late it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal, Protocol

Theme = Literal["", "dark", "light"]
"""Which looks are chosen; the terminal's own colours as they are where it is empty."""
ASK = "\x1b]11;?\x1b\\\x1b[c"
"""The background, and then what every terminal answers at once."""
REPLY = re.compile(r"\x1b\]\d{1,2};[^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[\?[\d;]*c")
BEGUN = re.compile(r"\x1b(?:\](?:\d{0,2}|\d{1,2};[^\x07\x1b]{0,64}\x1b?)|\[\?[\d;]*)$")
"""A reply of which the rest is still to come."""
COLOUR = re.compile(r"\x1b\]11;rgba?:([0-9a-fA-F]+)/([0-9a-fA-F]+)/([0-9a-fA-F]+)")
WEIGHTS = 0.299, 0.587, 0.114
"""How bright red, green and blue are."""
DARK = frozenset({"0", "1", "2", "3", "4", "5", "6", "8"})
"""The backgrounds of ``COLORFGBG`` that are dark."""


class Reader(Protocol):
    """Gives what is typed."""

    @property
    def closed(self) -> bool: ...

    def read(self, count: int = 1024) -> str: ...


class Replies:
    """Reads what is typed, without what the terminal says itself; `heard` is called with that."""

    def __init__(self, reader: Reader, heard: Callable[[str], object]) -> None:
        self._reader = reader
        self._heard = heard
        self._begun = ""

    @property
    def closed(self) -> bool:
        """True where nothing more comes."""
        return self._reader.closed

    def read(self, count: int = 1024) -> str:
        """What was typed since the last time."""
        text = self._begun + self._reader.read(count)
        text = REPLY.sub(self._told, text)
        begun = BEGUN.search(text)
        self._begun = begun[0] if begun else ""
        return text.removesuffix(self._begun)

    def _told(self, reply: re.Match[str]) -> str:
        self._heard(reply[0])
        return ""


def theme_of(reply: str) -> Theme:
    """What goes with the background that a reply tells of; empty where it tells of none."""
    colour = COLOUR.match(reply)
    if colour is None:
        return ""
    parts = (int(part, 16) / (16 ** len(part) - 1) for part in colour.groups())
    bright = sum(weight * part for weight, part in zip(WEIGHTS, parts, strict=True))
    return "light" if bright > 0.5 else "dark"


def knows_sixels(reply: str) -> bool:
    """True for the answer of a terminal that draws pictures sent as sixels."""
    level, *more = reply.removeprefix("\x1b[?").removesuffix("c").split(";")
    return level.isdecimal() and "4" in more


def theme_of_environment(env: Mapping[str, str]) -> Theme:
    """What the environment says of the background."""
    background = env.get("COLORFGBG", "").rpartition(";")[2]
    if not background.isdecimal():
        return ""
    return "dark" if background in DARK else "light"


def can_be_asked(env: Mapping[str, str]) -> bool:
    """True for terminals that answer at once: not over a network, and not the console."""
    far = any(env.get(name) for name in ("SSH_TTY", "SSH_CONNECTION"))
    return not far and env.get("TERM") != "linux" and not env.get("NO_COLOR")
