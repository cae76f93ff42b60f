"""The queue on procrastinate: one of its rows for each epoch of a job, and no more than that.

Its workers, heartbeats and rescues are not used: they judge by the row's number alone, so that a
zombie ends the row of who took over. Here every epoch has a row of its own, which only the holder
of that epoch ends.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from crow.fleet.queue import End, Offer
from crow.fleet.task import FleetError

if TYPE_CHECKING:
    from procrastinate.jobs import Job
    from psycopg_pool import AsyncConnectionPool

logger = logging.getLogger("crow.fleet")

QUEUE = "crow-fleet"
TASK = "crow.fleet.session"
MANY = 1000
"""Rows that are deleted in one go."""


VACUUM = """
ALTER TABLE procrastinate_jobs
    SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_analyze_scale_factor = 0.01);
"""
FOREIGN_KEY = """
SELECT 1 FROM pg_constraint WHERE contype = 'f' AND confdeltype = 'n'
    AND conrelid = 'procrastinate_jobs'::regclass
    AND confrelid = to_regclass('procrastinate_workers')
"""
"""Where a worker's row is pruned its jobs must stay."""
OLD = (
    "the tables of procrastinate in this database are older than its version 3.1: migrate them, or"
    " give the fleet a schema of its own (search_path)"
)
PRUNE = "DELETE FROM procrastinate_workers WHERE last_heartbeat < now() - interval '1 day'"
CLEAN = """
DELETE FROM procrastinate_jobs WHERE id IN (
    SELECT e.id FROM procrastinate_jobs e WHERE e.queue_name = %s AND e.status <> 'todo'
        AND NOT EXISTS (SELECT 1 FROM fleet_jobs j
            WHERE j.engine_row = e.id
                AND (j.state = 'running' OR (j.state = 'queued' AND j.offered IS NOT NULL)))
    LIMIT %s
)
"""


class ProcrastinateQueue:
    """A `Queue` in the tables of procrastinate, over a pool of connections that somebody opened."""

    def __init__(self, pool: AsyncConnectionPool[Any]) -> None:
        from procrastinate import App, PsycopgConnector

        self._pool = pool
        self._app = App(connector=PsycopgConnector())
        self._manager = self._app.job_manager
        self._worker: int | None = None

    async def open(self) -> None:
        """Begin to use the pool; the tables are there by then (`tables`).

        Raises `FleetError` where they are somebody's, and too old.
        """
        await self._app.open_async(self._pool)
        async with self._pool.connection() as connection:
            found = await connection.execute(FOREIGN_KEY)
            if await found.fetchone() is None:
                raise FleetError(OLD)

    @staticmethod
    def tables() -> str:
        """What makes the engine's tables."""
        from procrastinate.schema import SchemaManager

        return SchemaManager.get_schema() + VACUUM

    async def offer(self, offers: Sequence[Offer], connection: Any = None) -> list[int]:
        """Put offers in the queue; the engine's rows, in the same order."""
        from procrastinate.jobs import Job

        jobs = [
            Job(
                id=None,
                queue=QUEUE,
                lock=None,
                queueing_lock=None,
                task_name=TASK,
                priority=offer.priority,
                task_kwargs={"job": offer.job, "epoch": offer.epoch},
            )
            for offer in offers
        ]
        rows = await self._manager.batch_defer_jobs_async(jobs, connection)
        return [row.id or 0 for row in rows]

    async def count(self) -> None:
        """Have the table counted anew, which has grown: else each lease sorts the whole queue."""
        async with self._pool.connection() as connection:
            await connection.execute("ANALYZE procrastinate_jobs")

    async def lease(self, limit: int) -> list[Offer]:
        """Take at most so many offers."""
        offers: list[Offer] = []
        while len(offers) < limit:
            job = await self._fetch()
            if job is None:
                break
            said = job.task_kwargs
            offers.append(
                Offer(str(said["job"]), int(str(said["epoch"])), job.priority, job.id or 0)
            )
        return offers

    async def _fetch(self) -> Job | None:
        """Take one of its rows, as a worker that has a row too: it may have been pruned."""
        from procrastinate.exceptions import ConnectorException

        if self._worker is not None:
            try:
                return await self._manager.fetch_job([QUEUE], self._worker)
            except ConnectorException as error:
                logger.info("registered anew with the queue: %s", error.__cause__ or error)
        self._worker = await self._manager.register_worker()
        return await self._manager.fetch_job([QUEUE], self._worker)

    async def finish(self, offer: Offer, end: End) -> None:
        """Take an offer that was leased out of the queue; it may have been cleaned away."""
        from procrastinate.exceptions import ConnectorException
        from procrastinate.jobs import Status
        from psycopg.errors import RaiseException

        status = Status.SUCCEEDED if end == "done" else Status.FAILED
        try:
            await self._manager.finish_job_by_id_async(offer.row, status, delete_job=True)
        except ConnectorException as error:
            if not isinstance(error.__cause__, RaiseException):
                raise

    async def waiting(self, offers: Sequence[Offer]) -> set[str]:
        """The jobs of those offers that nobody has leased yet."""
        jobs = {offer.row: offer.job for offer in offers}
        async with self._pool.connection() as connection:
            found = await connection.execute(
                "SELECT id FROM procrastinate_jobs WHERE id = ANY(%s) AND status = 'todo'",
                (list(jobs),),
            )
            return {jobs[row[0]] for row in await found.fetchall()}

    async def clean(self) -> int:
        """Delete rows that nobody will end any more, a part of them; how many."""
        async with self._pool.connection() as connection:
            await connection.execute(PRUNE)
            return (await connection.execute(CLEAN, (QUEUE, MANY))).rowcount

    async def listen(
        self, wake: Callable[[], Awaitable[None]], cancel: Callable[[str], Awaitable[None]]
    ) -> None:
        """Call ``wake`` when there may be something to lease; until cancelled."""

        async def heard(**_: Any) -> None:
            await wake()

        await self._manager.listen_for_jobs(on_notification=heard, queues=[QUEUE])
        await asyncio.Event().wait()  # a pooler that hears nothing: whoever waits looks by itself
