"""A provider that refuses one session for now is left alone by all workers with its key."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.fleet.conftest import Machine
from tests.fleet.processes import until, working

from crow.core.errors import ModelError
from crow.fleet.board import Board
from crow.fleet.job_filter import JobFilter
from crow.fleet.rate_limits import rate_limit_of
from crow.fleet.task import Task
from crow.testing import ScriptedModel, text
from crow.testing.endpoint import USAGE, Endpoint, Received, Response, delta, respond, stream

pytestmark = pytest.mark.slow
REFUSES = 30
"""Seconds for which the endpoint refuses, from its first request on."""


class Limited(Endpoint):
    """An endpoint that refuses the key ``k`` for a while, and says for how long."""

    def __init__(self) -> None:
        super().__init__()
        self.at: list[tuple[float, str]] = []

    def _steps(self, received: Received) -> Response:
        if received.path.endswith("/models"):
            return super()._steps(received)
        key = received.headers["authorization"].removeprefix("Bearer ")
        passed = received.at - self.at[0][0] if self.at else 0.0
        self.at.append((received.at, key))
        if key == "k" and passed < REFUSES:
            left = int(REFUSES - passed) + 1
            return respond(429, {"error": {"message": "too many requests"}}, retry_after=left)
        return [*stream("done", delta("stop"), USAGE)]


async def test_workers_wait_for_a_key_that_is_refused_and_for_no_other(
    address: str, tmp_path: Path
) -> None:
    def running(board: Board, number: int) -> Callable[[], Any]:
        async def is_so() -> bool:
            return len(await board.jobs(JobFilter(state="running"))) == number

        return is_so

    one = ("--concurrency", "1")
    async with Limited() as endpoint, Board(address) as board:
        host = endpoint.url.split("/")[2]
        await board.submit("b", [Task("a", key="a")])
        async with working(address, endpoint.url, tmp_path / "a", *one):
            await until(lambda: board.database.rows("SELECT 1 FROM fleet_pace"))
            (paced,) = await board.database.rows("SELECT provider, key FROM fleet_pace")
            assert paced["provider"] == host
            assert "k" not in paced["key"]
            await board.submit("b", [Task(name, key=name) for name in "bcd"])
            async with working(address, endpoint.url, tmp_path / "b", "--concurrency", "3"):
                await until(running(board, 4))
                await board.submit("b", [Task("e", key="e")])
                async with working(
                    address, endpoint.url, tmp_path / "c", *one, CROW_API_KEY="other"
                ):
                    await until(lambda: board.jobs(JobFilter(state="done")))
                    first, second = endpoint.at
                    assert (first[1], second[1]) == ("k", "other")
                    assert second[0] - first[0] < REFUSES
                    await until(running(board, 0))
        states = [row["state"] for row in await board.jobs(JobFilter())]
        assert states == ["done"] * 5
        later = [at - first[0] for at, key in endpoint.at if key == "k"][1:]
        assert len(later) == 4
        assert min(later) >= REFUSES


async def test_a_session_that_was_refused_to_the_last_is_queued_again(
    address: str, tmp_path: Path
) -> None:
    refused = ModelError("too many requests", kind="rate_limit", status=429, retry_after=3600)
    script: list[Any] = [refused]
    async with Board(address) as board:
        await board.submit("b", [Task("a", key="a")])
        machine = Machine(board, tmp_path, lambda _: [script.pop()] if script else ["done"])
        work = asyncio.create_task(machine.run())
        await until(lambda: board.jobs(JobFilter(state="running")))
        await until(lambda: _all(machine.left))
        assert machine.left == ["queued"]
        assert 3500 < board.pace.left(rate_limit_of(ScriptedModel(), None)) <= 3600
        async with board.connection() as connection:
            await connection.execute("UPDATE fleet_pace SET until = clock_timestamp()")
        assert await work == ["queued", "done"]


async def _all(left: list[str]) -> list[str]:
    return left


async def test_nothing_begins_once_the_money_is_spent(address: str, tmp_path: Path) -> None:
    usage: Any = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, "cost": 0.5}
    async with Board(address) as one, Board(address) as two:
        await one.submit("b", [Task(str(n), key=str(n)) for n in range(20)], budget=1.0)
        await one.submit("free", [Task("free", key="free")])
        machines = [
            Machine(board, tmp_path / str(n), lambda _: [text("x", usage=usage)], concurrency=2)
            for n, board in enumerate((one, two))
        ]
        await asyncio.gather(*(machine.run() for machine in machines))
        rows = await one.jobs(JobFilter(batch="b"))
        begun = [row for row in rows if row["tries"]]
        assert 2 <= len(begun) <= 2 + 4  # what ran on four places when it was spent
        assert {row["state"] for row in rows if not row["tries"]} == {"stopped"}
        assert [row["state"] for row in await one.jobs(JobFilter(batch="free"))] == ["done"]
