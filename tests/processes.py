"""Processes that are no children of a test's, of whose doings no event tells."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path


def is_alive(pid: int) -> bool:
    """True for a process that runs; one that ended and that nobody has reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


async def until(is_met: Callable[[], object], seconds: float = 50) -> None:
    """Wait for what another process does."""
    async with asyncio.timeout(seconds):
        while not is_met():  # noqa: ASYNC110 - no event comes from there
            await asyncio.sleep(0.01)
