"""The assembly of one attempt at an answer: its text, thoughts and calls so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from crow.core.events import TextDelta, ThoughtDelta
from crow.core.ports.llm import Delta
from crow.core.tools import Call
from crow.llm.http.splice import Shown
from crow.llm.http.text import TextFlow
from crow.llm.http.toolcalls import ToolCalls


class Assembly:
    """Puts a reply together from pieces, and shows what can be shown of each.

    ``cap`` bounds its characters. ``known`` gives the ids of the calls that the conversation holds
    already; ``shown`` is what a person has seen of earlier attempts.
    """

    __slots__ = ("_calls", "_cap", "_flow", "_id", "_reasoning", "_size", "_text", "_thoughts")

    def __init__(
        self, known: Callable[[], set[str]], message_id: str, cap: int, shown: Shown
    ) -> None:
        self._calls = ToolCalls(known, shown.calls)
        self._cap = cap
        self._flow = TextFlow()
        self._id = message_id
        self._reasoning: list[str] = []
        self._size = 0
        self._text: list[str] = []
        self._thoughts = TextFlow()

    @property
    def text(self) -> str:
        """What was said."""
        return "".join(self._text)

    @property
    def reasoning(self) -> str:
        """What was thought."""
        return "".join(self._reasoning)

    @property
    def overflowed(self) -> bool:
        """True where the reply is longer than it may be."""
        return self._size + self._calls.size > self._cap

    @property
    def is_empty(self) -> bool:
        """True where neither text nor thoughts nor calls came."""
        return not (self._text or self._calls or self._reasoning)

    def say(self, text: str, deltas: list[Delta]) -> None:
        """Add a piece of text."""
        if text := self._flow.take(text):
            self._say(text, deltas)

    def think(self, thought: str, deltas: list[Delta]) -> None:
        """Add a piece of a thought."""
        if thought := self._thoughts.take(thought):
            self._reasoning.append(thought)
            self._size += len(thought)
            deltas.append(ThoughtDelta(thought, self._id))

    def call(self, pieces: Iterable[Any], deltas: list[Delta]) -> None:
        """Add pieces of calls, in the shape of `ToolCalls.take`."""
        deltas.extend(self._calls.take(pieces))

    def calls(self, fault: str | None = None) -> tuple[Call, ...]:
        """The calls; each is marked where there was a fault."""
        return self._calls.calls(fault)

    def end(self, deltas: list[Delta]) -> None:
        """Show what was held back."""
        if half := self._flow.end():
            self._say(half, deltas)
        deltas.extend(self._calls.end())

    def remember(self, shown: Shown) -> None:
        """Keep what was shown of this attempt, which broke off."""
        shown.keep(self.text, self.reasoning, self._calls.shown())

    def _say(self, text: str, deltas: list[Delta]) -> None:
        self._text.append(text)
        self._size += len(text)
        deltas.append(TextDelta(text, self._id))
