"""Between a transport and the library: tools that are invalid are left out, one by one.

The library refuses a whole list for one tool in it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Self, cast

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCResponse
from mcp.types.methods import validate_server_result
from pydantic import ValidationError

from crow.extensions.mcp.schema import fault

Item = SessionMessage | Exception
Drop = Callable[[str, str], None]


class Sieve:
    """A stream of messages, as the library reads it. ``gone`` is called where it ends."""

    def __init__(self, stream: Any, drop: Drop, gone: Callable[[], None]) -> None:
        self._stream = stream
        self._drop = drop
        self._gone = gone

    @property
    def last_context(self) -> Any:
        """What the web transports tell of a message's sender."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Item:
        """The next message."""
        try:
            item: Item = await self._stream.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self._gone()
            raise
        if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse):
            sift(item.message.result, self._drop)
        return item

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

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()


@asynccontextmanager
async def sieved(
    streams: AbstractAsyncContextManager[Any], drop: Drop, gone: Callable[[], None]
) -> AsyncGenerator[Any]:
    """A transport, seen through a sieve."""
    try:
        async with streams as (reading, writing):
            yield Sieve(reading, drop, gone), writing
    finally:
        gone()


def sift(result: dict[str, Any], drop: Drop) -> None:
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
