"""SOCKS5, as far as a proxy without passwords needs it: TCP to a host by name or address."""

from __future__ import annotations

import asyncio
import socket

VERSION = 5
DONE, FORBIDDEN, UNREACHABLE, NO_SUCH_COMMAND, NO_SUCH_ADDRESS = 0, 2, 4, 7, 8
_OPEN, _NO_METHOD, _CONNECT = 0, 0xFF, 1
_IPV4, _NAME, _IPV6 = 1, 3, 4
_FAMILIES = {_IPV4: socket.AF_INET, _IPV6: socket.AF_INET6}
_SIZES = {_IPV4: 4, _IPV6: 16}


async def asked_for(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> tuple[str, int] | None:
    """The host and port that a client wants, whose first byte is read; None for anything else.

    What it cannot have for its own fault is answered here.
    """
    methods = await reader.readexactly((await reader.readexactly(1))[0])
    is_open = _OPEN in methods
    writer.write(bytes([VERSION, _OPEN if is_open else _NO_METHOD]))
    if not is_open:
        return None
    _, command, _, kind = await reader.readexactly(4)
    if kind == _NAME:
        host = (await reader.readexactly((await reader.readexactly(1))[0])).decode("latin-1")
    elif kind in _SIZES:
        host = socket.inet_ntop(_FAMILIES[kind], await reader.readexactly(_SIZES[kind]))
    else:
        writer.write(socks_answer(NO_SUCH_ADDRESS))
        return None
    port = int.from_bytes(await reader.readexactly(2), "big")
    if command != _CONNECT:
        writer.write(socks_answer(NO_SUCH_COMMAND))
        return None
    return host, port


def socks_answer(code: int) -> bytes:
    """What a client is told of its request."""
    return bytes([VERSION, code, 0, _IPV4]) + bytes(6)
