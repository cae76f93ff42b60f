"""A turnstile for tasks that would all compute in the same turn of the event loop."""

from __future__ import annotations

import asyncio
from collections import deque


class Turnstile:
    """Lets one task through in each turn of the loop, in the order in which they came.

    A hundred that go on at once are one turn of the loop otherwise, in which nothing else is heard.
    """

    __slots__ = ("_loop", "_waiting")

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def turn(self) -> None:
        """Wait for one's turn, which is at once where nobody else has had this one."""
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            waiting = loop.create_future()
            self._waiting.append(waiting)
            await waiting
        else:
            self._loop, self._waiting = loop, deque()
            loop.call_soon(self._next, self._waiting)

    def _next(self, waiting: deque[asyncio.Future[None]]) -> None:
        while waiting:
            one = waiting.popleft()
            if not one.done():  # who was cancelled has left
                one.set_result(None)
                one.get_loop().call_soon(self._next, waiting)
                return
        self._loop = None
