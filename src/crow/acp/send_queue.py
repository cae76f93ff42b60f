"""Everything on its way to the client: one queue, in order, with a limit on what waits in it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from typing import Protocol

from crow.acp.jsonrpc import Message
from crow.acp.limits import bounded

LIMIT = 256 * 1024
BATCH = 64 * 1024
PIECE = 16 * 1024

Send = Callable[[bytes, Callable[[], object]], None]
Build = Callable[[str], Message]


class MessageSink(Protocol):
    """A sink for messages to a client: a `SendQueue`, or several behind one front."""

    @property
    def has_room(self) -> bool: ...
    def post(self, message: Message, key: Hashable = None) -> None: ...
    def post_text(self, build: Build, text: str, key: Hashable) -> None: ...
    async def room(self) -> None: ...
    async def drained(self) -> None: ...
    def close(self) -> None: ...


class QueuedMessage:
    """A message that waits, or pieces of text that become one."""

    __slots__ = ("build", "data", "key", "pieces", "size")

    def __init__(self, data: bytes, build: Build | None, text: str, key: Hashable) -> None:
        self.data = data
        self.build = build
        self.pieces = [text]
        self.key = key
        self.size = len(data) or len(text) + 200

    def encoded(self) -> bytes:
        """The line for the wire."""
        return bounded(self.build("".join(self.pieces))) if self.build else self.data


class SendQueue:
    """The queue. ``post`` never waits, ``put`` waits behind it while more is queued than allowed.

    While one batch is being written, text with the same key grows together to one message, and a
    message replaces the one before it that has the same key.
    """

    def __init__(self, send: Send, limit: int = LIMIT) -> None:
        self._send = send
        self._limit = limit
        self._entries: deque[QueuedMessage] = deque()
        self._size = 0
        self._is_writing = False
        self._is_closed = False
        self._room = asyncio.Event()
        self._idle = asyncio.Event()
        self._room.set()
        self._idle.set()

    def post(self, message: Message, key: Hashable = None) -> None:
        """Queue a message; one with a key replaces the last one if that has the same key."""
        if key is not None and self._entries and self._entries[-1].key == key:
            self._size -= self._entries.pop().size
        self._append(QueuedMessage(bounded(message), None, "", key))

    def post_text(self, build: Build, text: str, key: Hashable) -> None:
        """Queue text; ``build`` makes the message of as much as is sent at once."""
        for start in range(0, len(text), PIECE):
            piece = text[start : start + PIECE]
            last = self._entries[-1] if self._entries else None
            if last is not None and last.key == key and last.size + len(piece) <= PIECE:
                last.pieces.append(piece)
                last.size += len(piece)
                self._grow(len(piece))
            else:
                self._append(QueuedMessage(b"", build, piece, key))

    @property
    def has_room(self) -> bool:
        """True where `room` would not wait."""
        return self._room.is_set()

    async def room(self) -> None:
        """Wait while more is queued than the client could take yet."""
        await self._room.wait()

    async def drained(self) -> None:
        """Wait until everything was written."""
        await self._idle.wait()

    def close(self) -> None:
        """Take nothing more, and let nobody wait."""
        self._is_closed = True
        self._entries.clear()
        self._size = 0
        self._room.set()
        self._idle.set()

    def _append(self, entry: QueuedMessage) -> None:
        if self._is_closed:
            return
        self._entries.append(entry)
        self._grow(entry.size)

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > self._limit:
            self._room.clear()
        if not self._is_writing:
            self._is_writing = True
            self._idle.clear()
            asyncio.get_running_loop().call_soon(self._write)

    def _write(self) -> None:
        batch: list[bytes] = []
        size = 0
        while self._entries and size < BATCH:
            entry = self._entries.popleft()
            self._size -= entry.size
            batch.append(entry.encoded())
            size += len(batch[-1])
        self._send(b"".join(batch), self._written)

    def _written(self) -> None:
        if self._size <= self._limit:
            self._room.set()
        if self._entries:
            self._write()
        else:
            self._is_writing = False
            self._idle.set()
