"""HTTP/1.1 straight to an endpoint: `h11` knows what the bytes mean, asyncio moves them.

A request needs little of what an HTTP library can do, and a start would wait for all of it.
"""

from __future__ import annotations

import asyncio
import os
import selectors
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote, urlsplit

import h11

from crow.core.errors import ModelError
from crow.llm.http.retry import unreachable

KEPT = 20
KEPT_ALIVE = 300.0
LONGEST_HEAD = 100 * 1024
UNREAD = 256 * 1024
"""Bytes that may lie here before the peer has to wait."""
IN_URLS = "!$%&'()*+,/:;=?@[]~"
HAPPY_EYEBALLS = 0.25
CODINGS = ("gzip", "x-gzip", "deflate")
WITHOUT_FILE: Callable[[], selectors.BaseSelector] = getattr(
    selectors, "PollSelector", selectors.SelectSelector
)
"""What looks at a socket, and needs no descriptor of its own for that."""


class Direct:
    """Connections to one origin, kept alive between requests.

    With ``race`` several addresses of a host are tried side by side. Whoever is cancelled in such
    a race of asyncio's may leave a socket open until it is found by the garbage collector.
    """

    def __init__(self, url: str, connect: float, *, race: bool = True) -> None:
        parts = urlsplit(url)
        self._host = parts.hostname or ""
        self._is_secret = parts.scheme == "https"
        self._port = parts.port or (443 if self._is_secret else 80)
        self._netloc = parts.netloc
        self._connect_within = connect
        self._delay = HAPPY_EYEBALLS if race else None
        self._idle: list[Line] = []
        self._targets: dict[str, str] = {}

    async def request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b""
    ) -> DirectResponse:
        """Send a request; the response with its headers read. Raises `ModelError`.

        How long the response may take is its caller's to say.
        """
        line = self._kept() or await self._connect()
        if (target := self._targets.get(url)) is None:
            parts = urlsplit(url)._replace(scheme="", netloc="")
            target = self._targets[url] = quote(parts.geturl(), safe=IN_URLS) or "/"
        try:
            line.send(method, target, {"host": self._netloc, **headers}, body)
            head = await line.head()
        except (OSError, h11.ProtocolError) as error:
            line.abort()
            raise _fault_of(error) from error
        except BaseException:
            line.abort()
            raise
        return DirectResponse(head, line, self._idle)

    async def aclose(self) -> None:
        """Close what is kept."""
        kept, self._idle[:] = [*self._idle], []
        for line in kept:
            await line.aclose()

    def _kept(self) -> Line | None:
        """A connection that can be used again; those that cannot are left."""
        while self._idle:
            line = self._idle.pop()
            if line.is_usable(KEPT_ALIVE):
                return line
            line.abort()
        return None

    async def _connect(self) -> Line:
        """A new connection. Raises `UnreachableError`."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._connect_within):
                trusted = await asyncio.to_thread(trust) if self._is_secret else None
                _, line = await loop.create_connection(
                    Line,
                    self._host,
                    self._port,
                    ssl=trusted,
                    happy_eyeballs_delay=self._delay,
                )
        except TimeoutError as error:
            raise unreachable() from error
        except OSError as error:
            raise unreachable(_reason(error)) from error
        return line


class DirectResponse:
    """A response as it comes; ``headers`` have names in lower case."""

    def __init__(self, head: h11.Response, line: Line, idle: list[Line]) -> None:
        self.status = head.status_code
        self.headers = {name.decode(): value.decode("latin-1") for name, value in head.headers}
        self._line = line
        self._idle = idle

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes. Raises `ModelError`."""
        decode = _decoder(self.headers.get("content-encoding", "identity"))
        try:
            while isinstance(event := await self._line.event(), h11.Data):
                yield decode(event.data)
        except (OSError, h11.ProtocolError) as error:
            raise _fault_of(error) from error

    async def aclose(self) -> None:
        """Keep the connection of a response that was read to its end; leave any other."""
        if len(self._idle) < KEPT and self._line.rest():
            self._idle.append(self._line)
        else:
            self._line.abort()


