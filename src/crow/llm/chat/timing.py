"""How long to wait for an endpoint: four ceilings, and the clock that counts towards them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from crow.core.errors import ModelError
from crow.core.frozen import frozen

T = TypeVar("T")


@frozen
class Timeouts:
    """Ceilings in seconds.

    ``connect`` bounds reaching the endpoint, ``first_byte`` the wait for the response's headers,
    ``idle`` the wait for something of meaning (text, reasoning, a call; neither bytes nor comments
    count), ``total`` all waiting for one request with its retries. ``closing`` is how long a
    stream that gave its finish reason may take to say that it is done.
    """

    connect: float = 15.0
    first_byte: float = 300.0
    idle: float = 300.0
    total: float = 3600.0
    closing: float = 5.0


class Clock:
    """Counts the time that one request spends waiting; what its reader takes is not counted."""

    __slots__ = ("_idle", "_loop", "_spent", "timeouts")

    def __init__(self, timeouts: Timeouts) -> None:
        self.timeouts = timeouts
        self._loop = asyncio.get_running_loop()
        self._idle = 0.0
        self._spent = 0.0

    @property
    def exhausted(self) -> bool:
        """True once the total is spent."""
        return self._spent >= self.timeouts.total

    def progress(self) -> None:
        """Something of meaning came: the idle time starts again."""
        self._idle = 0.0

    async def headers(self, pending: Awaitable[T]) -> T:
        """Wait for a response to begin. Raises `ModelError` (timeout)."""
        self._idle = 0.0
        limit = self.timeouts.connect + self.timeouts.first_byte
        response = await self._wait(pending, limit, f"sent no response in {limit:g} s")
        self._idle = 0.0
        return response

    async def event(self, pending: Awaitable[T], *, closing: bool = False) -> T:
        """Wait for more of a response. Raises `ModelError` (timeout)."""
        limit = min(self.timeouts.closing, self.timeouts.idle) if closing else self.timeouts.idle
        return await self._wait(pending, limit - self._idle, f"stalled: nothing new in {limit:g} s")

    async def pause(self, seconds: float) -> None:
        """Wait between two attempts."""
        await self._wait(asyncio.sleep(seconds), float("inf"), "")

    async def _wait(self, pending: Awaitable[T], limit: float, what: str) -> T:
        left = self.timeouts.total - self._spent
        began = self._loop.time()
        ceiling = asyncio.timeout(max(0.0, min(limit, left)))
        try:
            async with ceiling:
                return await pending
        except TimeoutError as error:
            if not ceiling.expired():
                raise
            if left <= limit:
                text = f"took longer than {self.timeouts.total:g} s in total"
                raise ModelError(text, kind="timeout") from error
            raise ModelError(what, kind="timeout") from error
        finally:
            waited = self._loop.time() - began
            self._idle += waited
            self._spent += waited
