"""The filter of a server's responses: what is wrong is mended, or fails what it answers.

The library refuses a whole list for one tool in it, a result that lacks a field, and lets a call
wait for ever where its answer cannot be read.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Self, cast

import anyio
from mcp.shared.inbound import find_invalid_x_mcp_header
from mcp.shared.message import SessionMessage
from mcp.types import (
    REQUEST_TIMEOUT,
    UNSUPPORTED_PROTOCOL_VERSION,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCResponse,
)
from mcp.types.methods import validate_server_result
from mcp.types.version import LATEST_MODERN_VERSION
from pydantic import ValidationError

from crow.dataclasses import frozen
from crow.extensions.mcp.requests import Broken, Request, Requests, clean, failed
from crow.extensions.mcp.schema import fault

Item = SessionMessage | Exception
Drop = Callable[[str, str], None]
PROBE = "server/discover"
CACHED = frozenset(
    {PROBE, "tools/list", "prompts/list", "resources/list", "resources/templates/list"}
    | {"resources/read"}
)
"""Methods whose results say how long they hold."""

VERSIONS = {"supported": [LATEST_MODERN_VERSION], "requested": ""}
"""What a server that refuses a version should say, where it does not."""


@frozen
class FilterObserver:
    """Whom a sieve tells: of tools that are left out, of lines that are nothing, of the end."""

    drop: Drop
    stray: Callable[[bytes], None]
    gone: Callable[[], None]


class ResponseFilter:
    """A stream of messages, as the library reads it. ``gone`` is called where it ends.

    Each request gets an answer as soon as it is clear what that is: also where the server's is
    broken, or is meant for a request that was never made. A probe for the newest protocol is
    answered here where the server has been silent for ``patience`` seconds.
    """

    def __init__(
        self, stream: Any, requests: Requests, tell: FilterObserver, patience: float | None
    ) -> None:
        self._stream = stream
        self._requests = requests
        self._tell = tell
        self._silent_at = None if patience is None else anyio.current_time() + patience

    @property
    def last_context(self) -> Any:
        """What the web transports tell of a message's sender."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Item:
        """The next message."""
        while True:
            try:
                item = await self._next()
            except (anyio.EndOfStream, anyio.ClosedResourceError):
                self._tell.gone()
                raise
            if isinstance(item, Broken):
                item = self._mended(item.line)
            elif isinstance(item, SessionMessage):
                item.message = self._settled(item.message)
            if item is not None:
                return item

    async def _next(self) -> Item | None:
        if self._silent_at is None:
            return await self._stream.receive()
        with anyio.move_on_after(self._silent_at - anyio.current_time()):
            return await self._stream.receive()
        self._silent_at = None
        probe = self._requests.of_method(PROBE)
        if probe is None:
            return None
        self._requests.take(probe.id)
        return SessionMessage(failed(probe, "the server is silent", REQUEST_TIMEOUT))

    def _mended(self, line: bytes) -> Item | None:
        message = self._requests.repaired(line)
        if message is None:
            self._tell.stray(line)
            return None
        return SessionMessage(self._settled(message))

    def _settled(self, message: JSONRPCMessage) -> JSONRPCMessage:
        """An answer as the library can take it; whatever else there is as it came."""
        if not isinstance(message, JSONRPCResponse | JSONRPCError):
            return message
        request = self._requests.take(message.id)
        if request is None:
            return self._claimed(message)
        if isinstance(message, JSONRPCResponse):
            message.result = completed(request, clean(message.result))
            if request.method == "tools/list":
                drop_invalid_tools(message.result, self._tell.drop, is_modern=request.is_modern)
        elif message.error.code == UNSUPPORTED_PROTOCOL_VERSION:
            given = cast("object", message.error.data)
            message.error.data = {**VERSIONS, **(given if isinstance(given, dict) else {})}
        return message

    def _claimed(self, message: JSONRPCResponse | JSONRPCError) -> JSONRPCMessage:
        """An answer to nothing: that of the only request that waits, or one that comes too late."""
        request = self._requests.meant(message.id)
        if request is None:
            return message
        self._requests.take(request.id)
        if isinstance(message, JSONRPCError) and message.id is None:
            return JSONRPCError(jsonrpc="2.0", id=request.id, error=message.error)
        return failed(request, f"the server answered a request that was not made: {message.id!r}")

    async def aclose(self) -> None:
        """Read no more."""
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class RequestRecorder:
    """A stream of messages, as the library writes it, that notes what is asked."""

    def __init__(self, stream: Any, requests: Requests) -> None:
        self._stream = stream
        self._requests = requests

    async def send(self, item: SessionMessage) -> None:
        """Send a message."""
        self._requests.note(item.message)
        await self._stream.send(item)

    async def aclose(self) -> None:
        """Write no more."""
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


@asynccontextmanager
async def filtered(
    streams: AbstractAsyncContextManager[Any], tell: FilterObserver, patience: float | None
) -> AsyncGenerator[Any]:
    """A transport, seen through a sieve."""
    requests = Requests()
    try:
        async with streams as (reading, writing):
            yield (
                ResponseFilter(reading, requests, tell, patience),
                RequestRecorder(writing, requests),
            )
    finally:
        tell.gone()


def completed(request: Request, result: dict[str, Any]) -> dict[str, Any]:
    """A result with what the newest protocol wants of it and servers forget."""
    if not request.is_modern:
        return result
    lifetime = {"ttlMs": 0, "cacheScope": "private"} if request.method in CACHED else {}
    return {"resultType": "complete", **lifetime, **result}


def drop_invalid_tools(result: dict[str, Any], drop: Drop, *, is_modern: bool) -> None:
    """Take invalid tools out of a list of tools.

    What a tool says of its output is taken out of all: it is not needed, and could be anything.
    """
    listed = result.get("tools")
    if not isinstance(listed, list):
        return
    kept: list[dict[str, Any]] = []
    for each in cast("list[object]", listed):
        tool = cast("dict[str, Any]", each) if isinstance(each, dict) else {}
        tool.pop("outputSchema", None)
        reason = fault_of(tool)
        if reason is None and is_modern:
            reason = find_invalid_x_mcp_header(tool.get("inputSchema"))
        if reason is None:
            kept.append(tool)
        else:
            drop(_name(tool), reason)
    result["tools"] = kept


def fault_of(tool: dict[str, Any]) -> str | None:
    """Why a tool is left out; None where it is sound."""
    reason = fault(tool.get("inputSchema"))
    if reason is not None:
        return reason
    try:
        validate_server_result("tools/list", "2025-11-25", {"tools": [tool]})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(step) for step in first["loc"][2:])
        return f"{where or 'it'}: {first['msg']}"
    return None


def _name(tool: dict[str, Any]) -> str:
    name = tool.get("name")
    return name[:80] if isinstance(name, str) and name else "without a name"
