"""The conversation as a protocol: the other side of the terminal's keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from crow.core.support.frozen import frozen
from crow.core.tools import Call, ToolResult


@frozen
class Offered:
    """A slash command that can be typed."""

    name: str
    description: str
    hint: str = ""
    complete: Callable[[str], Iterable[str]] | None = None


class Extras(Protocol):
    """Additions of others to the screen."""

    def status(self) -> list[str]:
        """Texts for the line at the bottom."""
        ...

    def widget(self) -> list[str]:
        """Lines above the editor."""
        ...

    def card(self, call: Call, result: ToolResult) -> list[str] | None:
        """Lines for the card of a call; None where nobody has any."""
        ...


class Steering(Protocol):
    """Something that was said to a run that is on."""

    @property
    def is_delivered(self) -> bool:
        """True once it is in the conversation."""
        ...

    def take_back(self) -> None:
        """Let it not be said."""
        ...


class Conversation(Protocol):
    """A conversation, as keys can act on it."""

    @property
    def listed(self) -> Sequence[str]:
        """What can stand behind ``@``: the files of its project, and more."""
        ...

    @property
    def title(self) -> str:
        """What it is called; empty where it has no name yet."""
        ...

    def interrupt(self) -> None:
        """End what is being done."""
        ...

    def steer(self, text: str) -> Steering:
        """Say something to the run that is on: the model reads it with its next request."""
        ...

    def commands(self) -> Sequence[Offered]:
        """The slash commands on offer."""
        ...

    def next_mode(self) -> None:
        """Go on in the next one of the modes on offer."""
        ...
