"""An answer in pieces, of which several attempts make one, and how it is handed on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeAlias, cast

from crow.core.events import TextDelta, ThoughtDelta
from crow.core.ports.llm import Completion, Delta

Sink: TypeAlias = Callable[[Delta], Awaitable[None]]
"""Where the pieces of an answer go."""
ANEW = "\n\n[the answer above was thrown away]\n\n"
"""What stands between an answer that was begun and the one that counts."""


class Anew(TextDelta):
    """`ANEW` on its way through hooks: one that changes texts does not make it a part of them."""

    __slots__ = ()


async def nowhere(piece: Delta) -> None:
    """A sink for pieces that nobody is to see."""


class Track:
    """The text that was passed on of an answer, and how far the next attempt has come in it."""

    __slots__ = ("_at", "_parts")

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._at: int | None = None

    @property
    def is_new(self) -> bool:
        """True where the answer was not said before."""
        return self._at is None

    @property
    def text(self) -> str:
        """The answer so far."""
        said = "".join(self._parts)
        return said if self._at is None else said[: self._at]

    def rewind(self) -> None:
        """The answer comes again from its beginning."""
        self._at = 0 if self._parts else None
        self._parts = ["".join(self._parts)] if self._parts else []

    def new(self, piece: str) -> tuple[str, ...]:
        """What is to be passed on: nothing while a piece only says what was said before."""
        if self._at is None:
            self._parts.append(piece)
            return (piece,)
        before, at = self._parts[0], self._at
        if before.startswith(piece, at):
            self._at = at + len(piece)
            return ()
        now = before[:at] + piece
        self._parts, self._at = [now], None
        return (now[len(before) :],) if now.startswith(before) else (ANEW, now)

    def end(self) -> tuple[str, ...]:
        """What is to be passed on where the answer ends before what was said."""
        if self._at is None or self._at == len(self._parts[0]):
            self._at = None
            return ()
        self._parts, self._at = [self.text], None
        return ANEW, self._parts[0]


class Heard:
    """The pieces of an answer, and the reply that came behind them."""

    __slots__ = ("_text", "_thought", "reply")

    def __init__(self) -> None:
        self._text: list[str] = []
        self._thought: list[str] = []
        self.reply: Completion | None = None

    @property
    def is_empty(self) -> bool:
        """True while nothing was said."""
        return not (self._text or self._thought)

    @property
    def said(self) -> dict[str, str]:
        """What was said, under the names that it has in a reply."""
        return {"text": "".join(self._text), "reasoning": "".join(self._thought)}

    def add(self, piece: Delta) -> None:
        """Hear another piece."""
        match piece:
            case Anew():
                self._text.clear()
            case TextDelta(text):
                self._text.append(text)
            case ThoughtDelta(text):
                self._thought.append(text)
            case _:
                pass

    def agreed(self, heard: Heard) -> Completion:
        """The reply to the pieces, which were made of those that somebody heard.

        A text that stands in the reply alone counts; one that was left as it was heard is what the
        pieces say.
        """
        reply, before = self.reply or Completion(), heard.reply or Completion()
        was, new = heard.said, dict[str, Any]()
        for name, said in self.said.items():
            own = getattr(reply, name)
            is_new = self.reply is None or said != was[name]
            if is_new and own in ("", getattr(before, name)):
                new[name] = said.rpartition(ANEW)[2]
        if "reasoning" in new:
            new["opaque"] = {}
        return replace(reply, **new) if new else reply

    def stands_for(self, reply: Completion, heard: Heard) -> bool:
        """True where the pieces say what a reply does, or were left as they were."""
        was = heard.said
        return all(
            said.rpartition(ANEW)[2] == getattr(reply, name)
            or (said == was[name] and getattr(heard.reply, name, None) == getattr(reply, name))
            for name, said in self.said.items()
        )


class Outlet:
    """The pieces that a wrap passes on. An attempt that says the same again is not shown twice.

    Where it says something else, that stands as a whole behind `ANEW`, a piece of its own. It is
    ``busy`` while an attempt is passed on: others at the same time are not. ``reply`` is the answer
    that the pieces stand for, once that is known.
    """

    __slots__ = ("_sink", "_text", "_thought", "busy", "reply")

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._text: Track | None = None
        self._thought: Track | None = None
        self.busy = False
        self.reply: Completion | None = None

    def begin(self) -> None:
        """The answer comes again from its beginning."""
        self.reply = None
        for track in (self._text, self._thought):
            if track is not None:
                track.rewind()

    def put(self, piece: Delta) -> Awaitable[None]:
        """Pass a piece on, as far as it is new."""
        kind = type(piece)
        if kind is Anew:
            self._text = Track()
            return self._sink(Anew(ANEW, cast("Anew", piece).message_id))
        if kind is TextDelta:
            track = self._text = self._text or Track()
        elif kind is ThoughtDelta:
            track = self._thought = self._thought or Track()
        else:
            return self._sink(piece)
        delta = cast("TextDelta | ThoughtDelta", piece)
        new = track.new(delta.text)
        if len(new) == 1 and new[0] is delta.text:
            return self._sink(piece)
        return self._put([said(type(delta), text, delta.message_id) for text in new])

    async def _put(self, pieces: list[TextDelta | ThoughtDelta]) -> None:
        for piece in pieces:
            await self._sink(piece)

    def shows(self, reply: Completion) -> bool:
        """True where all of an answer was passed on, and nothing else."""
        return reply is self.reply and (self._text is None or self._text.is_new)

    async def end(self, reply: Completion, message_id: str) -> None:
        """Pass on what of the answer was not."""
        text = self._text = self._text or Track()
        thought = "" if self._thought is None else self._thought.text
        shown = self.reply or Completion(text.text, reasoning=thought)
        if (shown.text, shown.reasoning) != (reply.text, reply.reasoning):
            self.begin()
            if reply.reasoning:
                await self.put(ThoughtDelta(reply.reasoning, message_id))
            if reply.text:
                await self.put(TextDelta(reply.text, message_id))
        for rest in filter(None, text.end()):
            await self._sink(said(TextDelta, rest, message_id))
        self.reply = reply


def said(
    kind: type[TextDelta | ThoughtDelta], text: str, message_id: str
) -> TextDelta | ThoughtDelta:
    """A piece of a kind."""
    return (Anew if kind is TextDelta and text is ANEW else kind)(text, message_id)


class Channel:
    """Hands pieces from one task to another, each when it is asked for."""

    __slots__ = ("_asked", "_over", "_piece", "_waiting")

    def __init__(self) -> None:
        self._piece: Any = None
        self._over = False
        self._waiting: asyncio.Future[None] | None = None
        self._asked: asyncio.Future[None] | None = None

    async def put(self, piece: Delta) -> None:
        """Hand a piece over; returns when the next one is asked for."""
        self._piece = piece
        _wake(self._waiting)
        self._asked = asyncio.get_running_loop().create_future()
        await self._asked

    async def get(self) -> Delta | None:
        """The next piece; None once there is none."""
        _wake(self._asked)
        if not self._over:
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        piece, self._piece = self._piece, None
        return piece

    def end(self, _: object = None) -> None:
        """There will be no more."""
        self._over = True
        _wake(self._waiting)


def _wake(future: asyncio.Future[None] | None) -> None:
    if future is not None and not future.done():
        future.set_result(None)
