"""The queue on procrastinate: one of its rows for each epoch of a job, and no more of it than that.

Its workers, heartbeats and rescues are not used: they judge by the row's number alone, so that a
zombie ends the row of who took over. Here every epoch has a row of its own, which only the holder
of that epoch ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from crow.fleet.queue import End, Offer

if TYPE_CHECKING:
    from psycopg_pool import AsyncConnectionPool

QUEUE = "crow-fleet"
TASK = "crow.fleet.session"


class ProcrastinateQueue:
    """A `Queue` in the tables of procrastinate, over a pool of connections that somebody opened."""

    def __init__(self, pool: AsyncConnectionPool[Any]) -> None:
        from procrastinate import App, PsycopgConnector

        self._pool = pool
        self._app = App(connector=PsycopgConnector())
        self._manager = self._app.job_manager
        self._worker: int | None = None

    async def open(self) -> None:
        """Begin to use the pool; the tables are there by then (`make_tables`)."""
        await self._app.open_async(self._pool)

    @staticmethod
    def tables() -> str:
        """What makes the engine's tables."""
        from procrastinate.schema import SchemaManager

        return SchemaManager.get_schema()

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
        if self._worker is None:
            self._worker = await self._manager.register_worker()
        offers: list[Offer] = []
        while len(offers) < limit:
            job = await self._manager.fetch_job([QUEUE], self._worker)
            if job is None:
                break
            said = job.task_kwargs
            offers.append(
                Offer(str(said["job"]), int(str(said["epoch"])), job.priority, job.id or 0)
            )
        return offers

    async def finish(self, offer: Offer, end: End) -> None:
        """Take an offer that was leased out of the queue."""
        from procrastinate.jobs import Status

        status = Status.SUCCEEDED if end == "done" else Status.FAILED
        await self._manager.finish_job_by_id_async(offer.row, status, delete_job=True)

    async def is_waiting(self, rows: Sequence[int]) -> set[int]:
        """Those of some rows that nobody has leased yet."""
        async with self._pool.connection() as connection:
            found = await connection.execute(
                "SELECT id FROM procrastinate_jobs WHERE id = ANY(%s) AND status = 'todo'",
                (list(rows),),
            )
            return {row[0] for row in await found.fetchall()}

    async def listen(self, wake: Callable[[], Awaitable[None]]) -> None:
        """Call ``wake`` when there may be something to lease; until cancelled."""

        async def heard(**_: Any) -> None:
            await wake()

        await self._manager.listen_for_jobs(on_notification=heard, queues=[QUEUE])
        await asyncio.Event().wait()  # a pooler that hears nothing: whoever waits looks by itself
