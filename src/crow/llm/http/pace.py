"""How much of what endpoints say is worked on before the event loop goes on to something else."""

from __future__ import annotations

import asyncio

SHARE = 8 * 1024
"""Bytes: some 50 pieces, a millisecond or two."""


class Pace:
    """Lets answers that come faster than they can be worked on go on in turns of the loop.

    All that ask one endpoint share one, so that many of them take no longer a turn than one does.
    """

    __slots__ = ("_said", "_turn")

    def __init__(self) -> None:
        self._said = 0
        self._turn = asyncio.Lock()

    def is_up(self, size: int) -> bool:
        """True where so many bytes more are too many for now: `turn` is to be awaited first."""
        self._said += size
        return self._said > SHARE

    async def turn(self, size: int) -> None:
        """Wait for a turn of the loop in which nobody else goes on who had to wait."""
        async with self._turn:
            await asyncio.sleep(0)
        self._said = size
