"""HTTP/1.1 straight to an endpoint: `httptools` knows what the bytes mean, asyncio moves them.

A request needs little of what an HTTP library can do, and a start would wait for all of it.
"""

from __future__ import annotations

import asyncio
import os
import re
import selectors
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import TypeAlias
from urllib.parse import quote, urlsplit

import httptools

from crow.core.errors import ModelError
from crow.llm.http.retry import unreachable

KEPT = 20
KEPT_ALIVE = 300.0
LONGEST_HEAD = 100 * 1024
UNREAD = 256 * 1024
"""Bytes that may lie here before the peer has to wait."""
PIECE = 64 * 1024
"""Bytes of a body that are written together with the head."""
IN_URLS = "!$%&'()*+,/:;=?@[]~"
HAPPY_EYEBALLS = 0.25
FINAL = 200  # what is below is not yet the response
LENGTH = {"content-length", "transfer-encoding"}
"""Headers that say where a body ends; without one of them it ends with the connection."""
FIELD = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+: (?:[!-~](?:[\t -~]*[!-~])?)?").fullmatch
"""A header as RFC 9110 has it (5.1, 5.5), of ASCII: what endpoints are sent is no more."""
Head: TypeAlias = tuple[int, dict[str, str]]
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
        except OSError as error:
            line.abort()
            raise _broken(error) from error
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

    def __init__(self, head: Head, line: Line, idle: list[Line]) -> None:
        self.status, self.headers = head
        self._line = line
        self._idle = idle

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes. Raises `ModelError`."""
        decode = _decoder(self.headers.get("content-encoding", "identity"))
        try:
            while piece := await self._line.piece():
                yield decode(piece)
        except OSError as error:
            raise _broken(error) from error

    async def aclose(self) -> None:
        """Keep the connection of a response that was read to its end; leave any other."""
        if len(self._idle) < KEPT and self._line.rest():
            self._idle.append(self._line)
        else:
            self._line.abort()


class Line(asyncio.Protocol):
    """One connection: requests go out, a head and the pieces of a body come back.

    The methods that begin with ``on_`` are called by the parser.
    """

    _transport: asyncio.Transport

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._closed = self._loop.create_future()
        self._more: asyncio.Future[None] | None = None
        self._lost: OSError | None = None
        self._rests_since = 0.0
        self._selector: selectors.BaseSelector | None = None
        self._expect()

    def _expect(self) -> None:
        """Make ready for a response."""
        self._parser: httptools.HttpResponseParser | None = None
        self._head: Head | None = None
        self._fields: dict[str, str] = {}
        self._pieces: list[bytes] = []
        self._unread = self._unknown = 0
        self._is_whole = self._is_last = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep what writes."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Keep what came for whoever reads; too much makes the peer wait."""
        self._unread += len(data)
        self._unknown += len(data)
        try:
            if self._parser is None:
                raise ConnectionError("said something unasked")
            self._parser.feed_data(data)
            if self._unknown > LONGEST_HEAD:
                raise ConnectionError("sent headers without an end")
        except httptools.HttpParserUpgrade:
            self._lose(ConnectionError("wants to speak another protocol"))
        except (httptools.HttpParserError, OSError) as error:
            self._lose(ConnectionError(str(error)))
        if self._unread > UNREAD:
            self._transport.pause_reading()
        self._wake()

    def on_message_begin(self) -> None:
        """Raise where there was one already."""
        if self._is_whole:
            raise ConnectionError("said something unasked")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; those behind the body are left out."""
        if self._head is None:
            self._fields[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Make them the head, where it is not that of 100 Continue and its like."""
        assert self._parser is not None
        fields, self._fields = self._fields, {}
        if (status := self._parser.get_status_code()) >= FINAL:
            self._head = status, fields
            self._unknown = 0

    def on_body(self, body: bytes) -> None:
        """Keep a piece."""
        self._pieces.append(body)
        self._unknown = 0

    def on_message_complete(self) -> None:
        """Know that this was all."""
        if self._head is not None and self._parser is not None:
            self._is_whole = True
            self._is_last = not self._parser.should_keep_alive()

    def eof_received(self) -> None:
        """Let whoever reads find out whether that was to be expected."""
        is_end = self._head is not None and not LENGTH & self._head[1].keys()
        self._is_whole = self._is_whole or is_end
        where = "without" if self._head is None else "in the middle of"
        self._lose(ConnectionError(f"closed {where} a response"))
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Say so to whoever reads."""
        self._lose(ConnectionError(str(exc or "closed")))
        self._parser = None  # which leads back here
        self._wake()
        if not self._closed.done():
            self._closed.set_result(None)

    def send(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> None:
        """Write a whole request. Raises `ModelError` for what is none."""
        fields = [*headers.items(), *([("content-length", str(len(body)))] if body else [])]
        if wrong := [name for name, value in fields if not FIELD(f"{name}: {value}")]:
            raise ModelError(
                f"cannot be asked: the header {wrong[0]!r} is none", kind="invalid_request"
            )
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields)]
        self._expect()
        self._parser = httptools.HttpResponseParser(self)
        head = "\r\n".join([*lines, "\r\n"]).encode("ascii")
        self._transport.write(head + body[:PIECE])  # in one piece: each wakes the peer up
        if len(body) > PIECE:
            self._transport.write(memoryview(body)[PIECE:])  # of which no copies are made

    async def head(self) -> Head:
        """The response's status and headers. Raises `OSError`."""
        while self._head is None:
            await self._wait()
        return self._head

    async def piece(self) -> bytes:
        """What came of the body since the last time; nothing at its end. Raises `OSError`."""
        while not self._pieces and not self._is_whole:
            await self._wait()
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)

    def rest(self) -> bool:
        """Make ready for another request; False where there can be none."""
        self._parser = None
        self._rests_since = time.monotonic()
        return self._is_whole and not self._is_last and self._lost is None

    def is_usable(self, longest: float) -> bool:
        """False where the server has closed a connection that rested, or it did so for too long."""
        is_young = time.monotonic() - self._rests_since < longest
        is_open = self._lost is None and not self._transport.is_closing()
        return is_open and is_young and self._is_quiet()

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

    async def _wait(self) -> None:
        """Wait until more came."""
        if self._lost is not None:
            raise self._lost
        self._unread = 0
        self._transport.resume_reading()
        self._more = self._loop.create_future()
        await self._more

    def _lose(self, why: OSError) -> None:
        """Know why nothing more comes; the first reason stands."""
        self._lost = self._lost or why

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


def _broken(error: OSError) -> ModelError:
    return ModelError(f"broke the connection: {error}", kind="network")
