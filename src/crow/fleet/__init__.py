"""Many sessions on many machines: a table of jobs, workers that lease them, and PostgreSQL alone.

A job is one session that runs until it stops. `board` is the table and the judge of who is alive,
`queue` the port that an existing library fills (`procrastinate_queue`), `worker` leases and runs,
`cli` is ``crow fleet``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crow._lazy import lazy

if TYPE_CHECKING:
    from crow.fleet.queue import Housekeeping as Housekeeping
    from crow.fleet.queue import Offer as Offer
    from crow.fleet.queue import Queue as Queue
    from crow.fleet.queue import Renewing as Renewing
    from crow.fleet.task import FleetError as FleetError

_ROOMS = {
    "crow.fleet.queue": "Housekeeping Offer Queue Renewing",
    "crow.fleet.task": "FleetError",
}

if not TYPE_CHECKING:  # a checker takes any name for there where it sees one
    __all__, __getattr__, __dir__ = lazy(__name__, _ROOMS)
