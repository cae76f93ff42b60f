"""A client's end of a network connection to an agent, by the protocol library's own transports."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from acp._transport import Transport

    from crow.testing.schema import Message


class Lines:
    """A transport of messages as the two byte streams of a `crow.testing.wire.Wire`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._written = b""
        self._closing: asyncio.Future[None] | None = None

    async def read(self, _size: int) -> bytes:
        """The next message as a line; empty at the end."""
        message = await self._transport.receive()
        return b"" if message is None else json.dumps(message).encode() + b"\n"

    def write(self, data: bytes) -> None:
        """Lines to be sent by `drain`."""
        self._written += data

    async def drain(self) -> None:
        """Send what was written."""
        *lines, self._written = self._written.split(b"\n")
        for line in lines:
            message: Message = json.loads(line)
            await self._transport.send(message)

    def close(self) -> None:
        """Hang up; `closed` waits for it."""
        self._closing = asyncio.ensure_future(self._transport.close())

    async def closed(self) -> None:
        """Wait until the other side knows."""
        if self._closing is None:
            self.close()
        assert self._closing is not None
        await self._closing


async def dial(url: str) -> Lines:
    """Connect to an agent's server: ``http://...``, or ``ws://...`` for a WebSocket."""
    if url.startswith("ws"):
        from acp.ws import create_websocket_stream

        return Lines(await create_websocket_stream(url))
    from acp.http import create_http_stream

    return Lines(create_http_stream(url))