class Line(asyncio.Protocol):
    """One connection: requests go out, what comes back are events of h11."""

    _transport: asyncio.Transport

    def __init__(self) -> None:
        self._h11 = h11.Connection(h11.CLIENT, LONGEST_HEAD)
        self._loop = asyncio.get_running_loop()
        self._closed = self._loop.create_future()
        self._more: asyncio.Future[None] | None = None
        self._unread = 0
        self._lost: OSError | None = None
        self._rests_since = 0.0
        self._selector: selectors.BaseSelector | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep what writes."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Keep bytes for whoever reads; too many make the peer wait."""
        self._h11.receive_data(data)
        self._unread += len(data)
        if self._unread > UNREAD:
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        """Let whoever reads find out whether that was to be expected."""
        if self._h11.their_state is h11.SEND_RESPONSE:
            self._lost = ConnectionError("closed without a response")
        else:
            self._h11.receive_data(b"")
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Say so to whoever reads."""
        self._lost = self._lost or ConnectionError(str(exc or "closed"))
        self._wake()
        if not self._closed.done():
            self._closed.set_result(None)

    def send(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> None:
        """Write a whole request. Raises `h11.LocalProtocolError` for what is none."""
        fields = [*headers.items(), *([("content-length", str(len(body)))] if body else [])]
        head = h11.Request(method=method, target=target, headers=fields)
        parts = [self._h11.send(event) for event in (head, h11.Data(body), h11.EndOfMessage())]
        self._transport.write(b"".join(filter(None, parts)))  # in one piece: each wakes the peer up

    async def head(self) -> h11.Response:
        """The response's head. Raises `OSError` and `h11.RemoteProtocolError`."""
        while not isinstance(event := await self.event(), h11.Response):
            pass  # 100 Continue and its like
        return event

    async def event(self) -> Any:
        """What came next. Raises `OSError` and `h11.RemoteProtocolError`."""
        while (event := self._h11.next_event()) is h11.NEED_DATA:
            if self._lost is not None:
                raise self._lost
            self._unread = 0
            self._transport.resume_reading()
            self._more = self._loop.create_future()
            await self._more
        return event

    def rest(self) -> bool:
        """Make ready for another request; False where there can be none."""
        with suppress(h11.LocalProtocolError):
            self._h11.start_next_cycle()
            self._rests_since = time.monotonic()
            return not self._transport.is_closing()
        return False

    def is_usable(self, longest: float) -> bool:
        """False where the server has closed a connection that rested, or it did so for too long."""
        said_nothing = self._h11.trailing_data == (b"", False)
        is_young = time.monotonic() - self._rests_since < longest
        return said_nothing and is_young and not self._transport.is_closing() and self._is_quiet()

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()

    async def aclose(self) -> None:
        """Close, and wait until it is."""
        self._transport.abort()
        await self._closed

    def _is_quiet(self) -> bool:
        """False where something came of which the event loop does not know yet."""
        if self._selector is None:
            self._selector = WITHOUT_FILE()
            self._selector.register(self._transport.get_extra_info("socket"), selectors.EVENT_READ)
        return not self._selector.select(0)

    def _wake(self) -> None:
        if self._more is not None and not self._more.done():
            self._more.set_result(None)


def trust() -> ssl.SSLContext:
    """What vouches for servers: the system, or what ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` name."""
    if os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR"):
        return ssl.create_default_context()
    import truststore

    return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _decoder(coding: str) -> Callable[[bytes], bytes]:
    """What reads a body in a coding, although none is asked for."""
    if coding.lower() == "identity":
        return bytes
    if coding.lower() not in CODINGS:
        raise ModelError(f"sent a body that cannot be decoded: {coding}", kind="protocol")
    import zlib

    read = zlib.decompressobj(zlib.MAX_WBITS | 32).decompress  # 32: looks which of them it is

    def decode(data: bytes) -> bytes:
        try:
            return read(data)
        except zlib.error as error:
            what = f"sent a body that cannot be decoded: {error}"
            raise ModelError(what, kind="protocol") from error

    return decode


def _reason(error: OSError) -> str:
    """Why a connection failed, without the numbers of the system."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    return error.strerror or str(error) or type(error).__name__


def _fault_of(error: Exception) -> ModelError:
    """What went wrong, in the words of the core."""
    if isinstance(error, h11.LocalProtocolError):
        return ModelError(f"cannot be asked: {error}", kind="invalid_request")
    return ModelError(f"broke the connection: {error}", kind="network")
