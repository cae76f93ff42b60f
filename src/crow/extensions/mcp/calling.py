"""Waiting for an answer: as long as there are signs of life, and not a moment longer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
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


async def answered(
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
