"""HTTP to an endpoint behind a proxy: `httpx2` knows the ways of proxies, and who needs none."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any

import httpx2

from crow.core.errors import ModelError
from crow.llm.http.retry import Timeouts, UnreachableError, unreachable

KEPT = 20
KEPT_ALIVE = 300.0


class Proxied:
    """A client that reads from the environment which proxy stands between."""

    def __init__(self, url: str, timeouts: Timeouts) -> None:
        self._timeouts = timeouts
        self._client = httpx2.AsyncClient(
            timeout=timeouts.connect,
            verify=not url.startswith("http:"),  # loading certificates takes a while
            limits=httpx2.Limits(max_keepalive_connections=KEPT, keepalive_expiry=KEPT_ALIVE),
        )

    async def request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b""
    ) -> ProxiedResponse:
        """Send a request; the response with its headers read. Raises `ModelError`."""
        wait = self._timeouts.first_byte
        limits = {"connect": self._timeouts.connect, "read": wait, "write": wait, "pool": None}
        extensions: dict[str, Any] = {"timeout": limits}
        try:
            request = self._client.build_request(
                method, url, content=body or None, headers=headers, extensions=extensions
            )
            response = await self._client.send(request, stream=True)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise _fault_of(error) from error
        limits["read"] = None  # from here on the clock counts events, not bytes
        return ProxiedResponse(response)

    async def aclose(self) -> None:
        """Close what is kept."""
        await self._client.aclose()


class ProxiedResponse:
    """A response as it comes; ``headers`` are found in any case."""

    def __init__(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self._response = response

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes. Raises `ModelError`."""
        chunks: AsyncIterator[bytes] = self._response.aiter_bytes()
        try:
            async for chunk in chunks:
                yield chunk
        except httpx2.HTTPError as error:
            raise _fault_of(error) from error

    async def aclose(self) -> None:
        """Keep the connection of a response that was read to its end; leave any other."""
        await self._response.aclose()


def _fault_of(error: Exception) -> ModelError:
    """A transport's error in the words of the core."""
    said = str(error) or type(error).__name__
    match error:
        case httpx2.ConnectTimeout():
            return unreachable()
        case httpx2.ReadTimeout():
            return ModelError("sent no response in time", kind="timeout")
        case httpx2.TimeoutException():
            return ModelError(f"took too long: {said}", kind="timeout")
        case httpx2.ProxyError():
            return UnreachableError(f"could not be reached by its proxy: {said}", kind="network")
        case httpx2.ConnectError():
            return unreachable(said)
        case httpx2.NetworkError() | httpx2.RemoteProtocolError():
            return ModelError(f"broke the connection: {said}", kind="network")
        case httpx2.DecodingError():
            return ModelError(f"sent a body that cannot be decoded: {said}", kind="protocol")
        case _:
            return ModelError(f"cannot be asked: {said}", kind="invalid_request")
