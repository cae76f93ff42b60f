"""The port that an engine of queues fills: it says what may be begun, and never who is alive.

An offer names the epoch that it expects; the board's claim compares it. So two offers of one epoch
cannot both begin, and whoever was thought dead can end nothing but its own old offer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, Protocol

from crow.core.frozen import frozen

End = Literal["done", "failed"]


@frozen
class Offer:
    """A session that may be begun by who finds it at this ``epoch``. ``row`` is the engine's."""

    job: str
    epoch: int
    priority: int = 0
    row: int = 0


class Queue(Protocol):
    """An engine. Every method raises `FleetError` where it cannot be reached."""

    async def offer(self, offers: Sequence[Offer], connection: Any = None) -> list[int]:
        """Put offers in the queue; the engine's rows, in the same order.

        ``connection`` is one of the board's, in a transaction that they are to be part of, where
        the engine lies in the same database.
        """
        ...

    async def lease(self, limit: int) -> list[Offer]:
        """Take at most so many offers, those of the highest priority first; none where all wait."""
        ...

    async def finish(self, offer: Offer, end: End) -> None:
        """Take an offer that was leased out of the queue."""
        ...

    async def is_waiting(self, rows: Sequence[int]) -> set[int]:
        """Those of some rows that nobody has leased yet."""
        ...

    async def listen(self, wake: Callable[[], Awaitable[None]]) -> None:
        """Call ``wake`` when there may be something to lease; until cancelled."""
        ...
