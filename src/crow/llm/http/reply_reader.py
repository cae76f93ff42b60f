"""A response's body, read into a reply until nothing more has to be read."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from crow.core.errors import ModelError
from crow.core.ports import Delta
from crow.llm.http.retry import Clock
from crow.llm.http.stream import EventStream
from crow.llm.http.wire import WireReply

PING = "ping"
"""The type of an event by which an endpoint says that its model is still at work."""


class ReplyReader:
    """Reads ``chunks`` into a reply.

    The answer is whole at ``[DONE]``, at its finish reason and usage, or at the end of the body
    once a finish reason was given; the end of the body is not waited for.
    """

    __slots__ = ("_at_end", "_chunks", "_clock", "_events", "_pings", "_reply")

    def __init__(
        self, chunks: AsyncGenerator[bytes, None], reply: WireReply, clock: Clock, content_type: str
    ) -> None:
        self._chunks = chunks
        self._reply = reply
        self._clock = clock
        self._events = EventStream(content_type)
        self._at_end = False
        self._pings = 0

    @property
    def done(self) -> bool:
        """True once nothing more has to be read."""
        reply = self._reply
        return self._at_end or self._events.done or reply.complete or reply.said.overflowed

    async def deltas(self) -> list[Delta]:
        """What the next chunk shows. Raises `ModelError` where the answer breaks off."""
        chunk = await self._chunk()
        self._at_end = chunk is None
        events = self._events.end() if chunk is None else self._events.feed(chunk)
        deltas: list[Delta] = []
        for event in events:
            self._reply.take(event, deltas)
        if self.done:
            self._check_end()
            self._reply.end(deltas)
        if deltas:
            self._clock.progress()
        elif self._events.pings > self._pings or any(each.get("type") == PING for each in events):
            self._pings = self._events.pings
            self._clock.ping()
        return deltas

    async def _chunk(self) -> bytes | None:
        finished = self._reply.finished
        try:
            return await self._clock.event(anext(self._chunks, None), closing=finished)
        except ModelError:
            if finished:
                return None
            raise

    def _check_end(self) -> None:
        if self._reply.said_nothing:
            raise ModelError("sent an empty answer", kind="protocol")
        if self._at_end and not (self._events.done or self._reply.finished):
            raise ModelError("broke off in the middle of its answer", kind="network")
