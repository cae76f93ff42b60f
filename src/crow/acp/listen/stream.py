"""One stream of server-sent events: numbered messages, each sent once, and again on demand."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable

from crow.acp.send_queue import SendQueue

KEPT = 512 * 1024
KEEPALIVE = 15.0
COMMENT = b": still here\n\n"


class Stream:
    """The messages of a connection, or of one session in it, for one reader at a time.

    Events carry ids that count from 1. About ``KEPT`` bytes of sent ones are kept for a reader
    that comes back and says which was the last that it got.
    """

    def __init__(self) -> None:
        self.queue = SendQueue(self._write)
        self.reader: object | None = None
        self._frames: deque[bytes] = deque()
        self._size = 0
        self._first = 1
        self._sent = 0
        self._written: Callable[[], object] | None = None
        self._news = asyncio.Event()
        self._is_closed = False

    def knows(self, last: int) -> bool:
        """True where everything behind an event can be sent (again)."""
        return self._first - 1 <= last < self._first + len(self._frames)

    async def frames(self, last: int | None = None) -> AsyncGenerator[bytes]:
        """What is to be sent, until the stream is closed or somebody else reads it.

        ``last`` is the event after which to begin; otherwise it is what was not sent yet.
        """
        me = self.reader = object()
        if last is not None:
            self._sent = last
        self._news.set()
        try:
            while self.reader is me:
                if (frame := self._next()) is not None:
                    yield frame
                    self._sent += 1 if self.reader is me else 0
                elif self._is_closed:
                    return
                else:
                    yield await self._quiet()
        finally:
            if self.reader is me:
                self.reader = None

    def close(self) -> None:
        """Nothing more comes; the reader gets what is left."""
        self.queue.close()
        self._is_closed = True
        self._news.set()

    def _next(self) -> bytes | None:
        """The next event that was not sent; None, and room for more, where all were."""
        index = self._sent + 1 - self._first
        if index < len(self._frames):
            return self._frames[index]
        self._trim()
        written, self._written = self._written, None
        if written is not None:
            written()
            return self._next()
        return None

    async def _quiet(self) -> bytes:
        """Wait for news; a comment where there are none, so that everybody between sees life."""
        self._news.clear()
        try:
            async with asyncio.timeout(KEEPALIVE):
                await self._news.wait()
        except TimeoutError:
            return COMMENT
        return b""

    def _write(self, data: bytes, written: Callable[[], object]) -> None:
        for line in filter(None, data.split(b"\n")):
            number = self._first + len(self._frames)
            frame = b"id: %d\ndata: %s\n\n" % (number, line)
            self._frames.append(frame)
            self._size += len(frame)
        self._written = written
        self._news.set()

    def _trim(self) -> None:
        """Forget what was sent long ago."""
        while self._size > KEPT and self._first <= self._sent:
            self._size -= len(self._frames.popleft())
            self._first += 1
