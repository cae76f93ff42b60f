"""A client's end of a connection to an agent: writes and reads lines, and keeps all of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from crow.testing.official_schema import fault as official_fault
from crow.testing.schema import Message
from crow.testing.schema import fault as schema_fault

CHUNK = 64 * 1024


def fault(message: Message, method: str | None) -> str | None:
    """What is wrong with a message of version 1, by the library or by the official schema."""
    return schema_fault(message, method) or official_fault(message, method)


class Wire:
    """A transport for the protocol's library that records, and checks what it reads.

    ``received`` and ``sent`` are all messages in order, ``log`` both as they came (`True` with
    those that were sent); ``faults`` says what was wrong with the
    received ones, in the words of ``check``, which gets a message and the method that it answers.
    `pause` makes a client of it that does not read; requests of the methods in ``silent`` are never
    answered.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        source: asyncio.BaseTransport | None = None,
        check: Callable[[Message, str | None], str | None] = fault,
    ) -> None:
        self.received: list[Message] = []
        self.sent: list[Message] = []
        self.log: list[tuple[bool, Message]] = []
        self.faults: list[str] = []
        self.silent: frozenset[str] = frozenset()
        self._reader = reader
        self._writer = writer
        self._source = source
        self._check = check
        self._methods: dict[Any, str] = {}
        self._chunks = [b""]
        self._raw: dict[str, asyncio.Future[Message]] = {}
        self._news = asyncio.Condition()
        self._reading = asyncio.Event()
        self._reading.set()
        self._is_over = False

    async def send(self, message: Message) -> None:
        """Write a message."""
        self.sent.append(message)
        self.log.append((True, message))
        if "method" in message and "id" in message:
            self._methods[message["id"]] = message["method"]
        await self.write(json.dumps(message).encode() + b"\n")

    async def write(self, data: bytes) -> None:
        """Write anything, well-formed or not. Raises `ConnectionError` where nobody reads it."""
        if self._is_over:
            raise ConnectionError("the agent has hung up")
        self._writer.write(data)
        await self._writer.drain()

    async def request(self, method: str, params: Any = None) -> Message:
        """Send a request as it is and wait for the whole response, error or not."""
        request_id = f"raw-{len(self._raw)}"
        self._raw[request_id] = asyncio.get_running_loop().create_future()
        await self.send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
        return await self._raw[request_id]

    async def receive(self) -> Message | None:
        """The next message for the library; None at the end."""
        while line := await self._line():
            message = self._take(line)
            async with self._news:
                self._news.notify_all()
            if message is not None:
                return message
        return None

    async def close(self) -> None:
        """Hang up."""
        self._writer.close()
        if self._source is not None:
            self._source.close()

    def pause(self) -> None:
        """Read nothing more until `resume`."""
        self._reading.clear()

    def resume(self) -> None:
        """Read on."""
        self._reading.set()

    async def until(self, is_met: Callable[[], bool]) -> None:
        """Wait until a condition on what was received is met."""
        async with self._news:
            await self._news.wait_for(is_met)

    async def _line(self) -> bytes:
        """The next line; empty at the end."""
        while b"\n" not in self._chunks[-1]:
            await self._reading.wait()
            chunk = await self._reader.read(CHUNK)
            if not chunk:
                self._is_over = True
                return b""
            self._chunks.append(chunk)
        line, _, rest = b"".join(self._chunks).partition(b"\n")
        self._chunks = [rest]
        return line + b"\n"

    def _take(self, line: bytes) -> Message | None:
        """Record a line; the message where the library is to see it."""
        try:
            message: Message = dict(json.loads(line))
        except (TypeError, ValueError):
            self.faults.append(f"not a JSON object: {line[:200]!r}")
            return None
        self.received.append(message)
        self.log.append((False, message))
        is_response = "method" not in message
        method = self._methods.get(message.get("id")) if is_response else None
        if wrong := self._check(message, method):
            self.faults.append(wrong)
        if is_response and (waiting := self._raw.get(message.get("id", ""))):
            waiting.set_result(message)
            return None
        return None if message.get("method") in self.silent else message
