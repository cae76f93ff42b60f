"""Wraps around a request: an answer goes through them in pieces, and agrees with what they say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any, TypeAlias, cast

from crow.core.events import CallDelta, Notice, Retrying, TextDelta, ThoughtDelta
from crow.core.history import flaw
from crow.core.hooks.call_next import NextRequest, RequestAttempt
from crow.core.hooks.contexts import TurnContext
from crow.core.hooks.hook import Hook
from crow.core.hooks.proxy import IN_REQUEST, SHARED, copied
from crow.core.hooks.wraps import FORGOTTEN, Go, Layer, Wrap
from crow.core.hooks.wraps.stream import Channel, Heard, Outlet, Sink, nowhere
from crow.core.ports.llm import Completion, Delta, Request
from crow.core.support.clock import Clock
from crow.core.support.frozen import kept
from crow.core.support.validation import check
from crow.core.verdicts import Answer

Said: TypeAlias = Awaitable[Completion | Answer] | AsyncIterable[Delta | Completion | str]
"""What a hook around a request is: a coroutine that returns the reply, or yields its pieces."""
DELTAS = (TextDelta, ThoughtDelta, CallDelta, Retrying, Notice)
PIECES = (*DELTAS, Completion)


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

    _heard: Heard
    _yielded: Heard

    def __init__(self, hook: Hook, view: Any, ctx: Any, go: Go, sink: Sink) -> None:
        Layer.__init__(self, hook, view, ctx, go, sink)
        self._out = Outlet(sink)
        self._failed = False

    def _unseen(self, answer: Any) -> Awaitable[None] | None:
        out = self._out
        return None if out.shows(answer) else out.end(answer, self.ctx.request.message_id)

    def call_next(self, request: Request | None = None, /, **changes: Any) -> RequestAttempt:
        """Ask the model, another request or a changed one where that is given."""
        new = _changes(request, changes) if request is not None or changes else None
        self._last = attempt = RequestAttempt(self._attempt(new, self._out.put), self, new)
        return attempt

    async def _alone(self) -> Completion:
        return await self._onward(None, self._out.put)

    async def _onward(self, new: dict[str, Any] | None, sink: Sink) -> Completion:
        ctx, out = self.ctx, self._out
        if new is not None:
            others = [name for name in new if new[name] != getattr(ctx.request, name)]
            self.changed = tuple(dict.fromkeys((*self.changed, *others)))
            ctx = TurnContext(ctx.run, replace(ctx.request, **new))
        if sink != out.put:
            return await self._go(ctx, sink)
        if out.busy:
            return await self._go(ctx, nowhere)
        out.begin()
        out.busy = True
        try:
            reply: Completion = await self._go(ctx, sink)
        finally:
            out.busy = False
        out.reply = reply
        return reply

    async def pieces(self, new: dict[str, Any] | None) -> AsyncGenerator[Delta | Completion, None]:
        """What the model says, for the hook: its time stands still while it waits for that."""
        if self._failed:
            self._yielded, self._failed = Heard(), False
        channel, clock = Channel(), cast(Clock, self.view.clock)
        heard = self._heard = Heard()
        task: asyncio.Task[Completion] = asyncio.create_task(self._attempt(new, channel.put))
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
        except (Exception, asyncio.CancelledError):  # as where its time is over
            self._failed = True
            raise
        finally:
            await _ended(task)

    async def driven(self, yielded: AsyncGenerator[Any, Any]) -> Completion:
        """The answer of a hook that is a generator: what it yields goes on, its reply comes last.

        What cannot go on is raised where it was yielded.
        """
        self._heard = self._yielded = Heard()
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
        if answer is not None and answer is self._out.reply:
            return answer
        value = super()._usable(answer)
        if value is None:
            raise TypeError(FORGOTTEN)
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
