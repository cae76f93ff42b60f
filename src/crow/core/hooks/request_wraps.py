"""Wraps around a request: an answer goes through them in pieces, and agrees with what they say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any, TypeAlias, cast

from crow.core.events import CallDelta, Notice, Retrying, TextDelta, ThoughtDelta
from crow.core.frozen import kept
from crow.core.history import flaw
from crow.core.hooks.attempts import NextRequest, RequestAttempt
from crow.core.hooks.contexts import TurnContext
from crow.core.hooks.proxy import IN_REQUEST, SHARED, copied
from crow.core.hooks.wraps import FORGOTTEN, Layer, Sink, Wrap, nowhere
from crow.core.ports import Completion, Delta, Request
from crow.core.tasks import Clock
from crow.core.validation import check
from crow.core.verdicts import Answer

Said: TypeAlias = Awaitable[Completion | Answer] | AsyncIterable[Delta | Completion | str]
"""What a hook around a request is: a coroutine that returns the reply, or yields its pieces."""
DELTAS = (TextDelta, ThoughtDelta, CallDelta, Retrying, Notice)
PIECES = (*DELTAS, Completion)
ANEW = "\n\n[the answer above was thrown away]\n\n"
"""What stands between an answer that was begun and the one that counts."""


class RequestWrap(Wrap[TurnContext, NextRequest, Said]):
    """Around a request, whose pieces go to a sink while they come."""

    __slots__ = ()

    async def fire(
        self, ctx: TurnContext, operation: Callable[..., Awaitable[Any]], sink: Sink = nowhere
    ) -> Any:
        """Run the operation inside the hooks; an error of a hook's is the operation's."""
        return await self._through(self.due(ctx), operation, RequestLayer, ctx, sink)


class RequestLayer(Layer):
    """A hook around a request; what it passes on and what it answers agree in the end."""

    __slots__ = ("_failed", "_heard", "_out", "_yielded")

    def __init__(self, *known: Any) -> None:
        super().__init__(*known)
        self._out = Outlet(self.sink)
        self._heard = self._yielded = Heard()
        self._failed = False

    async def run(self) -> Any:
        """What the hook makes of it; shows what of that was not shown."""
        reply = await super().run()
        await self._out.end(reply, self.ctx.request.message_id)
        return reply

    def call_next(self, request: Request | None = None, /, **changes: Any) -> RequestAttempt:
        """Ask the model, another request or a changed one where that is given."""
        new = _changes(request, changes) if request is not None or changes else {}
        return RequestAttempt(
            self._attempt(lambda: self._passed_on(new)), lambda: self._pieces(new)
        )

    async def _alone(self) -> Completion:
        return await self._passed_on({})

    def _asked(self, new: dict[str, Any]) -> TurnContext:
        ctx: TurnContext = self.ctx
        return TurnContext(ctx.run, replace(ctx.request, **new)) if new else ctx

    async def _passed_on(self, new: dict[str, Any]) -> Completion:
        out = self._out
        if out.busy:
            return await self._go(self._asked(new), nowhere)
        out.begin()
        out.busy = True
        try:
            reply: Completion = await self._go(self._asked(new), out.put)
        finally:
            out.busy = False
        out.reply = reply
        return reply

    async def _pieces(self, new: dict[str, Any]) -> AsyncGenerator[Delta | Completion, None]:
        """What the model says, for the hook: its time stands still while it waits for that."""
        if self._failed:
            self._yielded, self._failed = Heard(), False
        channel, clock = Channel(), cast(Clock, self.view.clock)
        heard = self._heard = Heard()
        go = self._attempt(lambda: self._go(self._asked(new), channel.put))
        task: asyncio.Task[Completion] = asyncio.create_task(go)
        task.add_done_callback(channel.end)
        try:
            while (piece := await channel.get()) is not None:
                heard.add(piece)
                clock.resume()
                try:
                    yield piece
                finally:
                    clock.pause()
            heard.reply = task.result()
            yield heard.reply
        except Exception:
            self._failed = True
            raise
        finally:
            await _ended(task)

    async def driven(self, yielded: AsyncGenerator[Any, Any]) -> Completion:
        """The answer of a hook that is a generator: what it yields goes on, its reply comes last.

        What cannot go on is raised where it was yielded.
        """
        self._yielded = Heard()
        wrong: TypeError | None = None
        async with aclosing(yielded):
            while True:
                try:
                    step = anext(yielded) if wrong is None else yielded.athrow(wrong)
                    wrong = await self._take(await step)
                except StopAsyncIteration:
                    return self._made()

    async def _take(self, piece: Any) -> TypeError | None:
        """Pass a piece on, or keep the reply; what is wrong with anything else."""
        if isinstance(piece, str):
            piece = TextDelta(piece, self.ctx.request.message_id)
        if self._yielded.reply is not None:
            return TypeError("yielded more behind its reply, which comes last")
        try:
            check("what it yielded", piece, type(piece) if isinstance(piece, PIECES) else a_piece)
        except TypeError as error:
            return error
        if isinstance(piece, Completion):
            self._yielded.reply = piece
        else:
            await self._pass_on(piece)
        return None

    async def _pass_on(self, piece: Delta) -> None:
        if self._yielded.is_empty:
            self._out.begin()
        self._yielded.add(piece)
        clock = cast(Clock, self.view.clock)
        clock.pause()
        try:
            await self._out.put(piece)
        except BaseException as error:
            self.errors.append(error)
            raise
        finally:
            clock.resume()

    def _made(self) -> Completion:
        """The reply of a generator. Where it changed the pieces, that is changed alike."""
        reply, yielded = self._yielded.reply, self._yielded
        if reply is None and self._heard.reply is not None:
            raise TypeError("kept the reply to itself: yield the Completion, too, which comes last")
        if reply is None and yielded.is_empty:
            raise TypeError("yielded nothing (is a yield missing?)")
        made = yielded.agreed(self._heard)
        if yielded.stands_for(made, self._heard):
            self._out.reply = made
        return made

    def _usable(self, answer: Any) -> Any:
        value = super()._usable(answer)
        if value is None:
            raise TypeError(FORGOTTEN)
        if value is not self._out.reply:
            check("the answer", value, Completion)
        return value


def a_piece(value: Any) -> bool:
    """a piece of an answer, or the reply"""  # noqa: D400, D403 - a noun for sentences
    return isinstance(value, PIECES)


def _changes(request: Request | None, changes: dict[str, Any]) -> dict[str, Any]:
    """What is to be another in a request. Raises ``TypeError`` for what cannot be asked."""
    if request is not None:
        check("the request", request, Request)
        changes = {name: getattr(request, name) for name in IN_REQUEST} | changes
    for name, value in changes.items():
        if name not in IN_REQUEST:
            raise TypeError(f"call_next() takes no {name}; it takes {', '.join(IN_REQUEST)}")
        check(f"call_next({name}=...)", value, TurnContext.shapes[name])
    if (wrong := flaw(changes.get("messages", []))) is not None:
        raise TypeError(f"these messages cannot be sent: {wrong}")
    return {
        name: [kept(each) for each in value] if name in SHARED else copied(value)
        for name, value in changes.items()
    }


async def _ended(task: asyncio.Task[Any]) -> None:
    """End a task; what it raises then is of no interest."""
    if not task.done():
        task.cancel()
        await asyncio.wait([task])
    if not task.cancelled():
        task.exception()


# an answer in pieces, of which several attempts make one


class Track:
    """The text that was passed on of an answer, and how far the next attempt has come in it."""

    __slots__ = ("_at", "_parts")

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._at: int | None = None

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
    """What a wrap passes on. An attempt that says the same as one before is not shown twice.

    Where it says something else, that stands as a whole behind `ANEW`, a piece of its own. It is
    ``busy`` while an attempt is passed on: others at the same time are not. ``reply`` is the answer
    that the pieces stand for, once that is known.
    """

    __slots__ = ("_sink", "_text", "_thought", "busy", "reply")

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._text = Track()
        self._thought = Track()
        self.busy = False
        self.reply: Completion | None = None

    @property
    def text(self) -> str:
        """What was passed on of the attempt that is the last."""
        return self._text.text

    @property
    def thought(self) -> str:
        """The same of its reasoning."""
        return self._thought.text

    def begin(self) -> None:
        """The answer comes again from its beginning."""
        self._text.rewind()
        self._thought.rewind()
        self.reply = None

    async def put(self, piece: Delta) -> None:
        """Pass a piece on, as far as it is new."""
        kind = type(piece)
        if kind is not TextDelta and kind is not ThoughtDelta:
            return await self._sink(piece)
        delta = cast("TextDelta | ThoughtDelta", piece)
        for text in (self._text if kind is TextDelta else self._thought).new(delta.text):
            await self._sink(piece if text is delta.text else kind(text, delta.message_id))
        return None

    async def end(self, reply: Completion, message_id: str) -> None:
        """Pass on what of the answer was not."""
        shown = self.reply or Completion(self.text, reasoning=self.thought)
        if (shown.text, shown.reasoning) != (reply.text, reply.reasoning):
            self.begin()
            if reply.reasoning:
                await self.put(ThoughtDelta(reply.reasoning, message_id))
            if reply.text:
                await self.put(TextDelta(reply.text, message_id))
        for text in filter(None, self._text.end()):
            await self._sink(TextDelta(text, message_id))
        self.reply = reply


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
