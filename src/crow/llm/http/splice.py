"""The splice of answers that broke off: what a person has seen already is not shown twice."""

from __future__ import annotations

from itertools import takewhile

from crow.core.events import CallDelta, TextDelta, ThoughtDelta
from crow.core.ports.llm import Completion, Delta

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
