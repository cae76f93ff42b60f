"""The table of jobs: who does what, who is alive, what came of it. The only judge of all three.

A claim raises a job's epoch, and whoever holds that epoch alone renews, reports and ends it. Leases
lie in a narrow table of their own and are measured by the database's clock. An offer in the queue
is a hint: it is made anew where it was lost, and counts for nothing where it is late.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from crow.core.frozen import frozen
from crow.fleet.engine import ProcrastinateQueue
from crow.fleet.queue import Offer
from crow.fleet.schema import LOCK, MIGRATIONS
from crow.fleet.task import FleetError, Task, task_of

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from psycopg_pool import AsyncConnectionPool

T = TypeVar("T")
State = Literal["queued", "running", "waiting", "done", "failed", "cancelled", "stopped"]
OPEN = ("queued", "running", "waiting")
LEASE = 20.0
"""Seconds after which a job whose worker is not heard of is begun elsewhere."""
MANY = 1000
AT_ONCE = 100
"""How many dead jobs a worker takes back in one look: no stampede after an outage."""
CONNECTION: Mapping[str, Any] = {
    "connect_timeout": 3,
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 4000,
    "application_name": "crow fleet",
}
TABLES = (
    "SELECT relname FROM pg_catalog.pg_class WHERE relnamespace = current_schema()::regnamespace"
    " AND relname IN ('fleet_version', 'procrastinate_jobs')"
)
CLAIM = """
WITH taken AS (
    UPDATE fleet_jobs SET epoch = epoch + 1, state = 'running', who = %(who)s, tries = tries + 1,
        question = NULL, started = coalesce(started, clock_timestamp())
    WHERE id = %(job)s AND epoch = %(epoch)s AND state = 'queued' AND NOT cancel
    RETURNING id, batch, epoch, task, tries, answers, patch, cost, turns
), leased AS (
    INSERT INTO fleet_leases SELECT id, epoch, clock_timestamp() + %(lease)s * interval '1 second'
    FROM taken ON CONFLICT (job) DO UPDATE SET epoch = excluded.epoch, until = excluded.until
), moved AS (
    INSERT INTO fleet_moves (job, epoch, who, since)
    SELECT id, epoch, %(who)s, turns FROM taken
)
SELECT * FROM taken
"""
SUBMIT = """
INSERT INTO fleet_jobs (id, key, batch, priority, labels, task)
SELECT id, key, %s, priority, labels, task FROM jsonb_to_recordset(%s::jsonb)
    AS given (id text, key text, priority int, labels jsonb, task jsonb)
ON CONFLICT (key) DO NOTHING
"""
OFFERED = """
UPDATE fleet_jobs j SET offered = clock_timestamp(), engine_row = given.number
FROM jsonb_to_recordset(%s::jsonb) AS given (id text, number bigint) WHERE j.id = given.id
"""
OVERSPENT = """
UPDATE fleet_jobs j SET state = 'stopped', ended = clock_timestamp(),
    outcome = jsonb_build_object('detail', 'the budget of the batch is spent')
FROM fleet_batches b WHERE b.name = j.batch AND j.id = %s AND j.state = 'queued'
    AND b.budget IS NOT NULL
    AND (SELECT sum(cost) FROM fleet_jobs s WHERE s.batch = b.name) >= b.budget
RETURNING 1
"""
RESCUE = """
WITH dead AS (
    SELECT l.job, l.epoch FROM fleet_leases l
    WHERE l.until < clock_timestamp() AND (
        l.until > pg_postmaster_start_time()
        OR clock_timestamp() > pg_postmaster_start_time() + %(lease)s * interval '1 second'
    )
    ORDER BY l.until FOR UPDATE SKIP LOCKED LIMIT %(most)s
), gone AS (
    DELETE FROM fleet_leases l USING dead WHERE l.job = dead.job
), moved AS (
    UPDATE fleet_moves m SET how = 'lost', ended = clock_timestamp(), until = j.turns
    FROM dead JOIN fleet_jobs j ON j.id = dead.job WHERE m.job = dead.job AND m.epoch = dead.epoch
)
UPDATE fleet_jobs j SET offered = NULL, who = '',
    state = CASE WHEN j.cancel THEN 'cancelled'
        WHEN j.tries >= (j.task ->> 'tries')::int THEN 'failed' ELSE 'queued' END,
    ended = CASE WHEN j.cancel OR j.tries >= (j.task ->> 'tries')::int
        THEN clock_timestamp() END,
    outcome = CASE WHEN j.tries >= (j.task ->> 'tries')::int
        THEN jsonb_build_object('detail', 'its machines died too often') END
