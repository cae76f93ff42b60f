"""The thread that says to the database that this worker lives, job by job.

It has a connection of its own and needs no event loop, so that a session that computes loses
nothing; but a loop that has not come by for a minute is not alive, and is left to lose its jobs.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from crow.fleet.database import CONNECTION

logger = logging.getLogger("crow.fleet")

STUCK = 60.0
"""Seconds for which a loop may not come by."""
RENEW = """
UPDATE fleet_leases l SET until = clock_timestamp() + %s * interval '1 second'
FROM fleet_jobs j, unnest(%s::text[], %s::bigint[]) AS held (job, epoch)
WHERE j.id = l.job AND l.job = held.job AND l.epoch = held.epoch AND j.epoch = held.epoch
RETURNING l.job, l.epoch, j.cancel
"""

Key = tuple[str, int]
Told = Callable[[Any], object]
"""Called in the thread with ``lost`` or ``cancelled``."""


class Leases:
    """The leases that this process renews, as (job, epoch)."""

    def __init__(self, address: str, lease: float, stuck: float = STUCK) -> None:
        self.address = address
        self.lease = lease
        self._stuck = stuck
        self._held: dict[Key, Told] = {}
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._seen = time.monotonic()
        self._renewed = time.monotonic()
        self._thread = threading.Thread(target=self._live, name="crow-fleet", daemon=True)

    def start(self) -> None:
        """Begin to renew."""
        self._thread.start()

    def close(self) -> None:
        """Renew no more; what is still held runs out."""
        self._end.set()
        self._thread.join(self.lease / 3)

    def hold(self, key: Key, told: Told) -> None:
        """Renew a lease from now on."""
        with self._lock:
            self._held[key] = told

    def drop(self, key: Key) -> None:
        """Renew it no more."""
        with self._lock:
            self._held.pop(key, None)

    def alive(self) -> None:
        """Say that the event loop comes by."""
        self._seen = time.monotonic()

    def _live(self) -> None:
        connection: Any = None
        while not self._end.wait(self.lease / 3 if connection is not None else 0.2):
            if time.monotonic() - self._seen > self._stuck:
                logger.error(
                    "the event loop has stood still for %.0f s: its jobs are let go", self._stuck
                )
                continue
            try:
                connection = connection or self._connect()
                self._renew(connection)
            except Exception as error:  # noqa: BLE001 - the thread must live on
                logger.warning("leases were not renewed: %s", error)
                connection = _closed(connection)
                self._give_up()
        _closed(connection)

    def _connect(self) -> Any:
        from psycopg import connect
        from psycopg.conninfo import make_conninfo

        address = make_conninfo(self.address, **CONNECTION)
        return connect(address, autocommit=True, prepare_threshold=None)

    def _renew(self, connection: Any) -> None:
        with self._lock:
            held = dict(self._held)
        began = time.monotonic()
        jobs, epochs = [job for job, _ in held], [epoch for _, epoch in held]
        found: list[tuple[str, int, bool]] = (
            connection.execute(RENEW, (self.lease, jobs, epochs)).fetchall() if held else []
        )
        self._renewed = began
        there = {(job, epoch): is_cancelled for job, epoch, is_cancelled in found}
        for key, told in held.items():
            if key not in there:
                self.drop(key)
                told("lost")
            elif there[key]:
                told("cancelled")

    def _give_up(self) -> None:
        """Let all go that others may have by now: who could not renew so long starts nothing."""
        if time.monotonic() - self._renewed < self.lease:
            return
        with self._lock:
            held, self._held = self._held, {}
        for told in held.values():
            told("lost")


def _closed(connection: Any) -> None:
    if connection is not None:
        connection.close()
