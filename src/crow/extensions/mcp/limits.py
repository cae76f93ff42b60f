"""Limits on a server, and what settings say of them: how long it may take, how much it may send."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from crow import Arg
from crow.dataclasses import frozen

MEBIBYTE = 1024 * 1024
MESSAGE = 8 * MEBIBYTE
"""Bytes of one message: a line of a process, an answer or an event of a web server."""
TEXT = MEBIBYTE
"""Characters of text in one result."""
PAGES = 100
ENTRIES = 1000
"""Tools, prompts or resources of one server."""
LINES = 200
"""Lines that are kept of what a server logs."""
LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


@frozen
class Limits:
    """Seconds, and from which level on a server is to log.

    ``call`` counts from the last sign of life; ``wait`` is what a prompt waits.
    """

    connect: float = 60.0
    call: float = 300.0
    wait: float = 3.0
    close: float = 1.0
    backoff: float = 0.25
    log_level: LogLevel = "info"


@frozen
class McpOptions:
    """The settings of MCP servers, beside `mcpServers`."""

    servers: Mapping[str, Mapping[str, Any]] | None = None
    """Servers by name; the same as ``mcpServers``."""
    connect_timeout: Annotated[float, Arg(above=0)] = 60.0
    """Seconds for connecting."""
    call_timeout: Annotated[float, Arg(above=0)] = 300.0
    """Seconds that a call may be silent."""
    wait: Annotated[float | None, Arg(minimum=0)] = None
    """Seconds that the first request waits: 3 without it, in ``crow run`` until each is there."""
    close_timeout: Annotated[float, Arg(minimum=0)] = 1.0
    """Seconds that a server has for ending by itself."""
    log_level: LogLevel = "info"
    """From which level on servers are to log; `/mcp log NAME` shows what one has logged."""
    only: Sequence[str] | None = None
    """Servers by name beside which there are to be no others, wherever they are described."""
    off: Sequence[str] = ()
    """Servers of a project's ``.mcp.json`` that are not to be used."""
