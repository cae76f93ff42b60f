"""Schedules: batches that are submitted again and again, by any worker and each tick once.

A schedule and its ticks lie in the database and are measured by its clock. Whoever submits a tick's
batch holds the schedule's row and writes the tick down in the same transaction, so that it does not
matter how many workers look, or when one of them dies.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal
from zoneinfo import ZoneInfo, available_timezones

from crow.cli.parser import no_such
from crow.core.support.frozen import frozen
from crow.fleet.task import FleetError, Task, task_of

if TYPE_CHECKING:
    from psycopg import AsyncConnection

    from crow.fleet.board import Board

logger = logging.getLogger("crow.fleet")

LATE = timedelta(minutes=5)
"""How late a tick may be submitted; after that it was missed."""
NAMED: Mapping[str, str] = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
"""What crontab(5) has names for."""
DUE = """
SELECT *, clock_timestamp() AS now FROM fleet_schedules
WHERE NOT paused AND due <= clock_timestamp() ORDER BY due FOR UPDATE SKIP LOCKED LIMIT 20
"""
BUSY = """
SELECT 1 FROM fleet_ticks t JOIN fleet_jobs j USING (batch)
WHERE t.schedule = %s AND j.state IN ('queued', 'running', 'waiting') LIMIT 1
"""
LISTED = """
SELECT s.*, t.tick, t.outcome, t.batch FROM fleet_schedules s LEFT JOIN LATERAL (
    SELECT * FROM fleet_ticks WHERE schedule = s.name ORDER BY tick DESC LIMIT 1
) t ON true ORDER BY s.name
"""
KEEP = """
INSERT INTO fleet_schedules (name, cron, zone, tasks, budget, overlap, catch_up, due)
VALUES (%(name)s, %(cron)s, %(zone)s, %(tasks)s, %(budget)s, %(overlap)s, %(catch_up)s, %(due)s)
ON CONFLICT (name) DO UPDATE SET cron = excluded.cron, zone = excluded.zone,
    tasks = excluded.tasks, budget = excluded.budget, overlap = excluded.overlap,
    catch_up = excluded.catch_up, due = excluded.due
