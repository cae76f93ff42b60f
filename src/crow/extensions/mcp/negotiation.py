"""The negotiation with a server: a transport and a handshake to begin with, the newest first."""

from __future__ import annotations

import os
from http import HTTPStatus
from typing import Literal, NamedTuple

from mcp.shared.exceptions import MCPError
from mcp.types import CONNECTION_CLOSED, METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION

from crow.extensions.mcp.description import Transport

NEWER = (UNSUPPORTED_PROTOCOL_VERSION, METHOD_NOT_FOUND)
"""How a server that knows only the newer handshake answers the older one."""
OLDER = (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED)
"""How a web server that knows only the oldest transport answers both handshakes."""


class ConnectionMode(NamedTuple):
    """``auto`` asks for the newest protocol and falls back; ``legacy`` is the older handshake."""

    transport: Transport
    mode: Literal["auto", "legacy"]


def first_mode(transport: Transport) -> ConnectionMode:
    """What to try first; the oldest transport has the older handshake only.

    ``MCP_PROTOCOL_NEGOTIATION=legacy`` wants that everywhere: some servers that know both
    handshakes can ask their user behind the older one only.
    """
    is_older = transport == "sse" or os.environ.get("MCP_PROTOCOL_NEGOTIATION") == "legacy"
    return ConnectionMode(transport, "legacy" if is_older else "auto")


def fallback_mode(way: ConnectionMode, error: BaseException, status: int) -> ConnectionMode | None:
    """What to try after a failure, with the HTTP ``status`` that there was, if any."""
    code = error.code if isinstance(error, MCPError) else None
    match way:
        case ConnectionMode("stdio", "auto") if code == CONNECTION_CLOSED:
            return ConnectionMode(
                "stdio", "legacy"
            )  # many end at the first word that they do not know
        case ConnectionMode("http", "auto") if status in OLDER and code not in NEWER[:1]:
            return ConnectionMode("sse", "legacy")
        case ConnectionMode("stdio" | "http", "legacy") if code in NEWER:
            return ConnectionMode(way.transport, "auto")
        case _:
            return None
