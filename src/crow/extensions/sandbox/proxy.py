"""The network by name: a proxy outside, on a socket that was opened inside.

A first program inside listens on its own loopback, hands that socket over and becomes the command.
So nothing has to be forwarded, and the command has no other way out: names are looked up here.
It speaks HTTP and SOCKS5 on one port.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import shlex
import socket
import sys
from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from crow.extensions.sandbox.client_hello import is_begun, server_name
from crow.extensions.sandbox.domains import Domains
from crow.extensions.sandbox.policy import Proxy
from crow.extensions.sandbox.socks import (
    DONE,
    FORBIDDEN,
    UNREACHABLE,
    VERSION,
    asked_for,
    socks_answer,
)
from crow.extensions.sandbox.upstream import Streams, upstream_to

PORT = 3128
_HEAD, _PIECE = 65536, 65536
_SECONDS = 30.0
_URL = f"http://127.0.0.1:{PORT}"
_FIRST = f"""
import os, socket, sys
here = socket.create_server(("127.0.0.1", {PORT}))
there = socket.socket(fileno=int(sys.argv[1]))
socket.send_fds(there, [b"x"], [here.fileno()])
there.close()
here.close()
try:
    os.execvp(sys.argv[2], sys.argv[2:])
except OSError as error:
    sys.exit(f"{{sys.argv[2]}}: {{error.strerror}}")