"""
TICKED = """
INSERT INTO fleet_ticks (schedule, tick, outcome, batch) VALUES (%s, %s, %s, %s)
ON CONFLICT (schedule, tick) DO UPDATE SET outcome = excluded.outcome, batch = excluded.batch
WHERE fleet_ticks.batch IS NULL
"""

Outcome = Literal["submitted", "skipped", "missed"]


@frozen
class Schedule:
    """A cron line in a time zone, and the tasks that each of its ticks submits.

    ``overlap``: a tick counts also while a batch of an earlier one still runs, or waits for a
    person. ``catch_up``: of the ticks that nobody was there for, the last is made up for.
    """

    name: str
    cron: str
    zone: str
    tasks: Sequence[Task]
    budget: float | None = None
    overlap: bool = False
    catch_up: bool = False


def zone_of(name: str) -> ZoneInfo:
    """A time zone of its name in the tz database. Raises `FleetError`."""
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError) as error:
        raise FleetError(no_such("time zone", name, sorted(available_timezones()))) from error


def next_tick(cron: str, zone: str, after: datetime) -> datetime | None:
    """When a cron line ticks next, in its zone; None where it never does. Raises `FleetError`.

    A change of the clocks is met as Debian's cron does: what would fall into the hour that is left
    out comes at once after it, and what names its hour does not come twice in the one that is
    repeated.
    """
    from cronsim import CronSim, CronSimError

    line = NAMED.get(cron.strip().lower(), cron.strip())
    if len(line.split()) != 5:
        raise FleetError(
            f"a cron line has five fields (minute hour day month weekday), or is one of"
            f" {', '.join(NAMED)}: not {cron!r}"
        )
    try:
        return next(CronSim(line, after.astimezone(zone_of(zone))), None)
    except CronSimError as error:
        raise FleetError(f"the cron line {cron!r} cannot be read: {error}") from error


def last_tick(cron: str, zone: str, due: datetime, now: datetime) -> datetime:
    """The last tick from the one that is ``due`` on that is not after ``now``."""
    tick, start = due, max(due, now - LATE)
    while (later := next_tick(cron, zone, start)) is not None and later <= now:
        tick = start = later
    if tick == due and start > due:
        tick = _before(cron, zone, due, start)
    return tick


def _before(cron: str, zone: str, due: datetime, until: datetime) -> datetime:
    """The last tick up to a time that may be years after the first: found by halves."""
    low, high = due, until
    while high - low > timedelta(hours=3):
        middle = low + (high - low) / 2
        found = next_tick(cron, zone, middle)
        low, high = (found, high) if found is not None and found <= until else (low, middle)
    while (later := next_tick(cron, zone, low)) is not None and later <= until:
        low = later
    return low


class Schedules:
    """The schedules of a fleet."""

    def __init__(self, board: Board) -> None:
        self._board = board

    async def add(self, schedule: Schedule) -> datetime:
        """Keep a schedule, in the place of one of its name; when it ticks next.

        Raises `FleetError` for a line that is none.
        """
        from psycopg.types.json import Jsonb

        async with self._board.connection() as connection:
            found = await connection.execute("SELECT clock_timestamp()")
            (now,) = await found.fetchone() or (None,)
            assert now is not None
            due = next_tick(schedule.cron, schedule.zone, now)
            if due is None:
                raise FleetError(f"the cron line {schedule.cron!r} never comes to pass")
            tasks = Jsonb([task.as_data() for task in schedule.tasks])
            values = {name: getattr(schedule, name) for name in Schedule.__dataclass_fields__}
            await connection.execute(KEEP.encode(), {**values, "tasks": tasks, "due": due})
        return due

    async def listed(self) -> list[dict[str, Any]]:
        """All of them by their names, each with its last tick."""
        return await self._board.database.rows(LISTED)

    async def ticks(self, name: str) -> list[dict[str, Any]]:
        """The last ticks of a schedule, newest first. Raises `FleetError` where there is none."""
        await self._known(name)
        return await self._board.database.rows(
            "SELECT t.*, s.zone FROM fleet_ticks t JOIN fleet_schedules s ON s.name = t.schedule"
            " WHERE s.name = %s ORDER BY tick DESC LIMIT 50",
            (name,),
        )

    async def remove(self, name: str) -> None:
        """Forget a schedule; its batches stay. Raises `FleetError` where there is none."""
        await self._known(name)
        await self._board.database.rows("DELETE FROM fleet_schedules WHERE name = %s", (name,))

    async def pause(self, name: str, *, paused: bool) -> None:
        """Let a schedule stand still, or go on with its next tick: none in between counts.

        Raises `FleetError` where there is none.
        """
        async with self._board.connection() as connection:
            row = await self._locked(connection, name)
            await connection.execute(
                "UPDATE fleet_schedules SET paused = %s, due = %s WHERE name = %s",
                (paused, next_tick(row["cron"], row["zone"], row["now"]), name),
            )

    async def run_now(self, name: str) -> str:
        """Submit a schedule's tasks now, beside its ticks; the batch.

        Raises `FleetError` where there is none.
        """
        async with self._board.connection() as connection:
            row = await self._locked(connection, name)
            batch = await self._submit(connection, row, row["now"].replace(microsecond=0))
        await self._board.offer_all()
        return batch

    async def tick(self) -> int:
        """Submit what is due; how many batches that were. Any number of workers may do so."""
        batches = 0
        async with self._board.connection() as connection:
            for row in await _rows(connection, DUE):
                try:
                    batches += await self._tick(connection, row) == "submitted"
                except FleetError as error:
                    logger.error("the schedule %s is paused: %s", row["name"], error)
                    await connection.execute(
                        "UPDATE fleet_schedules SET paused = true WHERE name = %s", (row["name"],)
                    )
        await self._board.offer_all()
        return batches

    async def _tick(self, connection: AsyncConnection[Any], row: dict[str, Any]) -> Outcome:
        tick = last_tick(row["cron"], row["zone"], row["due"], row["now"])
        outcome: Outcome = "submitted"
        if row["now"] - tick > LATE and not row["catch_up"]:
            outcome = "missed"
        elif not row["overlap"] and await _rows(connection, BUSY, (row["name"],)):
            outcome = "skipped"
        if outcome == "submitted":
            await self._submit(connection, row, tick)
        else:
            await connection.execute(TICKED.encode(), (row["name"], tick, outcome, None))
        await connection.execute(
            "UPDATE fleet_schedules SET due = %s WHERE name = %s",
            (next_tick(row["cron"], row["zone"], row["now"]), row["name"]),
        )
        return outcome

    async def _submit(
        self, connection: AsyncConnection[Any], row: dict[str, Any], tick: datetime
    ) -> str:
        """Add the batch of a tick. Its name and keys are the tick's: it cannot be there twice."""
        batch = f"{row['name']}@{tick.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        tasks = [task_of(each) for each in row["tasks"]]
        tasks = [replace(task, key=f"{batch}/{task.key}") for task in tasks]
        await self._board.add(connection, batch, tasks, row["budget"])
        await connection.execute(TICKED.encode(), (row["name"], tick, "submitted", batch))
        return batch

    async def _locked(self, connection: AsyncConnection[Any], name: str) -> dict[str, Any]:
        found = await _rows(
            connection,
            "SELECT *, clock_timestamp() AS now FROM fleet_schedules WHERE name = %s FOR UPDATE",
            (name,),
        )
        if not found:
            await self._known(name)
        return found[0]

    async def _known(self, name: str) -> None:
        there = [row["name"] for row in await self.listed()]
        if name not in there:
            raise FleetError(no_such("schedule", name, there))


async def _rows(
    connection: AsyncConnection[Any], sql: str, values: Any = None
) -> list[dict[str, Any]]:
    from psycopg.rows import dict_row

    cursor = connection.cursor(row_factory=dict_row)
    await cursor.execute(sql.encode(), values)
    return await cursor.fetchall()