FROM dead WHERE j.id = dead.job AND j.epoch = dead.epoch AND j.state = 'running'
RETURNING j.id
"""
"""Leases that ran out while the database was down are first renewed by who lives."""

COME_BY = """
INSERT INTO fleet_workers VALUES (%s, %s, %s, false, clock_timestamp())
ON CONFLICT (who) DO UPDATE SET running = excluded.running, seen = excluded.seen
RETURNING drain, (
    SELECT jsonb_object_agg(provider, extract(epoch FROM until - clock_timestamp()))
    FROM fleet_pace WHERE until > clock_timestamp()
) AS paces
"""

LEAVE = """
WITH mine AS (
    UPDATE fleet_jobs SET state = %(state)s, outcome = %(outcome)s, question = %(question)s,
        cost = %(cost)s, turns = %(turns)s, who = '', offered = NULL,
        patch = coalesce(%(patch)s, patch),
        tries = tries - CASE WHEN %(counts)s THEN 0 ELSE 1 END,
        ended = CASE WHEN %(state)s IN ('queued', 'waiting') THEN NULL ELSE clock_timestamp() END
    WHERE id = %(job)s AND epoch = %(epoch)s AND state = 'running' RETURNING id
), moved AS (
    UPDATE fleet_moves m SET ended = clock_timestamp(), until = %(turns)s,
        how = CASE WHEN %(state)s = 'queued' THEN 'handed back' ELSE %(state)s END
    FROM mine WHERE m.job = mine.id AND m.epoch = %(epoch)s
)
DELETE FROM fleet_leases USING mine WHERE job = mine.id RETURNING job
"""


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
    """How a worker leaves a job. ``counts`` is whether that was one of its tries."""

    state: State
    outcome: Mapping[str, Any] | None = None
    question: Mapping[str, Any] | None = None
    cost: float = 0.0
    turns: int = 0
    patch: bytes | None = None
    counts: bool = True


class Board:
    """The jobs in a PostgreSQL database; ``async with`` opens it.

    ``patience`` is for how many seconds a database that is not there is waited for.
    """

    def __init__(
        self, address: str, *, lease: float = LEASE, size: int = 4, patience: float = 0.0
    ) -> None:
        self.address = address
        self.lease = lease
        self._size = size
        self._patience = patience
        self._pool: AsyncConnectionPool[Any] | None = None
        self._queue: ProcrastinateQueue | None = None
        self._paces: dict[str, float] = {}

    async def __aenter__(self) -> Self:
        from psycopg import Error
        from psycopg.conninfo import make_conninfo
        from psycopg_pool import AsyncConnectionPool, PoolTimeout

        self._pool = AsyncConnectionPool(
            make_conninfo(self.address, **CONNECTION),
            kwargs={"autocommit": True, "prepare_threshold": None},
            min_size=1,
            max_size=self._size,
            open=False,
        )
        try:
            await retried(self._reach, patience=self._patience)
            await self._pool.open(wait=True, timeout=5)
            await self._bring_up()
        except (Error, PoolTimeout) as error:
            await self.__aexit__()
            why = str(error).strip().partition("\n")[0]
            raise FleetError(f"the database of the fleet cannot be used: {why}") from error
        except BaseException:
            await self.__aexit__()
            raise
        self._queue = ProcrastinateQueue(self._pool)
        await self._queue.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._pool is not None:
            await self._pool.close(timeout=1)

    @property
    def queue(self) -> ProcrastinateQueue:
        """The engine that offers go through."""
        assert self._queue is not None
        return self._queue

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[AsyncConnection[Any]]:
        """A connection of the pool, in a transaction."""
        assert self._pool is not None
        async with self._pool.connection() as connection, connection.transaction():
            yield connection

    async def _all(self, sql: str, values: Any = None) -> list[dict[str, Any]]:
        from psycopg.rows import dict_row

        assert self._pool is not None
        async with self._pool.connection() as connection:
            cursor = connection.cursor(row_factory=dict_row)
            await cursor.execute(sql.encode(), values)
            return await cursor.fetchall() if cursor.description else []

    async def _reach(self) -> None:
        """Connect once: a pool does not say why it could not."""
        from psycopg import AsyncConnection
        from psycopg.conninfo import make_conninfo

        await (await AsyncConnection.connect(make_conninfo(self.address, **CONNECTION))).close()

    async def _bring_up(self) -> None:
        """Bring the tables to this version; others that begin wait for it."""
        async with self.connection() as connection:
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            found = await connection.execute(TABLES)
            tables = {row[0] for row in await found.fetchall()}
            version = 0
            if "fleet_version" in tables:
                found = await connection.execute("SELECT number FROM fleet_version")
                version = (await found.fetchone() or (0,))[0]
            if version > len(MIGRATIONS):
                raise FleetError("the fleet's tables are of a newer Crow: update crow-acp")
            for script in MIGRATIONS[version:]:
                await connection.execute(script.encode())
            if version == 0:
                await connection.execute("CREATE TABLE fleet_version (number bigint)")
                await connection.execute("INSERT INTO fleet_version VALUES (0)")
            await connection.execute("UPDATE fleet_version SET number = %s", (len(MIGRATIONS),))
            if "procrastinate_jobs" not in tables:
                await connection.execute(ProcrastinateQueue.tables().encode())

    # what people do

    async def submit(
        self, batch: str, tasks: Sequence[Task], budget: float | None = None
    ) -> tuple[int, int]:
        """Add jobs to a batch: how many are new, and how many were there by their keys.

        ``budget`` is in dollars, for the whole batch; none leaves it as it is.
        """
        new = 0
        async with self.connection() as connection:
            await connection.execute(
                "INSERT INTO fleet_batches (name, budget) VALUES (%s, %s) ON CONFLICT (name)"
                " DO UPDATE SET budget = coalesce(excluded.budget, fleet_batches.budget)",
                (batch, budget),
            )
            for start in range(0, len(tasks), MANY):
                part = tasks[start : start + MANY]
                given = json.dumps([_row_of(task) for task in part])
                cursor = await connection.execute(SUBMIT, (batch, given))
                new += max(cursor.rowcount, 0)
        await self._offer_all()
        return new, len(tasks) - new

    async def _offer_all(self) -> None:
        """Put in the queue all that is not in it, and have tables that grew much counted anew."""
        many, counted = 0, MANY // 2
        while number := await self.offer_due():
            many += number
            if many >= 2 * counted:
                await self.queue.count()
                await self._all("ANALYZE fleet_jobs")
                counted = many

    async def cancel(self, where: Where) -> int:
        """Cancel jobs: what waits at once, what runs when its worker next renews."""
        done = await self._all(
            "UPDATE fleet_jobs SET cancel = true,"  # noqa: S608
            " state = CASE WHEN state = 'running' THEN state ELSE 'cancelled' END,"
            " ended = CASE WHEN state = 'running' THEN NULL ELSE clock_timestamp() END"
            f" WHERE state IN ('queued', 'running', 'waiting') AND {where.sql} RETURNING id",
            where.values,
        )
        return len(done)

    async def retry(self, where: Where) -> int:
        """Let jobs that failed, were stopped or cancelled go on where they ended."""
        done = await self._all(
            "UPDATE fleet_jobs SET state = 'queued', cancel = false, tries = 0, ended = NULL,"  # noqa: S608
            " outcome = NULL, offered = NULL"
            f" WHERE state IN ('failed', 'cancelled', 'stopped') AND {where.sql} RETURNING id",
            where.values,
        )
        await self._offer_all()
        return len(done)

    async def answer(self, job: str, answer: str) -> bool:
        """Answer what a job waits for, so that it goes on; False where it waits for nothing."""
        done = await self._all(
            "UPDATE fleet_jobs SET state = 'queued', offered = NULL, answers = answers"
            " || jsonb_build_array(question || jsonb_build_object('answer', %s::text)),"
            " question = NULL WHERE id = %s AND state = 'waiting' RETURNING id",
            (answer, job),
        )
        await self.offer_due()
        return bool(done)

    async def jobs(self, where: Where) -> list[dict[str, Any]]:
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

    async def patch(self, job: str) -> bytes | None:
        """What a session has changed in its working tree, as a patch of git's."""
        rows = await self._all("SELECT patch FROM fleet_jobs WHERE id = %s", (job,))
        return bytes(rows[0]["patch"]) if rows and rows[0]["patch"] is not None else None

    async def summary(self, where: Where) -> dict[str, Any]:
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
            "SELECT id, engine_row FROM fleet_jobs WHERE state = 'queued'"
            " AND offered < clock_timestamp() - %s * interval '1 second' LIMIT %s",
            (2 * self.lease, MANY),
        )
        if not stale:
            return 0
        waiting = await self.queue.is_waiting([row["engine_row"] or 0 for row in stale])
        lost = [row["id"] for row in stale if row["engine_row"] not in waiting]
        await self._all(
            "UPDATE fleet_jobs SET offered = NULL WHERE id = ANY(%s) AND state = 'queued'", (lost,)
        )
        return await self.offer_due() if lost else 0

    async def come_by(self, who: str, places: int, running: int) -> bool:
        """Say that a worker is there, and hear who refuses; True where it is asked to drain."""
        (row,) = await self._all(COME_BY, (who, places, running))
        now = time.monotonic()
        self._paces = {each: now + float(left) for each, left in table(row["paces"]).items()}
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

    async def pace(self, provider: str, seconds: float) -> None:
        """Ask all workers to send nothing to a provider for so long: this one now, others soon."""
        known = self._paces.get(provider, 0.0)
        self._paces[provider] = max(known, time.monotonic() + seconds)
        await self._all(
            "INSERT INTO fleet_pace VALUES (%(provider)s, clock_timestamp() + %(seconds)s"
            " * interval '1 second') ON CONFLICT (provider) DO UPDATE"
            " SET until = greatest(fleet_pace.until, excluded.until)",
            {"provider": provider, "seconds": seconds},
        )

    def wait_for(self, provider: str) -> float:
        """For how many seconds nothing is to be sent to a provider, as this worker last heard."""
        return max(self._paces.get(provider, 0.0) - time.monotonic(), 0.0)


