"""Each tick of a schedule is submitted once, by whoever looks, and at the hour that people mean."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from croniter import croniter
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fleet.conftest import Machine
from tests.fleet.test_cli import crow

from crow.fleet.board import Board
from crow.fleet.job_filter import JobFilter
from crow.fleet.schedules import LATE, Schedule, Schedules, last_tick, next_tick
from crow.fleet.task import FleetError, Task

BERLIN = "Europe/Berlin"
TASKS = (Task("sweep", key="sweep"),)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


@pytest.mark.variants(1)
@pytest.mark.parametrize(
    ("line", "zone", "after", "ticks"),
    [
        # the night of 2026-03-29 has no 02:30 in Berlin: it comes at once after the change
        ("30 2 * * *", BERLIN, "2026-03-28T03:00+01:00", ["03-29T01:00", "03-30T00:30"]),
        ("0 2 * * *", BERLIN, "2026-03-28T03:00+01:00", ["03-29T01:00", "03-30T00:00"]),
        ("0 3 * * *", BERLIN, "2026-03-28T04:00+01:00", ["03-29T01:00", "03-30T01:00"]),
        ("*/30 1-3 * * *", BERLIN, "2026-03-29T01:00+01:00", ["03-29T00:30", "03-29T01:00"]),
        # the night of 2026-10-25 has two: a fixed hour comes once, each hour comes twice
        ("30 2 * * *", BERLIN, "2026-10-24T03:00+02:00", ["10-25T00:30", "10-26T01:30"]),
        ("0 * * * *", BERLIN, "2026-10-25T02:00+02:00", ["10-25T01:00", "10-25T02:00"]),
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T03:00+10:30", ["10-03T15:30"]),
        ("30 2 * * *", "America/New_York", "2026-03-07T03:00-05:00", ["03-08T07:00"]),
        ("@daily", "Asia/Tokyo", "2026-01-01T00:00+09:00", ["01-01T15:00", "01-02T15:00"]),
    ],
)
def test_a_tick_comes_when_people_mean(line: str, zone: str, after: str, ticks: list[str]) -> None:
    now, found = utc(after), list[str]()
    while len(found) < len(ticks):
        tick = next_tick(line, zone, now)
        assert tick is not None
        now = tick
        found.append(f"{tick.astimezone(UTC):%m-%dT%H:%M}")
    assert found == ticks


LINES = st.builds(
    lambda minute, hour, day, weekday: f"{minute} {hour} {day} * {weekday}",
    st.sampled_from(["0", "*", "*/7", "3,50", "10-20"]),
    st.sampled_from(["*", "2", "*/5", "1-3", "0,23"]),
    st.sampled_from(["*", "*", "1", "13"]),
    st.sampled_from(["*", "*", "1", "1-5"]),
)
TIMES = st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@settings(max_examples=60, deadline=None)
@given(LINES, TIMES)
def test_where_no_clock_is_changed_ticks_are_those_of_another_library(
    line: str, time: datetime
) -> None:
    assert next_tick(line, "UTC", time) == croniter(line, time).get_next(datetime)


@settings(max_examples=60, deadline=None)
@given(LINES, TIMES, st.timedeltas(timedelta(0), timedelta(days=400)))
def test_the_last_of_many_ticks_is_found(line: str, time: datetime, away: timedelta) -> None:
    due = next_tick(line, BERLIN, time)
    assert due is not None
    now = due + away
    tick = last_tick(line, BERLIN, due, now)
    after = next_tick(line, BERLIN, tick)
    assert due <= tick <= now
    assert after is not None
    assert after > now


@pytest.mark.parametrize(
    ("line", "zone", "said"),
    [
        ("* * *", "UTC", "a cron line has five fields"),
        ("0 0 * * * *", "UTC", "a cron line has five fields"),
        ("61 * * * *", "UTC", "cannot be read: Bad minute"),
        ("0 2 * * *", "Europe/Berlim", "there is no time zone 'Europe/Berlim'; did you mean"),
        ("0 2 * * *", "../x", "there is no time zone"),
    ],
)
def test_what_is_no_schedule_is_said(line: str, zone: str, said: str) -> None:
    with pytest.raises(FleetError, match=said):
        next_tick(line, zone, utc("2026-01-01T00:00+00:00"))


async def at(board: Board, name: str, ago: timedelta) -> None:
    """Let a schedule have been due some time ago: the clock is the database's."""
    async with board.connection() as connection:
        await connection.execute(
            "UPDATE fleet_schedules SET due = date_trunc('minute', clock_timestamp()) - %s"
            " WHERE name = %s",
            (ago, name),
        )


async def outcomes(schedules: Schedules, name: str) -> list[str]:
    return [row["outcome"] for row in reversed(await schedules.ticks(name))]


