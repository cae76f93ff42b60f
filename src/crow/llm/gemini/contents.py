"""Messages as a Gemini model gets them: contents of two roles, made of parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crow.core.messages import Message, text_of
from crow.llm.http.encoding import Piece
from crow.llm.http.request_format import SHOWN

SYSTEM = ("system", "developer")
NOTHING_SAID = b'{"role":"user","parts":[{"text":""}]}'
SHOWN_PART = b'{"text":"%b"}' % SHOWN.encode()


class Contents:
    """Contents that are put together of messages, each given as its parts in JSON.

    Neighbouring replies share one content, and so do the results of a step, in the order of its
    calls; nothing else stands among results. A conversation begins with the user.
    """

    __slots__ = ("_answers", "_calls", "_images", "_items", "_replies")

    def __init__(self) -> None:
        self._items: list[bytes] = []
        self._replies: list[bytes] = []
        self._calls: dict[str, bytes] = {}
        self._answers: dict[str, bytes] = {}
        self._images: list[bytes] = []

    def reply(self, parts: bytes, calls: dict[str, bytes]) -> None:
        """Add a reply; ``calls`` has the beginning of each call's result by the call's id."""
        self._end_results()
        if parts:
            self._replies.append(parts)
            self._calls |= calls

    def result(self, parts: bytes, call_id: str, images: Sequence[bytes]) -> None:
        """Add a result, given as what stands behind its beginning."""
        self._answers[call_id] = parts
        self._images += images

    def add_user(self, parts: bytes) -> None:
        """Add what somebody else said."""
        self._end_results()
        self._end_replies()
        if parts:
            self._add(b"user", parts)

    def end(self) -> list[bytes]:
        """All contents."""
        self._end_results()
        self._end_replies()
        return self._items or [NOTHING_SAID]

    def _end_replies(self) -> None:
        if self._replies:
            if not self._items:
                self._items.append(NOTHING_SAID)
            self._add(b"model", b",".join(self._replies))
        self._replies, self._calls = [], {}

    def _end_results(self) -> None:
        answers = self._answers
        if not answers:
            return
        results = [begin + answers[each] for each, begin in self._calls.items() if each in answers]
        self._end_replies()
        if results:
            self._add(b"user", b",".join(results))
        if self._images:
            self._add(b"user", b",".join((SHOWN_PART, *self._images)))
        self._answers, self._images = {}, []

    def _add(self, role: bytes, parts: bytes) -> None:
        self._items.append(b'{"role":"%b","parts":[%b]}' % (role, parts))


def contents(
    messages: Sequence[Message], pieces: Sequence[Piece], *, is_plain: bool
) -> list[bytes]:
    """All messages but what the system says before anybody else."""
    found = Contents()
    first = _preface(messages)
    for message, (parts, beside) in zip(messages[first:], pieces[first:], strict=True):
        match message["role"]:
            case "assistant":
                found.reply(parts, beside)
            case "tool":
                found.result(parts, *beside)
            case _:
                found.add_user(parts)
    return found.end()


def instruction(messages: Sequence[Message]) -> list[Any]:
    """The parts of what the system says before anybody else."""
    texts = [text_of(message["content"]) for message in messages[: _preface(messages)]]
    return [{"text": text} for text in texts if text]


def _preface(messages: Sequence[Message]) -> int:
    spoken = (place for place, each in enumerate(messages) if each["role"] not in SYSTEM)
    return next(spoken, len(messages))