@frozen
class Where:
    """Which jobs: those of a batch, with a label, of an id's first letters; all without any."""

    batch: str = ""
    label: str = ""
    job: str = ""
    state: str = ""

    @property
    def sql(self) -> str:
        """The condition; its values are `values`."""
        name, is_pair, _ = self.label.partition("=")
        labelled = "labels ->> %(name)s = %(text)s" if is_pair else "labels ? %(name)s"
        parts = (
            self.batch and "batch = %(batch)s",
            name and labelled,
            self.job and "starts_with(id, %(job)s)",
            self.state and "state = %(state)s",
        )
        return " AND ".join(filter(None, parts)) or "true"

    @property
    def values(self) -> dict[str, str]:
        """The values of `sql`."""
        name, _, text = self.label.partition("=")
        return {
            "batch": self.batch,
            "name": name,
            "text": text,
            "job": self.job,
            "state": self.state,
        }


def _row_of(task: Task) -> dict[str, Any]:
    """A task as a new row."""
    return {
        "id": uuid.uuid4().hex,
        "key": task.key,
        "priority": task.priority,
        "labels": dict(task.labels),
        "task": task.as_data(),
    }


def table(value: Any) -> dict[str, Any]:
    """A column of JSON that holds an object, or nothing."""
    return value or {}


async def retried(work: Callable[[], Awaitable[T]], *, patience: float) -> T:
    """Do something with the database, again where it is not reached, for so many seconds."""
    from psycopg import OperationalError
    from psycopg_pool import PoolTimeout

    until, pause = time.monotonic() + patience, 0.1
    while True:
        try:
            return await work()
        except (OperationalError, PoolTimeout):
            if time.monotonic() > until:
                raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, 2)