@pytest.mark.slow
async def test_any_number_of_workers_submit_each_tick_once(address: str) -> None:
    boards = [Board(address) for _ in range(4)]
    for board in boards:
        await board.__aenter__()
    every = [Schedules(board) for board in boards]
    await every[0].add(Schedule("nightly", "0 0 1 1 *", "UTC", TASKS, overlap=True))
    for round_ in range(5):
        await at(boards[0], "nightly", timedelta(0))
        async with boards[0].connection() as connection:
            await connection.execute("DELETE FROM fleet_ticks")  # even where none is written down
        ticked = await asyncio.gather(*(each.tick() for each in every * 3))
        assert sum(ticked) == 1, round_
    jobs = await boards[0].jobs(JobFilter())
    assert len(jobs) == len({row["batch"] for row in jobs})
    assert len(jobs) <= 2  # the minute may have changed once
    for board in boards:
        await board.__aexit__()


@pytest.mark.slow
@pytest.mark.parametrize(("catch_up", "outcome"), [(False, "missed"), (True, "submitted")])
async def test_of_what_was_missed_the_last_is_made_up_for_where_that_is_wanted(
    address: str, catch_up: bool, outcome: str
) -> None:
    async with Board(address) as board:
        schedules = Schedules(board)
        await schedules.add(Schedule("s", "0 2 * * *", "UTC", TASKS, catch_up=catch_up))
        async with board.connection() as connection:
            await connection.execute(
                "UPDATE fleet_schedules SET due = date_trunc('day', now()) - interval '9 days 22 h'"
            )
        assert await schedules.tick() == (1 if catch_up else 0)
        assert await schedules.tick() == 0
        (tick,) = await schedules.ticks("s")
        assert tick["outcome"] == outcome
        (row,) = await schedules.listed()
        assert row["due"] - tick["tick"] == timedelta(days=1)


@pytest.mark.slow
async def test_a_tick_is_skipped_while_the_last_batch_runs(address: str, tmp_path: Path) -> None:
    async with Board(address) as board:
        schedules = Schedules(board)
        await schedules.add(Schedule("s", "* * * * *", "UTC", TASKS))
        for ago in (4, 3, 2):
            await at(board, "s", timedelta(minutes=ago))
            async with board.connection() as connection:  # as if no later tick were due yet
                await connection.execute("UPDATE fleet_schedules SET cron = '0 0 1 1 *'")
            await schedules.tick()
            if ago == 3:
                assert await Machine(board, tmp_path, lambda _: ["done"]).run() == ["done"]
        assert await outcomes(schedules, "s") == ["submitted", "skipped", "submitted"]
        batch = await schedules.run_now("s")
        assert batch in {row["batch"] for row in await board.jobs(JobFilter(state="queued"))}


@pytest.mark.slow
async def test_a_worker_submits_what_is_due_and_runs_it(address: str, tmp_path: Path) -> None:
    async with Board(address) as board:
        schedules = Schedules(board)
        await schedules.add(Schedule("s", "* * * * *", "UTC", TASKS, budget=3.0))
        await schedules.add(Schedule("still", "* * * * *", "UTC", TASKS))
        await schedules.pause("still", paused=True)
        await at(board, "s", timedelta(0))
        await at(board, "still", LATE * 2)
        machine = Machine(board, tmp_path, lambda _: ["done"], until_empty=False)
        work = asyncio.create_task(machine.run())
        async with asyncio.timeout(50):
            while not machine.left:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        machine.worker.drain()
        assert set(await work) == {"done"}
        assert await outcomes(schedules, "still") == []
        await schedules.pause("still", paused=False)
        assert await schedules.tick() == 0  # what came by while it stood still does not count


@pytest.mark.slow
def test_people_keep_schedules_with_the_command(address: str, tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    file.write_text('{"prompt": "Sweep."}\n')

    def said(*args: str) -> str:
        done = crow(address, "schedule", *args)
        return done.stdout or done.stderr

    assert said().startswith("no schedules; crow fleet schedule add NAME")
    added = said("add", "nightly", "30 2 * * 1-5", str(file), "--zone", BERLIN, "--budget", "5")
    assert added.startswith("nightly: At 02:30 on Monday through Friday, next at 20")
    assert "1 task, next at" in said("list")
    assert said("pause", "nightly") == "nightly stands still\n"
    assert ", paused" in said()
    assert said("resume", "nightly") == "nightly goes on\n"
    batch = said("run-now", "nightly").split()[0]
    assert f"submitted  {batch}" in said("list", "nightly")
    (row,) = [json.loads(line) for line in said("list", "--json").splitlines()]
    shown: dict[str, Any] = {name: row[name] for name in ("name", "zone", "budget", "overlap")}
    assert shown == {"name": "nightly", "zone": BERLIN, "budget": 5.0, "overlap": False}
    assert crow(address, "list", "--batch", batch).stdout.count("Sweep.") == 1
    assert "did you mean 'nightly'?" in said("pause", "nightl")
    assert "it is: crow fleet schedule add NAME" in said("add", "x")
    assert "did you mean 'remove'?" in said("remov", "x")
    assert said("remove", "nightly") == "nightly is removed; its batches stay\n"
