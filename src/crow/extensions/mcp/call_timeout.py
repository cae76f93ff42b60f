"""The time-out of a call: it lasts as long as there are signs of life, and not a moment longer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar  # noqa: TID251 - the library hands it on, and nothing else
from typing import Any, TypeVar

from crow import ToolEnvironment
from crow.extensions.mcp.failure import plain

T = TypeVar("T")
LONGEST = 500
POLL = 0.5


class Pulse:
    """The signs of life of one call: its progress, and questions to the user.

    ``call_id`` is the session's call that it is, empty where it is none.
    """

    def __init__(self, limit: float, call_id: str = "") -> None:
        self.limit = limit
        self.call_id = call_id
        self._until = asyncio.get_running_loop().time() + limit
        self._text = ""
        self._news = asyncio.Event()

    def beat(self) -> None:
        """There was a sign of life."""
        self._until = asyncio.get_running_loop().time() + self.limit

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        """The library tells of progress; only the latest is kept until it is shown."""
        self.beat()
        share = f"{progress:g} of {total:g}" if total else f"{progress:g}"
        self._text = plain(f"{share}: {message}" if message else share)[:LONGEST]
        self._news.set()

    @property
    def left(self) -> float:
        """Seconds until the call is given up."""
        return self._until - asyncio.get_running_loop().time()

    def take(self) -> str:
        """The latest progress, once."""
        text, self._text = self._text, ""
        self._news.clear()
        return text

    async def wait(self, task: asyncio.Future[Any]) -> None:
        """Wait for the answer, for news, or for the end of the patience."""
        news = asyncio.ensure_future(self._news.wait())
        try:
            left = self.left if self.left > 0 else POLL
            await asyncio.wait({task, news}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        finally:
            news.cancel()


REQUEST: ContextVar[Pulse] = ContextVar("request")
"""The request that something came of."""


class Calls:
    """The calls under way at a server, and what it asks the user meanwhile.

    No call is given up while the user is asked, and no question outlives the last call.
    """

    def __init__(self) -> None:
        self._pulses: set[Pulse] = set()
        self._questions: set[asyncio.Task[Any]] = set()

    @property
    def asking(self) -> str:
        """The id of the call that a question belongs to; empty where that cannot be told.

        What a server asks in the stream of a request, or as its result, comes in the context that
        the request was sent in. Elsewhere it is the only call that there is.
        """
        pulse = REQUEST.get(None)
        if pulse is not None and pulse in self._pulses:
            return pulse.call_id
        ids = [pulse.call_id for pulse in self._pulses]
        return ids[0] if len(ids) == 1 else ""

    async def answer(
        self, asking: Coroutine[Any, Any, T], pulse: Pulse, ctx: ToolEnvironment | None
    ) -> T:
        """The answer. Raises ``TimeoutError`` when the signs of life end."""
        self._pulses.add(pulse)
        try:
            known = in_its_context(asking, pulse)
            return await with_timeout(known, pulse, ctx, lambda: bool(self._questions))
        finally:
            self._pulses.discard(pulse)
            if not self._pulses:
                for question in self._questions:
                    question.cancel()

    async def wait(self, question: asyncio.Task[Any]) -> None:
        """Wait until the user has answered, or the question is given up."""
        self._questions.add(question)
        try:
            await asyncio.wait({question})
        finally:
            question.cancel()
            self._questions.discard(question)
            for pulse in self._pulses:
                pulse.beat()


async def in_its_context(asking: Coroutine[Any, Any, T], pulse: Pulse) -> T:
    """The answer to a request; the task is its own."""
    REQUEST.set(pulse)
    return await asking


async def with_timeout(
    asking: Coroutine[Any, Any, T],
    pulse: Pulse,
    ctx: ToolEnvironment | None,
    is_asked: Callable[[], bool],
) -> T:
    """The answer. Raises ``TimeoutError`` when the signs of life end, unless the user ``is_asked``.

    A call that is given up is cancelled, and tells the server so; nobody waits for that.
    """
    task = asyncio.ensure_future(asking)
    try:
        while not task.done():
            if pulse.left <= 0 and not is_asked():
                raise TimeoutError
            await pulse.wait(task)
            text = pulse.take()
            if text and ctx is not None:
                await ctx.progress(f"{text}\n")
        return task.result()
    finally:
        if not task.done():
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            task.cancel()
