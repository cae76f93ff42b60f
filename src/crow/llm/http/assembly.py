"""The assembly of an answer: text, thoughts and calls, and what was shown of earlier attempts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import Any

from crow.core.events import CallDelta, TextDelta, ThoughtDelta
from crow.core.ports.llm import Completion, Delta
from crow.core.tools import Call
from crow.llm.http.text import TextFlow
from crow.llm.http.toolcalls import ToolCalls

SEPARATOR = "\n\n[the connection broke here; the model answers anew]\n\n"
SHORTER = "\n\n[the connection broke in the text above; the new answer ends before it]\n\n"


class Track:
    """One text that came in part before, and comes again."""

    __slots__ = ("_position", "_seen", "diverged")

    def __init__(self, seen: str) -> None:
        self._seen = seen
        self._position = 0
        self.diverged = False

    @property
    def behind(self) -> bool:
        """True while everything that came was seen before."""
        return self._position < len(self._seen)

    def new(self, piece: str) -> tuple[str, bool]:
        """What of a piece is new, and whether it is the first that differs from what was seen."""
        if not self.behind:
            return piece, False
        expected = self._seen[self._position : self._position + len(piece)]
        if piece == expected:
            self._position += len(piece)
            return "", False
        pairs = zip(piece, expected, strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        self.diverged = same < len(expected)
        self._position = len(self._seen)
        return piece[same:], self.diverged


class Shown:
    """The part of one answer that was shown. Calls are by position as (id, name, arguments)."""

    __slots__ = ("_calls", "_text", "_thought", "calls", "reasoning", "text")

    def __init__(self) -> None:
        self.text = ""
        self.reasoning = ""
        self.calls: list[tuple[str, str, str]] = []
        self.rewind()

    def rewind(self) -> None:
        """The answer comes again from its beginning."""
        self._text = Track(self.text)
        self._thought = Track(self.reasoning)
        self._calls = {call_id: Track(raw) for call_id, _, raw in self.calls}

    def keep(self, text: str, reasoning: str, calls: list[tuple[str, str, str]]) -> None:
        """Remember an attempt that broke off after having produced this."""
        if not self._text.behind:
            self.text = text
        if not self._thought.behind:
            self.reasoning = reasoning
        longest = {call[0]: call for call in sorted(self.calls + calls, key=_length)}
        self.calls = [longest[call_id] for call_id in dict.fromkeys(_ids(calls) + _ids(self.calls))]
        self.rewind()

    def filter(self, deltas: list[Delta]) -> list[Delta | Completion]:
        """The deltas without what was shown before."""
        if not (self.text or self.reasoning or self.calls):
            return [*deltas]
        return [kept for delta in deltas if (kept := self._new(delta)) is not None]

    def ending(self, message_id: str) -> list[Delta | Completion]:
        """What to say where the final answer is shorter than what was shown."""
        return [TextDelta(SHORTER, message_id)] if self._text.behind else []

    def _new(self, delta: Delta) -> Delta | None:
        match delta:
            case TextDelta(text, message_id):
                text, differs = self._text.new(text)
                text = SEPARATOR + text if differs else text
                return TextDelta(text, message_id) if text else None
            case ThoughtDelta(text, message_id):
                text, differs = self._thought.new(text)
                text = SEPARATOR + text if differs else text
                return ThoughtDelta(text, message_id) if text else None
            case CallDelta(call_id, name, text):
                return self._new_call(call_id, name, text)
            case _:
                return delta

    def _new_call(self, call_id: str, name: str, text: str) -> CallDelta | None:
        track = self._calls.get(call_id)
        if track is None:
            return CallDelta(call_id, name, text)
        text, _ = track.new(text)
        return CallDelta(call_id, name, text) if text and not track.diverged else None


def _length(call: tuple[str, str, str]) -> int:
    return len(call[2])


def _ids(calls: list[tuple[str, str, str]]) -> list[str]:
    return [call[0] for call in calls]


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
