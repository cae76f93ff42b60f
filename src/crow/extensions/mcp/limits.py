"""How long a server may take, and how much it may send."""

from __future__ import annotations

from crow import frozen

MEBIBYTE = 1024 * 1024
MESSAGE = 8 * MEBIBYTE
"""Bytes of one message: a line of a process, an answer or an event of a web server."""
TEXT = MEBIBYTE
"""Characters of text in one result."""
PAGES = 100
ENTRIES = 1000
"""Tools, prompts or resources of one server."""


@frozen
class Limits:
    """Seconds. ``call`` counts from the last sign of life; ``wait`` is what a prompt waits."""

    connect: float = 60.0
    call: float = 300.0
    wait: float = 3.0
    close: float = 1.0
    backoff: float = 0.25
