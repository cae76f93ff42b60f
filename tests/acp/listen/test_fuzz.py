"""Whatever a client writes over WebSocket or HTTP: each request has exactly one answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.acp.test_fuzz import FUZZ, Line, answered, lines
from websockets.asyncio.client import ClientConnection, connect

from crow.testing.wire import Wire

HELLO = {"protocolVersion": 1, "clientCapabilities": {}}
REFUSED = -32600


def unchecked(message: dict[str, Any], method: str | None) -> None:
    """A client that has sent one id twice cannot say what an answer is for."""


class Socket:
    """A WebSocket as the two byte streams of a `crow.testing.wire.Wire`: each line is a frame."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.written = b""

    async def read(self, _size: int) -> bytes:
        return str(await self.socket.recv()).encode() + b"\n"

    def write(self, data: bytes) -> None:
        self.written += data

    async def drain(self) -> None:
        *frames, self.written = self.written.split(b"\n")
        for frame in frames:
            await self.socket.send(frame.decode())

    def close(self) -> None:
        """Nothing: the socket is closed by whoever has opened it."""


class Posts:
    """The same over HTTP: each line is posted, all streams are read.

    A request that is refused by its status has its answer in that.
    """

    def __init__(self, client: httpx2.AsyncClient, url: str) -> None:
        self.client = client
        self.url = url
        self.written = b""
        self.connection: dict[str, str] = {}
        self.arrived: asyncio.Queue[bytes] = asyncio.Queue()
        self.streams: dict[str, asyncio.Task[None]] = {}

    async def read(self, _size: int) -> bytes:
        return await self.arrived.get() + b"\n"

    def write(self, data: bytes) -> None:
        self.written += data

    async def drain(self) -> None:
        *posts, self.written = self.written.split(b"\n")
        for post in posts:
            await self._post(post)

    async def _post(self, body: bytes) -> None:
        headers = {"Content-Type": "application/json", **self.connection, **session_of(body)}
        reply = await self.client.post(self.url, content=body, headers=headers)
        if reply.status_code == 202:
            return
        if (made := reply.headers.get("Acp-Connection-Id")) is not None:
            self.connection = {"Acp-Connection-Id": made}
            self.listen("")
        said = reply.json()
        if "jsonrpc" in said:
            self._take(reply.content)
            return
        for name in answered(body):
            error = {"code": REFUSED, "message": said["error"]}
            answer = {"jsonrpc": "2.0", "id": json.loads(name), "error": error}
            self._take(json.dumps(answer).encode())

    def listen(self, session: str) -> None:
        """Read the stream of a session, or of the connection."""
        if session not in self.streams:
            self.streams[session] = asyncio.create_task(self._listen(session))

    async def _listen(self, session: str) -> None:
        named = {"Acp-Session-Id": session} if session else {}
        headers = {"Accept": "text/event-stream", **self.connection, **named}
        async with self.client.stream("GET", self.url, headers=headers) as stream:
            async for line in stream.aiter_lines():
                if line.startswith("data: "):
                    self._take(line.removeprefix("data: ").encode())

    def _take(self, data: bytes) -> None:
        message = json.loads(data)
        opened = message.get("result") or {}
        if isinstance(opened, dict) and "sessionId" in opened:
            self.listen(opened["sessionId"])
        self.arrived.put_nowait(data)

    def close(self) -> None:
        """Read nothing more."""
        for task in self.streams.values():
            task.cancel()


def session_of(body: bytes) -> dict[str, str]:
    """The header that names the session of a message, where a header can."""
    with suppress(ValueError, RecursionError, AttributeError):
        session = (json.loads(body).get("params") or {}).get("sessionId")
        if isinstance(session, str) and session.isascii() and session.isalnum():
            return {"Acp-Session-Id": session}
    return {}


@asynccontextmanager
async def connected(server: Any, scheme: str) -> AsyncGenerator[Wire]:
    """A client that has been greeted, and whose messages are all read."""
    async with connection(server, scheme) as ends:
        wire = Wire(ends, ends, check=unchecked)
        reading = asyncio.create_task(read(wire))
        try:
            assert "result" in await wire.request("initialize", HELLO)
            yield wire
        finally:
            reading.cancel()
            ends.close()


@asynccontextmanager
async def connection(server: Any, scheme: str) -> AsyncGenerator[Any]:
    if scheme == "ws":
        async with connect(server.ws, max_size=None) as socket:
            yield Socket(socket)
        return
    limits = httpx2.Limits(max_connections=None)
    async with httpx2.AsyncClient(timeout=60, limits=limits, trust_env=False) as client:
        posts = Posts(client, server.http)
        yield posts
        await client.delete(server.http, headers=posts.connection)


async def read(wire: Wire) -> None:
    while await wire.receive() is not None:
        pass


async def play(server: Any, scheme: str, cwd: Path, written: list[bytes]) -> None:
    """Write lines, over WebSocket those that are text."""
    if scheme == "ws":
        written = [line.decode("utf-8", "replace").encode() for line in written]
    async with connected(server, scheme) as wire:
        await Line(wire, cwd).take(written)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("scheme", ["ws", "http"])
@settings(max_examples=200, **FUZZ)
@given(written=st.lists(lines(), min_size=1, max_size=8))
async def test_every_request_from_afar_has_one_answer(
    server: Any, scheme: str, tmp_path: Path, written: list[bytes]
) -> None:
    await play(server, scheme, tmp_path, written)
