"""The table of jobs: who does what, who is alive, what came of it. The only judge of all three.

A claim raises a job's epoch, and whoever holds that epoch alone renews, reports and ends it. Leases
lie in a narrow table of their own and are measured by the database's clock. An offer in the queue
is a hint: it is made anew where it was lost, and counts for nothing where it is late.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

from crow.core.support.frozen import frozen
from crow.fleet.database import Database
from crow.fleet.job_filter import JobFilter
from crow.fleet.queue import Housekeeping, Offer, Queue
from crow.fleet.rate_limits import RateLimits
from crow.fleet.statements import CLAIM, COME_BY, LEAVE, OFFERED, OVERSPENT, RESCUE, SUBMIT
from crow.fleet.task import Task, task_of

if TYPE_CHECKING:
    from psycopg import AsyncConnection

State = Literal["queued", "running", "waiting", "done", "failed", "cancelled", "stopped"]
LEASE = 20.0
"""Seconds after which a job whose worker is not heard of is begun elsewhere."""
MANY = 1000
AT_ONCE = 100
"""How many dead jobs a worker takes back in one look: no stampede after an outage."""


@frozen
class Claimed:
    """A job that a worker has: nobody else has this ``epoch`` of it. ``answers`` are a person's."""

    job: str
    batch: str
    epoch: int
    task: Task
    tries: int
    answers: tuple[Mapping[str, Any], ...] = ()
    patch: bytes | None = None
    cost: float = 0.0
    turns: int = 0


@frozen
class Left:
    """The way a worker leaves a job. ``counts`` is whether that was one of its tries."""

    state: State
    outcome: Mapping[str, Any] | None = None
    question: Mapping[str, Any] | None = None
    cost: float = 0.0
    turns: int = 0
    patch: bytes | None = None
    counts: bool = True


