"""The HTTP side of an endpoint: one kept-alive client an event loop, posts, and their faults."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from crow.core.errors import ModelError
from crow.llm.http.retry import NotListeningError, Timeouts, UnreachableError

if TYPE_CHECKING:
    import httpx2

LINGER = 1.0
HANDOVER = 0.05
KEPT_ALIVE = 300.0
WHY = "is it running, and is the base URL right?"


class Connection:
    """Posts bodies to the paths behind one URL. The library is imported with the first of them."""

    def __init__(self, url: str, headers: Mapping[str, str], timeouts: Timeouts) -> None:
        self.url = url
        self._headers = dict(headers)
        self._timeouts = timeouts
        self._client: httpx2.AsyncClient | None = None
        self._targets: dict[str, Any] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lifetime: AsyncGenerator[None, None] | None = None
        self._endings: set[asyncio.Task[None]] = set()

    async def post(
        self, path: str, body: bytes, headers: Mapping[str, str] | None = None
    ) -> httpx2.Response:
        """Send a body; the response with its headers read. Raises `ModelError`.

        ``headers`` are this request's alone.
        """
        if "httpcore2" not in sys.modules:
            await asyncio.to_thread(_import)  # too long for a loop that others wait for
        import httpx2

        timeouts = self._limits()
        try:
            client = await self._open()
            if self._endings:
                await asyncio.wait(self._endings, timeout=HANDOVER)
            url = self.url + path
            target = self._targets.get(url)
            if target is None:
                target = self._targets[url] = httpx2.URL(url)
            request = client.build_request(
                "POST", target, content=body, headers=headers, extensions={"timeout": timeouts}
            )
            response = await client.send(request, stream=True)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise self._fault_of(error) from error
        timeouts["read"] = None  # from here on the clock counts events, not bytes
        return response

    def release(self, response: httpx2.Response, chunks: AsyncGenerator[bytes, None]) -> None:
        """Let a response end by itself, without waiting, so that its connection can be used again.

        One that does not end within a second is closed.
        """
        task = asyncio.create_task(_drain(response, chunks))
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)

    async def aclose(self) -> None:
        """Close what is open; a later request opens it again."""
        lifetime, self._lifetime, self._client = self._lifetime, None, None
        if lifetime is not None:
            await lifetime.aclose()

    async def _open(self) -> httpx2.AsyncClient:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._client, self._loop, self._endings = self._new_client(), loop, set()
            self._lifetime = _lifetime(self._client)
            await anext(self._lifetime)
        return self._client

    def _new_client(self) -> httpx2.AsyncClient:
        import httpx2

        return httpx2.AsyncClient(
            headers=self._headers,
            timeout=self._timeouts.connect,
            verify=not self.url.startswith("http:"),  # loading certificates takes a while
            limits=httpx2.Limits(max_keepalive_connections=20, keepalive_expiry=KEPT_ALIVE),
        )

    def _fault_of(self, error: Exception) -> ModelError:
        """The error; where nobody listens on this machine, that may be so for a while only."""
        import httpx2

        fault = fault_of(error)
        if isinstance(error, httpx2.ConnectError) and is_local(self.url):
            return NotListeningError(str(fault), kind=fault.kind)
        return fault

    def _limits(self) -> dict[str, Any]:
        times = self._timeouts
        return {
            "connect": times.connect,
            "read": times.first_byte,
            "write": times.first_byte,
            "pool": None,
        }


def _import() -> None:
    """Import the library, and what it imports late."""
    for name in ("httpx2", "httpcore2"):
        import_module(name)


def is_local(url: str) -> bool:
    """True for an address on this machine."""
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


async def chunks_of(response: httpx2.Response) -> AsyncGenerator[bytes, None]:
    """A response's body as it comes. Raises `ModelError`."""
    import httpx2

    encoded = "content-encoding" in response.headers
    stream: Any = response.aiter_bytes() if encoded else response.stream
    source: AsyncIterator[bytes] = stream
    try:
        async for chunk in source:
            yield chunk
    except httpx2.HTTPError as error:
        raise fault_of(error) from error


async def _drain(response: httpx2.Response, chunks: AsyncGenerator[bytes, None]) -> None:
    try:
        async with asyncio.timeout(LINGER):
            async for _ in chunks:
                pass
    except (TimeoutError, ModelError):
        pass
    finally:
        await chunks.aclose()
        await response.aclose()


async def _lifetime(client: httpx2.AsyncClient) -> AsyncGenerator[None, None]:
    """Closes a client with its event loop: loops close generators that were begun in them."""
    try:
        yield
    finally:
        await client.aclose()


def fault_of(error: Exception) -> ModelError:
    """A transport's error in the words of the core."""
    import httpx2

    said = str(error) or type(error).__name__
    match error:
        case httpx2.ConnectTimeout():
            return UnreachableError("could not be reached in time", kind="timeout")
        case httpx2.ReadTimeout():
            return ModelError("sent no response in time", kind="timeout")
        case httpx2.TimeoutException():
            return ModelError(f"took too long: {said}", kind="timeout")
        case httpx2.ConnectError():
            what = f"could not be reached: {said} ({WHY})"
            return UnreachableError(what, kind="network")
        case httpx2.NetworkError() | httpx2.RemoteProtocolError() | httpx2.ProxyError():
            return ModelError(f"broke the connection: {said}", kind="network")
        case httpx2.DecodingError():
            return ModelError(f"sent a body that cannot be decoded: {said}", kind="protocol")
        case _:
            return ModelError(f"cannot be asked: {said}", kind="invalid_request")