"""
ENVIRONMENT = {
    **dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), _URL),
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), _URL),
    **dict.fromkeys(("no_proxy", "NO_PROXY"), "localhost,127.0.0.1,::1"),
}
_SSH_PROXY = Path(__file__).with_name("ssh_proxy.py")


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """What leads a command's programs to the proxy; git's own ssh stays where one is given."""
    relay = shlex.join([sys.executable, "-I", "-S", str(_SSH_PROXY), str(PORT)]).replace("%", "%%")
    ssh = shlex.join(["ssh", "-o", f"ProxyCommand={relay} %h %p"])
    return {"GIT_SSH_COMMAND": ssh, **given, **ENVIRONMENT}


class RefusedError(Exception):
    """A host that is not to be reached."""


class Gate:
    """Lets the connections of one command through to what is allowed; needs a running event loop.

    ``refused`` gets the hosts that were not let through, each once.
    """

    def __init__(self, policy: Proxy, refused: list[str]) -> None:
        self._domains, self._refused = Domains(policy.allowed, policy.denied), refused
        self._loop = asyncio.get_running_loop()
        self._mine, self._its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop.add_reader(self._mine, self._take)

    @property
    def descriptor(self) -> int:
        """What the first program inherits."""
        return self._its.fileno()

    def line(self, argv: Sequence[str]) -> list[str]:
        """A command behind its first program."""
        return [sys.executable, "-I", "-S", "-c", _FIRST, str(self.descriptor), *argv]

    def close(self) -> None:
        """End all connections."""
        self._loop.remove_reader(self._mine)
        self._mine.close()
        self._its.close()
        for task in self._tasks:
            task.cancel()

    def _take(self) -> None:
        """The socket comes, once."""
        self._loop.remove_reader(self._mine)
        with contextlib.suppress(OSError):
            _, descriptors, _, _ = socket.recv_fds(self._mine, 1, 1)
            for number in descriptors:
                self._begin(self._serve(socket.socket(fileno=number)))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, listening: socket.socket) -> None:
        listening.setblocking(False)
        with listening:
            while True:
                caller, _ = await self._loop.sock_accept(listening)
                self._begin(self._answer(caller))

    async def _answer(self, caller: socket.socket) -> None:
        """One connection from inside."""
        inside: Streams = await asyncio.open_connection(sock=caller, limit=_HEAD)
        try:
            first = await inside[0].read(1)
            if first == bytes([VERSION]):
                await self._answer_socks(inside)
            elif first:
                await self._answer_http(inside, first)
        except (asyncio.IncompleteReadError, OSError):
            return  # it has gone, or says nothing
        finally:
            await _end(inside[1])

    async def _answer_socks(self, inside: Streams) -> None:
        """A connection over SOCKS5."""
        async with asyncio.timeout(_SECONDS):
            wanted = await asked_for(*inside)
        if wanted is None:
            return
        try:
            outside = await self._connect(*wanted)
        except RefusedError as refusal:
            self._note(str(refusal))
            inside[1].write(socks_answer(FORBIDDEN))
        except OSError:
            inside[1].write(socks_answer(UNREACHABLE))
        else:
            inside[1].write(socks_answer(DONE))
            await self._both(inside, outside, self._forward(inside[0], outside[1], *wanted))

    async def _answer_http(self, inside: Streams, first: bytes) -> None:
        """A request to a proxy for HTTP."""
        try:
            async with asyncio.timeout(_SECONDS):
                head = first + await inside[0].readuntil(b"\r\n\r\n")
            await self._relay(inside, head)
        except RefusedError as refusal:
            self._note(str(refusal))
            inside[1].write(_status(403, f"The sandbox does not let {refusal} be reached."))
        except (OSError, ValueError, TimeoutError) as error:
            inside[1].write(_status(502, f"The sandbox's proxy: {error or 'no answer'}."))
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            inside[1].write(_status(400, "This is no request."))

    async def _relay(self, inside: Streams, head: bytes) -> None:
        """Take a request to its host, and what follows in both directions."""
        if {*head.replace(b"\r\n", b"")} & {*b"\r\n\0"}:  # a company's proxy may see another one
            raise ValueError("a line ends where none may")
        method, target, version = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        if method == "CONNECT":
            host, port = _address(target, 443)
            outside = await self._connect(host, port)
            inside[1].write(_status(200))
            out = self._forward(inside[0], outside[1], host, port)
        else:
            place, path = target.removeprefix("http://").partition("/")[::2]
            if not target.startswith("http://"):
                raise ValueError("only http:// and CONNECT are understood")
            outside, way = await self._connect_plain(*_address(place, 80))
            target = target if way is not None else f"/{path}"
            own = (way or b"") + _own(head)
            outside[1].write(f"{method} {target} {version}\r\n".encode("latin-1") + own)
            out = _pour(inside[0], outside[1])
        await self._both(inside, outside, out)

    @staticmethod
    async def _both(inside: Streams, outside: Streams, out: Awaitable[None]) -> None:
        """Hand on what comes in either direction, until both have ended."""
        try:
            await asyncio.gather(_quietly(out), _quietly(_pour(outside[0], inside[1])))
        finally:
            await _end(outside[1])

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int
    ) -> None:
        """Hand on what the command sends, unless it is TLS that names a host it may not reach."""
        first = await reader.read(_PIECE)
        while is_begun(first) and (more := await reader.read(_PIECE)):
            first += more
        name = server_name(first)
        if name is not None and name != host and not self._domains.allow(name, port):
            self._note(name)
            writer.close()
            return
        writer.write(first)
        await _pour(reader, writer)

    def _note(self, host: str) -> None:
        if host not in self._refused:
            self._refused.append(host)

    async def _connect(self, host: str, port: int) -> Streams:
        """A connection to a host, through a company's proxy where there is one."""
        upstream = upstream_to(host, port, is_plain=False)
        addresses = await self._addresses(host, port, is_needed=upstream is None)
        async with asyncio.timeout(_SECONDS):
            if upstream is not None:
                return await upstream.tunnel(host, port)
            return await asyncio.open_connection(addresses[0], port)

    async def _connect_plain(self, host: str, port: int) -> tuple[Streams, bytes | None]:
        """The same for a request in the open; with fields for a company's proxy."""
        upstream = upstream_to(host, port, is_plain=True)
        addresses = await self._addresses(host, port, is_needed=upstream is None)
        async with asyncio.timeout(_SECONDS):
            if upstream is not None:
                return await upstream.connect(), upstream.fields
            return await asyncio.open_connection(addresses[0], port), None

    async def _addresses(self, host: str, port: int, *, is_needed: bool) -> list[str]:
        """Where a host is: a connection goes to what was looked at, for names can change theirs.

        A company's proxy looks names up itself; they need not be known here. Raises `RefusedError`.
        """
        if not self._domains.allow(host, port):
            raise RefusedError(host)
        try:
            found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError:
            if is_needed:
                raise
            return []
        addresses = [str(each[4][0]) for each in found]
        if not _is_address(host):  # who allows an address itself knows where it leads
            addresses = [each for each in addresses if ipaddress.ip_address(each).is_global]
        if not addresses:
            raise RefusedError(host)
        return addresses


def _address(text: str, port: int) -> tuple[str, int]:
    """A host without its brackets, and its port."""
    host, colon, number = text.rpartition(":")
    if not colon or "]" in number:
        host, number = text, str(port)
    return host.strip("[]"), int(number)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _own(head: bytes) -> bytes:
    """The fields of a request, for one request alone: the next may go to another host."""
    lines = head.split(b"\r\n")[1:-2]
    kept = [line for line in lines if not line.lower().startswith((b"proxy-", b"connection:"))]
    return b"\r\n".join([*kept, b"Connection: close", b"", b""])


def _status(code: int, text: str = "") -> bytes:
    reasons = {200: "Connection established", 400: "Bad request", 403: "Forbidden"}
    reason = reasons.get(code, "Bad gateway")
    if code == 200:
        return f"HTTP/1.1 200 {reason}\r\n\r\n".encode()
    body = f"{text}\n".encode("ascii", "replace")
    head = f"HTTP/1.1 {code} {reason}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(_PIECE):
        writer.write(piece)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


async def _quietly(way: Awaitable[None]) -> None:
    with contextlib.suppress(OSError):
        await way


async def _end(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