class Board:
    """The jobs in a PostgreSQL database; ``async with`` opens it.

    ``patience`` is for how many seconds a database that is not there is waited for; ``queue`` an
    engine in the place of the one that is built in.
    """

    def __init__(
        self,
        address: str,
        *,
        lease: float = LEASE,
        size: int = 4,
        patience: float = 0.0,
        queue: Queue | None = None,
    ) -> None:
        self.address = address
        self.lease = lease
        self.database = Database(address, size=size, patience=patience)
        self._queue = queue
        self.pace = RateLimits(self.database)
        self.connection = self.database.connection
        self._all = self.database.rows

    async def __aenter__(self) -> Self:
        await self.database.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.database.__aexit__()

    @property
    def queue(self) -> Queue:
        """The engine that offers go through."""
        return self._queue or self.database.queue

    # what people do

    async def submit(
        self, batch: str, tasks: Sequence[Task], budget: float | None = None
    ) -> tuple[int, int]:
        """Add jobs to a batch: how many are new, and how many were there by their keys.

        ``budget`` is in dollars, for the whole batch; none leaves it as it is.
        """
        async with self.connection() as connection:
            new = await self.add(connection, batch, tasks, budget)
        await self.offer_all()
        return new, len(tasks) - new

    async def add(
        self,
        connection: AsyncConnection[Any],
        batch: str,
        tasks: Sequence[Task],
        budget: float | None = None,
    ) -> int:
        """Add jobs in somebody's transaction, who offers them afterwards; how many are new."""
        new = 0
        await connection.execute(
            "INSERT INTO fleet_batches (name, budget) VALUES (%s, %s) ON CONFLICT (name)"
            " DO UPDATE SET budget = coalesce(excluded.budget, fleet_batches.budget),"
            " told_finished = false, told_spent = fleet_batches.told_spent AND"
            " coalesce(excluded.budget, fleet_batches.budget) <= fleet_batches.budget",
            (batch, budget),
        )
        for start in range(0, len(tasks), MANY):
            part = tasks[start : start + MANY]
            given = json.dumps([_row_of(task) for task in part])
            cursor = await connection.execute(SUBMIT, (batch, given))
            new += max(cursor.rowcount, 0)
        return new

    async def offer_all(self) -> None:
        """Put in the queue all that is not in it, and have tables that grew much counted anew."""
        many, counted = 0, MANY // 2
        while number := await self.offer_due():
            many += number
            if many >= 2 * counted:
                if isinstance(self.queue, Housekeeping):
                    await self.queue.count()
                await self._all("ANALYZE fleet_jobs")
                counted = many

    async def cancel(self, where: JobFilter) -> int:
        """Cancel jobs: what waits at once, what runs when its worker next renews."""
        done = await self._all(
            "UPDATE fleet_jobs SET cancel = true,"  # noqa: S608
            " state = CASE WHEN state = 'running' THEN state ELSE 'cancelled' END,"
            " ended = CASE WHEN state = 'running' THEN NULL ELSE clock_timestamp() END"
            f" WHERE state IN ('queued', 'running', 'waiting') AND {where.sql} RETURNING id",
            where.values,
        )
        return len(done)

    async def retry(self, where: JobFilter) -> int:
        """Let jobs that failed, were stopped or cancelled go on where they ended."""
        done = await self._all(
            "UPDATE fleet_jobs SET state = 'queued', cancel = false, tries = 0, ended = NULL,"  # noqa: S608
            " outcome = NULL, offered = NULL"
            f" WHERE state IN ('failed', 'cancelled', 'stopped') AND {where.sql}"
            " RETURNING batch",
            where.values,
        )
        await self._all(
            "UPDATE fleet_batches SET told_finished = false WHERE name = ANY(%s)",
            (list({row["batch"] for row in done}),),
        )
        await self.offer_all()
        return len(done)

    async def answer(self, job: str, answer: str, epoch: int | None = None) -> bool:
        """Answer what a job waits for, so that it goes on; False where it waits for nothing.

        ``epoch`` is the one in which it was asked: a question of another is not meant.
        """
        done = await self._all(
            "UPDATE fleet_jobs SET state = 'queued', offered = NULL, answers = answers"
            " || jsonb_build_array(question || jsonb_build_object('answer', %s::text)),"
            " question = NULL WHERE id = %s AND state = 'waiting'"
            " AND epoch = coalesce(%s::bigint, epoch) RETURNING id",
            (answer, job, epoch),
        )
        await self.offer_due()
        return bool(done)

    async def jobs(self, where: JobFilter) -> list[dict[str, Any]]:
        """Rows of jobs, in the order in which they were submitted."""
        return await self._all(
            "SELECT id, key, batch, state, priority, labels, task, epoch, who, tries, turns,"  # noqa: S608
            " cost,"
            " question, outcome, created, started, ended, patch IS NOT NULL AS changed"
            f" FROM fleet_jobs WHERE {where.sql} ORDER BY created, id",
            where.values,
        )

    async def moves(self, job: str) -> list[dict[str, Any]]:
        """Which machines a job was on, in turn: from when and which turn until, and how it left.

        ``until`` of one that was lost is as far as it had reported.
        """
        return await self._all(
            "SELECT epoch, who, began, since, ended, until, how FROM fleet_moves"
            " WHERE job = %s ORDER BY epoch",
            (job,),
        )

    async def over(self, jobs: Collection[str]) -> list[str]:
        """Those of some jobs that neither run nor will by themselves."""
        rows = await self._all(
            "SELECT id FROM fleet_jobs WHERE id = ANY(%s) AND state NOT IN ('queued', 'running')",
            (list(jobs),),
        )
        return [row["id"] for row in rows]

    async def patch(self, job: str) -> bytes | None:
        """What a session has changed in its working tree, as a patch of git's."""
        rows = await self._all("SELECT patch FROM fleet_jobs WHERE id = %s", (job,))
        return bytes(rows[0]["patch"]) if rows and rows[0]["patch"] is not None else None

    async def summary(self, where: JobFilter) -> dict[str, Any]:
        """How many jobs there are in each state, what they cost, and how fast they end."""
        (row,) = await self._all(
            "SELECT count(*) AS jobs, coalesce(sum(cost), 0) AS cost,"  # noqa: S608
            " coalesce(sum(turns), 0) AS turns, min(started) AS began,"
            " count(*) FILTER (WHERE ended > clock_timestamp() - interval '5 minutes') AS recent,"
            " extract(epoch FROM clock_timestamp() - greatest(min(started),"
            "   clock_timestamp() - interval '5 minutes'))::float8 AS seconds"
            f" FROM fleet_jobs WHERE {where.sql}",
            where.values,
        )
        states = await self._all(
            f"SELECT state, count(*) AS jobs FROM fleet_jobs WHERE {where.sql} GROUP BY 1",  # noqa: S608
            where.values,
        )
        return {**row, "states": {each["state"]: each["jobs"] for each in states}}

    # what workers do

    async def claim(self, offer: Offer, who: str) -> Claimed | None:
        """Begin a job; None where the offer is late, or the batch has no money left."""
        if await self._all(OVERSPENT, (offer.job,)):
            return None
        values = {"job": offer.job, "epoch": offer.epoch, "who": who, "lease": self.lease}
        rows = await self._all(CLAIM, values)
        if not rows:
            return None
        row = rows[0]
        return Claimed(
            row["id"],
            row["batch"],
            row["epoch"],
            task_of(row["task"]),
            row["tries"],
            tuple(row["answers"]),
            None if row["patch"] is None else bytes(row["patch"]),
            row["cost"],
            row["turns"],
        )

    async def leave(self, claimed: Claimed, left: Left) -> bool:
        """End a job, hand it back, or let it wait; False where another has it by now."""
        from psycopg.types.json import Jsonb

        rows = await self._all(
            LEAVE,
            {
                "job": claimed.job,
                "epoch": claimed.epoch,
                "state": left.state,
                "outcome": None if left.outcome is None else Jsonb(dict(left.outcome)),
                "question": None if left.question is None else Jsonb(dict(left.question)),
                "cost": left.cost,
                "turns": left.turns,
                "patch": left.patch,
                "counts": left.counts,
            },
        )
        if left.state == "queued":
            await self.offer_due()
        return bool(rows)

    async def report(
        self, claimed: Claimed, *, turns: int, cost: float, patch: bytes | None
    ) -> bool:
        """Say how far a job is; False where its batch has no money left, or another has it."""
        rows = await self._all(
            "UPDATE fleet_jobs j SET turns = %s, cost = %s, patch = coalesce(%s, patch)"
            " FROM fleet_batches b WHERE b.name = j.batch AND j.id = %s AND j.epoch = %s"
            " RETURNING b.budget IS NULL OR b.budget > %s - j.cost + (SELECT sum(cost)"
            " FROM fleet_jobs s WHERE s.batch = b.name) AS goes_on",
            (turns, cost, patch, claimed.job, claimed.epoch, cost),
        )
        return bool(rows and rows[0]["goes_on"])

    async def rescue(self) -> int:
        """Take back the jobs of workers that are not heard of; how many."""
        return len(await self._all(RESCUE, {"lease": self.lease, "most": AT_ONCE}))

    async def clean(self) -> None:
        """Delete what is of no use any more: rows of the engine, and old news."""
        while isinstance(self.queue, Housekeeping) and await self.queue.clean() >= MANY:
            pass
        await self._all(
            "DELETE FROM fleet_deliveries WHERE at < clock_timestamp() - interval '7 days'"
        )

    async def offer_due(self) -> int:
        """Put in the queue what is not in it, a part; how many.

        Of one priority, those that were begun before go first.
        """
        async with self.connection() as connection:
            found = await connection.execute(
                "SELECT id, epoch, 2 * priority + (epoch > 0)::int FROM fleet_jobs"
                " WHERE state = 'queued'"
                " AND offered IS NULL ORDER BY priority DESC, created LIMIT %s"
                " FOR UPDATE SKIP LOCKED",
                (MANY,),
            )
            offers = [Offer(*row) for row in await found.fetchall()]
            if not offers:
                return 0
            rows = await self.queue.offer(offers, connection)
            pairs = zip(offers, rows, strict=True)
            given = [{"id": offer.job, "number": number} for offer, number in pairs]
            await connection.execute(OFFERED, (json.dumps(given),))
            return len(offers)

    async def offer_again(self) -> int:
        """Offer what an engine's row was made for that nobody will find any more; how many."""
        stale = await self._all(
            "SELECT id, epoch, engine_row FROM fleet_jobs WHERE state = 'queued'"
            " AND offered < clock_timestamp() - %s * interval '1 second' LIMIT %s",
            (2 * self.lease, MANY),
        )
        if not stale:
            return 0
        offers = [Offer(row["id"], row["epoch"], row=row["engine_row"] or 0) for row in stale]
        waiting = await self.queue.waiting(offers)
        lost = [offer.job for offer in offers if offer.job not in waiting]
        await self._all(
            "UPDATE fleet_jobs SET offered = NULL WHERE id = ANY(%s) AND state = 'queued'", (lost,)
        )
        return await self.offer_due() if lost else 0

    async def come_by(self, who: str, places: int, running: int) -> bool:
        """Say that a worker is there, and hear who refuses; True where it is asked to drain."""
        (row,) = await self._all(COME_BY, (who, places, running))
        self.pace.hear(row["paces"] or ())
        return bool(row["drain"])

    async def go(self, who: str) -> None:
        """Say that a worker goes."""
        await self._all("DELETE FROM fleet_workers WHERE who = %s", (who,))

    async def workers(self) -> list[dict[str, Any]]:
        """The workers that are heard of."""
        return await self._all(
            "SELECT who, places, running, drain, seen FROM fleet_workers"
            " WHERE seen > clock_timestamp() - %s * interval '1 second' ORDER BY who",
            (2 * self.lease,),
        )

    async def drain(self, who: str = "") -> int:
        """Ask workers to begin nothing more, those whose name begins so; how many."""
        rows = await self._all(
            "UPDATE fleet_workers SET drain = true WHERE starts_with(who, %s) RETURNING who", (who,)
        )
        return len(rows)


def _row_of(task: Task) -> dict[str, Any]:
    """A task as a new row."""
    return {
        "id": uuid.uuid4().hex,
        "key": task.key,
        "priority": task.priority,
        "labels": dict(task.labels),
        "task": task.as_data(),
    }
