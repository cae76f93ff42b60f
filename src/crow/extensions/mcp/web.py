"""A server on the web: streamable HTTP or SSE, with answers that are bounded."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from crow.extensions.mcp.limits import MESSAGE

if TYPE_CHECKING:
    from crow.extensions.mcp.description import Description
    from crow.extensions.mcp.failure import Failure

FOR_EVER = 7 * 24 * 3600.0
"""Seconds that an idle stream of events may last: calls have a limit of their own."""
PLAIN = {"accept-encoding": "identity"}
"""What is packed could unpack to any size."""


@asynccontextmanager
async def http_streams(
    described: Description, failure: Failure, connect: float, auth: httpx2.Auth | None = None
) -> AsyncGenerator[Any]:
    """The streams of a server that speaks streamable HTTP."""
    timeout = httpx2.Timeout(connect, read=FOR_EVER)
    async with (
        _client(failure, described, timeout, auth) as client,
        streamable_http_client(
            described.url, http_client=client, max_sse_event_size=MESSAGE
        ) as streams,
    ):
        yield streams


def sse_streams(
    described: Description, failure: Failure, connect: float, auth: httpx2.Auth | None = None
) -> AbstractAsyncContextManager[Any]:
    """The streams of a server that speaks the older protocol with a stream of events."""

    def make(
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        return _client(failure, described, timeout or httpx2.Timeout(connect), auth)

    return sse_client(
        described.url,
        headers=dict(described.headers),
        timeout=connect,
        sse_read_timeout=FOR_EVER,
        httpx_client_factory=make,
        auth=auth,
    )


def bounded_client(seconds: float) -> httpx2.AsyncClient:
    """A client for short questions to strangers: nothing is long, and no redirect is followed.

    Certificates count, wherever the server is that leads there.
    """

    async def bound(response: httpx2.Response) -> None:
        response.headers.pop("content-encoding", None)
        response.stream = Bounded(response.stream)

    return httpx2.AsyncClient(headers=PLAIN, timeout=seconds, event_hooks={"response": [bound]})


def is_plain(url: str) -> bool:
    """True for an address that needs no certificates: loading them takes a while."""
    return url.startswith("http:")


def _client(
    failure: Failure,
    described: Description,
    timeout: httpx2.Timeout,
    auth: httpx2.Auth | None = None,
) -> httpx2.AsyncClient:
    async def bound(response: httpx2.Response) -> None:
        if response.status_code >= 400:
            failure.refuse(response.status_code, _phrase(response))
        response.headers.pop("content-encoding", None)
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = Bounded(response.stream)

    return httpx2.AsyncClient(
        headers={**described.headers, **PLAIN},
        timeout=timeout,
        auth=auth,
        verify=not is_plain(described.url),
        event_hooks={"response": [bound]},
    )


def _phrase(response: httpx2.Response) -> str:
    try:
        return f" ({HTTPStatus(response.status_code).phrase})"
    except ValueError:
        return ""


class Bounded(httpx2.AsyncByteStream):
    """A body that fails where it gets too long."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """The body's pieces."""
        size = 0
        async for piece in self._stream:
            size += len(piece)
            if size > MESSAGE:
                text = f"the answer has more than {MESSAGE // 1024 // 1024} MiB"
                raise httpx2.StreamError(text)
            yield piece

    async def aclose(self) -> None:
        """Let the connection go."""
        await self._stream.aclose()
