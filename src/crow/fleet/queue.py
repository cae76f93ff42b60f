"""The port that an engine of queues fills: it says what may be begun, and never who is alive.

An offer names the epoch that it expects; the board's claim compares it. So two offers of one epoch
cannot both begin, and whoever was thought dead can end nothing but its own old offer.

``CROW_FLEET_QUEUE`` names another engine than the one that is built in, as ``MODULE:NAME``: what
that name means is called with the number of sessions that this process may run at once, and answers
with a `Queue`.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from importlib import import_module
from typing import Any, Literal, Protocol, cast, runtime_checkable

from crow.core.support.frozen import frozen
from crow.fleet.task import FleetError

VARIABLE = "CROW_FLEET_QUEUE"
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

    async def waiting(self, offers: Sequence[Offer]) -> set[str]:
        """The jobs of those offers that somebody will find yet; the others are offered anew."""
        ...

    async def listen(
        self, wake: Callable[[], Awaitable[None]], cancel: Callable[[str], Awaitable[None]]
    ) -> None:
        """Call ``wake`` when there may be something to lease; until cancelled.

        Where people can call off a job in the engine itself, ``cancel`` is called with it.
        """
        ...


@runtime_checkable
class Renewing(Protocol):
    """A `Queue` that wants to hear that what was leased is still at work."""

    async def renew(self, offer: Offer, seq: int) -> None:
        """Called each second; the session has stored its records up to ``seq``, exclusively."""
        ...


@runtime_checkable
class Housekeeping(Protocol):
    """A `Queue` with tables that grow."""

    async def count(self) -> None:
        """Have a table counted anew that has grown much."""
        ...

    async def clean(self) -> int:
        """Delete what nobody will end any more, a part of it; how many."""
        ...


def chosen_queue(places: int = 0) -> Queue | None:
    """The engine that the environment names; None for the built-in one. Raises `FleetError`."""
    name = os.environ.get(VARIABLE, "")
    if not name:
        return None
    module, _, attribute = name.partition(":")
    try:
        return cast("Queue", getattr(import_module(module), attribute)(places))
    except (ImportError, AttributeError, ValueError) as error:
        raise FleetError(f"{VARIABLE}={name} is no engine of a queue: {error}") from error
