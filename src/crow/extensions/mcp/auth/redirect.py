"""The end of a sign-in: a page on this machine alone that a browser is sent to, once."""

from __future__ import annotations

import asyncio
import html
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

from crow.extensions.mcp.auth.sign_in import Redirected
from crow.extensions.mcp.failure import plain

LOOPBACK = "127.0.0.1"
LONGEST = 16 * 1024
"""Bytes of a request."""
SLOWEST = 10.0
"""Seconds that a browser may take for a request."""
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Crow</title>
<body style="font-family: sans-serif; margin: 4em auto; max-width: 30em">
<h1>{title}</h1><p>{text}"""
FINE = ("Signed in", "You can close this window and go back to Crow.")
LOST = ("Not found", "There is nothing here.")
REPLY = (
    "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {length}\r\n"
    "cache-control: no-store\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n"
)


class Listener:
    """Listens on 127.0.0.1 until a browser comes with the answer."""

    def __init__(self, path: str = "/callback") -> None:
        self.path = path
        self.arrived: asyncio.Future[Redirected] = asyncio.get_running_loop().create_future()
        self._server: asyncio.Server | None = None
        self._state = ""

    async def open(self, port: int) -> int:
        """Listen; the port. Raises ``OSError`` where that is somebody else's."""
        self._server = await asyncio.start_server(self._serve, LOOPBACK, port, limit=LONGEST)
        return int(self._server.sockets[0].getsockname()[1])

    def expect(self, url: str) -> None:
        """Wait for the answer to this page; one with another state is a stranger's."""
        self._state = parse_qs(urlsplit(url).query).get("state", [""])[0]

    def take(self, address: str) -> bool:
        """Take an address for the one that the browser was sent to; False where it cannot be."""
        found = redirected(address)
        if found is None or found.state != self._state or self.arrived.done():
            return False
        self.arrived.set_result(found)
        return True

    def close(self) -> None:
        """Listen no more."""
        if self._server is not None:
            self._server.close()
        self.arrived.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(SLOWEST):
                head = await reader.readuntil(b"\r\n\r\n")
                method, target, *_ = head.decode("latin-1").split(" ", 2)
                writer.write(self._answer(method, target))
                await writer.drain()
        writer.close()

    def _answer(self, method: str, target: str) -> bytes:
        is_here = method == "GET" and urlsplit(target).path == self.path
        if not is_here or not self.take(target):
            return _page("404 Not Found", *LOST)
        found = self.arrived.result()
        if found.error:
            return _page("200 OK", "Not signed in", plain(found.error))
        return _page("200 OK", *FINE)


def redirected(address: str) -> Redirected | None:
    """What an address says that a browser was sent to; None where it says nothing of a sign-in."""
    told: Mapping[str, list[str]] = parse_qs(urlsplit(address.strip()).query)
    got = {name: values[0] for name, values in told.items() if len(values) == 1}
    if "code" not in got and "error" not in got:
        return None
    return Redirected(
        got.get("code", ""),
        got.get("state"),
        got.get("iss"),
        got.get("error", ""),
        got.get("error_description", ""),
    )


def _page(status: str, title: str, text: str) -> bytes:
    body = PAGE.format(title=html.escape(title), text=html.escape(text)).encode()
    return REPLY.format(status=status, length=len(body)).encode() + body
