"""The library's transport: messages of a client come in, messages for it go out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from crow.acp.handshake import AgentCapabilities
from crow.acp.jsonrpc import Message
from crow.acp.outbox import Outgoing


class Result(dict[str, Any]):
    """The result of a request, with what is to be done as soon as it stands in the queue."""

    def __init__(self, fields: Message, sent: Callable[[], object]) -> None:
        super().__init__(fields)
        self.sent = sent


class Greeted(Protocol):
    """A connection whose client said hello: what is on offer there, and the hello's parameters."""

    @property
    def offer(self) -> AgentCapabilities: ...
    @property
    def hello(self) -> Message: ...


class Incoming(Protocol):
    """Where a client's messages come from: a `crow.acp.stdio.StdioTransport`, for instance."""

    async def receive(self) -> Message | None: ...


class LibraryTransport:
    """What `acp.connection.Connection` sends through and receives from.

    ``ended`` is called at the end of input, before the requests fail that wait for an answer.
    """

    def __init__(
        self, link: Incoming, outbox: Outgoing, ended: Callable[[], object] | None = None
    ) -> None:
        self._link = link
        self._outbox = outbox
        self._ended = ended

    async def send(self, message: Message) -> None:
        """Queue a message, then wait for room."""
        error = message.get("error")
        if error is not None and error.get("data", error) is None:
            message = {**message, "error": {k: v for k, v in error.items() if k != "data"}}
        self._outbox.post(message)
        result = message.get("result")
        if isinstance(result, Result):
            result.sent()
        await self._outbox.room()

    async def receive(self) -> Message | None:
        """The next message; None at the end of input."""
        message = await self._link.receive()
        if message is None and self._ended is not None:
            self._ended()
        return message

    async def close(self) -> None:
        """Nothing more is sent."""
        self._outbox.close()
