"""A server that whoever names it has itself, at the end of a connection that is there already.

Each request goes by itself, with its answer and what the server says meanwhile. There is no
handshake and no word without a request: the newest protocol needs neither.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from math import inf
from typing import TYPE_CHECKING, Any

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import (
    INTERNAL_ERROR,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    jsonrpc_message_adapter,
)

from crow.extensions.mcp.requests import Broken

if TYPE_CHECKING:
    from anyio.abc import TaskGroup
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from crow.extensions.mcp.description import Channel
    from crow.extensions.mcp.stdio import Streams


@asynccontextmanager
async def channel_streams(channel: Channel) -> AsyncGenerator[Streams]:
    """Exchange messages with a server; at the end nothing is asked of it any more."""
    to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](inf)
    to_server, from_session = anyio.create_memory_object_stream[SessionMessage](inf)
    try:
        async with anyio.create_task_group() as group:
            asking = Asking(channel, to_session, group)
            group.start_soon(asking.serve, from_session)
            try:
                yield from_server, to_server
            finally:
                group.cancel_scope.cancel()
    finally:
        for stream in (to_session, from_server, to_server, from_session):
            stream.close()


class Asking:
    """The requests to a server that are on, each in a task of its own."""

    def __init__(
        self,
        channel: Channel,
        to_session: MemoryObjectSendStream[SessionMessage | Exception],
        group: TaskGroup,
    ) -> None:
        self._channel = channel
        self._to_session = to_session
        self._group = group
        self._on: dict[str | int, anyio.CancelScope] = {}

    async def serve(self, from_session: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Send requests until there are no more."""
        async for item in from_session:
            match item.message:
                case JSONRPCRequest() as request:
                    self._group.start_soon(self._ask, request)
                case JSONRPCNotification(method="notifications/cancelled", params=params):
                    self._cancel((params or {}).get("requestId"))
                case _:  # the server has no way to hear anything else
                    pass

    def _cancel(self, request_id: Any) -> None:
        if request_id in self._on:
            self._on[request_id].cancel()

    async def _ask(self, request: JSONRPCRequest) -> None:
        """Send one request, and pass on what comes of it."""
        params = json.loads(request.model_dump_json(by_alias=True, exclude_unset=True))["params"]
        with anyio.CancelScope() as scope:
            self._on[request.id] = scope
            try:
                outcome = await self._channel.ask(request.method, params, self._hear)
            except OSError as error:
                outcome = {"error": {"code": INTERNAL_ERROR, "message": str(error)}}
            finally:
                self._on.pop(request.id, None)
            self._pass_on({"id": request.id, **outcome})

    def _hear(self, method: str, params: dict[str, Any] | None) -> None:
        """What the server says to a request before it answers that."""
        self._pass_on({"method": method, **({} if params is None else {"params": params})})

    def _pass_on(self, message: dict[str, Any]) -> None:
        self._to_session.send_nowait(_item({"jsonrpc": "2.0", **message}))


def _item(message: dict[str, Any]) -> SessionMessage | Exception:
    try:
        read: JSONRPCMessage = jsonrpc_message_adapter.validate_python(message, by_name=False)
    except ValueError:
        return Broken(json.dumps(message).encode())
    return SessionMessage(read)
