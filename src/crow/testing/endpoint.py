"""A model's endpoint on loopback that plays scripted responses, faults included.

It speaks HTTP over a plain socket, so that it can do what no well-behaved server does: stop in
the middle, reset the connection, split a character between two packets.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any, Self, TypeAlias

from crow.core.support.frozen import frozen


class Act(Enum):
    """Something to do other than to send: end the connection, reset it, or fall silent."""

    CLOSE = "close"
    RESET = "reset"
    HANG = "hang"


CLOSE, RESET, HANG = Act.CLOSE, Act.RESET, Act.HANG
Step: TypeAlias = bytes | float | Act
Response: TypeAlias = Sequence[Step]
"""What an endpoint sends: bytes, seconds to wait, and what becomes of the connection."""


@frozen
class Received:
    """A request as it arrived; ``at`` is the event loop's time, ``connection`` counts from 1."""

    path: str
    headers: dict[str, str]
    raw: bytes
    at: float
    connection: int

    @property
    def body(self) -> dict[str, Any]:
        """The JSON that was sent."""
        return json.loads(self.raw)


class Endpoint:
    """``async with Endpoint() as endpoint``; ``endpoint.play(...)`` adds one response a request.

    ``requests`` holds what was asked, ``sent`` counts the bytes of the responses, ``asked`` is
    set by every request, ``hung_up`` is set when a client leaves a response that
    hangs. A request past the script is answered with status 418. Whoever asks which models there
    are is told ``models`` (names, or rows as they stand in such a list), and that is neither in the
    script nor in ``requests``; ``others`` are answers to other paths, of which the same holds.
    """

    def __init__(self) -> None:
        self.requests: list[Received] = []
        self.asked = asyncio.Event()
        self.hung_up = asyncio.Event()
        self.sent = 0
        self.url = ""
        self.models: list[str | dict[str, Any]] = []
        self.others: dict[str, Any] = {}
        self._script: list[Response] = []
        self._connections = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def connections(self) -> int:
        """How many connections were made."""
        return self._connections

    def play(self, *responses: Response) -> None:
        """Add responses, one for each request to come."""
        self._script.extend(responses)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._connections += 1
        number = self._connections
        try:
            while received := await self._receive(reader, number):
                steps = self._steps(received)
                if not await self._send(steps, reader, writer):
                    break
        except ConnectionError:
            self.hung_up.set()
        except asyncio.CancelledError:
            pass
        finally:
            writer.close()

    def _steps(self, received: Received) -> Response:
        """The response to a request."""
        if received.path in self.others:
            return respond(200, self.others[received.path])
        if received.path.endswith("/models"):
            rows = [{"id": each} if isinstance(each, str) else each for each in self.models]
            return respond(200, {"object": "list", "data": rows})
        self.requests.append(received)
        self.asked.set()
        return self._answer(received)

    def _answer(self, received: Received) -> Response:
        """What the script has for it."""
        return self._script.pop(0) if self._script else respond(418, "past the script")

    async def _receive(self, reader: asyncio.StreamReader, number: int) -> Received | None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return None
        first, *lines = head.decode("latin-1").strip().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        now = asyncio.get_running_loop().time()
        return Received(first.split(" ")[1], headers, raw, now, number)

    async def _send(
        self, steps: Response, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Play one response; whether the connection can take another request."""
        for step in steps:
            match step:
                case bytes():
                    writer.write(step)
                    await writer.drain()
                    self.sent += len(step)
                case float() | int():
                    await asyncio.sleep(step)
                case Act.HANG:
                    await reader.read()
                    self.hung_up.set()
                    return False
                case Act.RESET:
                    _reset(writer)
                    return False
                case Act.CLOSE:
                    return False
        return True


def _reset(writer: asyncio.StreamWriter) -> None:
    """End with RST in place of FIN."""
    raw: socket.socket = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def respond(status: int, body: object, **headers: object) -> list[Step]:
    """A whole response: a text as it is, anything else as JSON. ``_`` in header names is ``-``."""
    text = body if isinstance(body, str) else json.dumps(body)
    kind = "text/plain" if isinstance(body, str) else "application/json"
    fields = {"content_type": kind, "content_length": len(text.encode()), **headers}
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return ["\r\n".join([f"HTTP/1.1 {status} Scripted", *lines, "", text]).encode()]


def begin(content_type: str = "text/event-stream") -> bytes:
    """The head of a streamed response."""
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n"
    return head.encode()


def piece(data: bytes) -> bytes:
    """A piece of a streamed body, as one HTTP chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


END = b"0\r\n\r\n"  # of a streamed body


def event(value: object) -> bytes:
    """A server-sent event: a text as it is, anything else as JSON."""
    data = value if isinstance(value, str) else json.dumps(value)
    return f"data: {data}\n\n".encode()


def delta(
    finish: str | None = None, usage: dict[str, Any] | None = None, **fields: Any
) -> dict[str, Any]:
    """An event of a chat completion; ``fields`` are those of its delta."""
    choice = {"index": 0, "delta": fields, "finish_reason": finish}
    value: dict[str, Any] = {"model": "scripted", "choices": [choice]}
    return {**value, "usage": usage} if usage else value


def stream(*events: object, done: bool = True) -> list[Step]:
    """A whole streamed response; texts are said, bytes sent as they are, acts and pauses done."""
    steps: list[Step] = [begin()]
    for each in events:
        match each:
            case bytes():
                steps.append(each if each is END else piece(each))
            case float() | Act():
                steps.append(each)
            case str():
                steps.append(piece(event(delta(content=each))))
            case _:
                steps.append(piece(event(each)))
    if done:
        steps += [piece(event("[DONE]")), END]
    return steps


def answer(text: str) -> list[Step]:
    """The response of a model that says this and nothing else."""
    return stream(*_words(text), delta(finish="stop"), USAGE)


USAGE: dict[str, Any] = {
    "choices": [],
    "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
}


def _words(text: str) -> Iterable[str]:
    return text.replace(" ", " \0").split("\0")
