"""The HTTP side of an endpoint: one kept-alive client an event loop, straight or by a proxy."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, Protocol
from urllib.parse import urlsplit

from crow.core.errors import ModelError
from crow.core.support.tasks import Begun
from crow.llm.http.reply_reader import Pace
from crow.llm.http.retry import NotListeningError, Timeouts, UnreachableError

LINGER = 1.0
HANDOVER = 0.05
PROXIES = ("http_proxy", "https_proxy", "all_proxy")


class Response(Protocol):
    """A response whose head is here; names of ``headers`` are looked up in lower case."""

    @property
    def status(self) -> int:
        """The status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers."""
        ...

    def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes. Raises `ModelError`."""
        ...

    async def aclose(self) -> None:
        """Keep the connection of a response that was read to its end; leave any other."""
        ...


class Client(Protocol):
    """A client that sends requests, and keeps connections."""

    async def request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b""
    ) -> Response:
        """Send a request; the response with its headers read. Raises `ModelError`."""
        ...

    async def aclose(self) -> None:
        """Close what is kept."""
        ...


class Connection:
    """Posts bodies to the paths behind one URL. What that takes is imported with the first.

    ``pace`` is how fast the responses are worked on, once there is one.
    """

    pace: Pace

    def __init__(self, url: str, headers: Mapping[str, str], timeouts: Timeouts) -> None:
        self.url = url
        self._headers = dict(headers)
        self._timeouts = timeouts
        self._client: Client | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lifetime: AsyncGenerator[None, None] | None = None
        self._endings: set[asyncio.Task[None]] = set()

    async def post(
        self, path: str, body: bytes, headers: Mapping[str, str] | None = None
    ) -> Response:
        """Send a body; the response with its headers read. Raises `ModelError`.

        ``headers`` are this request's alone.
        """
        client = await self._open()
        if self._endings:
            await asyncio.wait(self._endings, timeout=HANDOVER)
        own = {**self._headers, **(headers or {})}
        try:
            return await client.request("POST", self.url + path, own, body)
        except UnreachableError as error:
            if error.kind == "timeout" or not is_local(self.url):
                raise
            raise NotListeningError(str(error), kind=error.kind) from error

    def release(self, response: Response, chunks: AsyncGenerator[bytes, None]) -> None:
        """Let a response end by itself, without waiting, so that its connection can be used again.

        One that does not end within a second is closed.
        """
        if (ending := Begun(_ended(response, chunks))).done:
            return
        task = asyncio.create_task(_in_time(ending))
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)

    async def aclose(self) -> None:
        """Close what is open; a later request opens it again."""
        lifetime, self._lifetime, self._client = self._lifetime, None, None
        if lifetime is not None:
            await lifetime.aclose()

    async def _open(self) -> Client:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._client = await new_client(self.url, self._timeouts)
            self._loop, self._endings, self.pace = loop, set(), Pace()
            self._lifetime = _lifetime(self._client)
            await anext(self._lifetime)
        return self._client


async def new_client(url: str, timeouts: Timeouts, *, by_proxy: bool = True) -> Client:
    """A client for what lies behind a URL, through the proxy that the system names, if any."""
    if not by_proxy or is_direct(url):
        from crow.llm.http.direct import Direct

        return Direct(url, timeouts.connect, race=not is_local(url))
    proxied = await asyncio.to_thread(_proxied)  # too long for a loop that others wait for
    return proxied.Proxied(url, timeouts)


def _proxied() -> Any:
    """The module, and what its library imports late."""
    import_module("httpcore2")
    return import_module("crow.llm.http.proxied")


def is_local(url: str) -> bool:
    """True for an address on this machine."""
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


def is_direct(url: str) -> bool:
    """True where no proxy stands between, by the environment and the settings of the system."""
    if sys.platform in ("darwin", "win32"):
        from urllib.request import getproxies

        return url.isascii() and not getproxies()
    names = (*PROXIES, *map(str.upper, PROXIES))
    return url.isascii() and not any(map(os.environ.get, names))


async def _in_time(ending: Begun[None]) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER):
            await ending


async def _ended(response: Response, chunks: AsyncGenerator[bytes, None]) -> None:
    try:
        with suppress(ModelError):
            async for _ in chunks:
                pass
    finally:
        await chunks.aclose()
        await response.aclose()


async def _lifetime(client: Client) -> AsyncGenerator[None, None]:
    """Closes a client with its event loop: loops close generators that were begun in them."""
    try:
        yield
    finally:
        await client.aclose()
