"""Limits on a server: how long it may take, and how much it may send."""

from __future__ import annotations

from typing import Literal

from crow import frozen

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
