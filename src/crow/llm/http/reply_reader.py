"""A response's body, read into a reply until nothing more has to be read, at a pace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from crow.core.errors import ModelError
from crow.core.ports.llm import Delta
from crow.llm.http.retry import Clock
from crow.llm.http.stream import EventStream

if TYPE_CHECKING:
    from crow.llm.http.wire import WireReply

SHARE = 8 * 1024
"""Bytes: some 50 pieces, a millisecond or two."""


class Pace:
    """Lets answers that come faster than they can be worked on go on in turns of the loop.

    All that ask one endpoint share one, so that many of them take no longer a turn than one does.
    """

    __slots__ = ("_said", "_turn")

    def __init__(self) -> None:
        self._said = 0
        self._turn = asyncio.Lock()

    def is_up(self, size: int) -> bool:
        """True where so many bytes more are too many for now: `turn` is to be awaited first."""
        self._said += size
        return self._said > SHARE

    async def turn(self, size: int) -> None:
        """Wait for a turn of the loop in which nobody else goes on who had to wait."""
        async with self._turn:
            await asyncio.sleep(0)
        self._said = size


PING = "ping"
"""The type of an event by which an endpoint says that its model is still at work."""


class ReplyReader:
    """Reads ``chunks`` into a reply, at a ``pace`` that lets others do something, too.

    The answer is whole at ``[DONE]``, at its finish reason and usage, or at the end of the body
    once a finish reason was given; the end of the body is not waited for. ``done`` once nothing
    more has to be read.
    """

    __slots__ = (
        *("_at_end", "_chunks", "_clock", "_events", "_pace", "_pings", "_reply", "_unread"),
        "_wrong",
        "done",
    )

    def __init__(
        self,
        chunks: AsyncGenerator[bytes, None],
        reply: WireReply,
        clock: Clock,
        pace: Pace,
        content_type: str,
    ) -> None:
        self._chunks = chunks
        self._reply = reply
        self._clock = clock
        self._pace = pace
        self._events = EventStream(content_type)
        self._at_end = False
        self._pings = 0
        self._unread = b""
        self._wrong: ModelError | None = None
        self.done = reply.complete or reply.said.overflowed

    async def deltas(self) -> list[Delta]:
        """What comes next. Raises `ModelError` where the answer breaks off."""
        if self._wrong is not None:
            raise self._wrong
        chunk = self._unread or await self._chunk()
        events = (
            self._events.end() if chunk is None else self._events.feed(await self._share(chunk))
        )
        self._at_end = chunk is None
        deltas: list[Delta] = []
        try:
            self._take(events, deltas)
        except ModelError as error:
            if not deltas:
                raise
            self._wrong, self.done = error, False  # it came behind them
        if deltas:
            self._clock.progress()
        elif self._events.pings > self._pings or any(each.get("type") == PING for each in events):
            self._pings = self._events.pings
            self._clock.ping()
        return deltas

    def _take(self, events: list[dict[str, Any]], deltas: list[Delta]) -> None:
        """Put what events say into ``deltas``, and the reply's end where it is there."""
        reply = self._reply
        for event in events:
            reply.take(event, deltas)
        if self._events.fault is not None:
            raise self._events.fault
        self.done = self._at_end or self._events.done or reply.complete or reply.said.overflowed
        if self.done:
            self._check_end()
            reply.end(deltas)

    async def _share(self, chunk: bytes) -> bytes:
        """As much of what came as may be worked on now."""
        self._unread, share = chunk[SHARE:], chunk[:SHARE]
        if self._pace.is_up(len(share)):
            await self._pace.turn(len(share))
        return share

    async def _chunk(self) -> bytes | None:
        try:
            return await self._clock.event(anext(self._chunks, None), closing=self._reply.finished)
        except ModelError:
            if self._reply.finished:
                return None
            raise

    def _check_end(self) -> None:
        if self._reply.said_nothing:
            raise ModelError("sent an empty answer", kind="protocol")
        if self._at_end and not (self._events.done or self._reply.finished):
            raise ModelError("broke off in the middle of its answer", kind="network")
