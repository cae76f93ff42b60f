"""Jobs are begun once, go on anywhere, and are ended by who has them and by nobody else."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.fleet.conftest import Machine, git

from crow.extensions import PersistenceHook
from crow.fleet.board import Board, Left
from crow.fleet.job_filter import JobFilter
from crow.fleet.task import Task, Workspace
from crow.testing import call, text

pytestmark = pytest.mark.slow


def tasks(*prompts: str, **fields: Any) -> list[Task]:
    return [Task(prompt, key=prompt, **fields) for prompt in prompts]


async def states(board: Board) -> list[tuple[str, str]]:
    return [(row["task"]["prompt"], row["state"]) for row in await board.jobs(JobFilter())]


async def test_what_is_submitted_twice_runs_once(address: str, tmp_path: Path) -> None:
    async with Board(address) as board:
        assert await board.submit("b", tasks("a", "b")) == (2, 0)
        assert await board.submit("b", tasks("b", "c")) == (1, 1)
        machine = Machine(board, tmp_path, lambda task: [f"did {task.prompt}"])
        assert await machine.run() == ["done"] * 3
        rows = await board.jobs(JobFilter(batch="b"))
        assert [row["outcome"]["text"] for row in rows] == ["did a", "did b", "did c"]
        assert len((await PersistenceHook(address).store.sessions())[0]) == 3


async def test_the_highest_priority_is_begun_first(address: str, tmp_path: Path) -> None:
    async with Board(address) as board:
        await board.submit("b", tasks("low") + tasks("high", priority=5))
        machine = Machine(board, tmp_path, lambda _: ["done"], concurrency=1)
        await machine.run()
        low, high = await board.jobs(JobFilter())
        assert high["task"]["prompt"] == "high"
        assert high["started"] < low["started"]


async def test_what_was_begun_goes_on_before_what_was_not(address: str) -> None:
    async with Board(address) as board:
        await board.submit("b", tasks("first", "second") + tasks("urgent", priority=1))
        (urgent,) = await board.queue.lease(1)
        begun = [await board.claim(offer, "w") for offer in (urgent, *await board.queue.lease(1))]
        assert [each.task.prompt for each in begun if each is not None] == ["urgent", "first"]
        await board.submit("b", tasks("third") + tasks("new", priority=1))
        for each in begun:
            assert each is not None
            assert await board.leave(each, Left("queued"))
        found = [await board.claim(offer, "w") for offer in await board.queue.lease(9)]
        names = [each.task.prompt for each in found if each is not None]
        assert names == ["urgent", "new", "first", "second", "third"]


async def test_a_question_waits_in_the_inbox_and_its_answer_goes_on_elsewhere(
    address: str, tmp_path: Path, repository: Path
) -> None:
    place = Workspace(git=str(repository), push=True)
    async with Board(address) as board:
        await board.submit("b", tasks("edit", workspace=place))
        act = call("Bash", command="echo three > c.txt")
        script = [call("Write", file_path="b.txt", content="two\n"), act]
        first = Machine(board, tmp_path / "one", lambda _: script)
        first.asks = True
        assert await first.run() == ["waiting"]
        (row,) = await board.jobs(JobFilter(state="waiting"))
        assert row["question"]["args"] == {"command": "echo three > c.txt"}
        assert row["question"]["text"].endswith("may it?")
        assert await board.answer(row["id"], "allow_once")
        assert not await board.answer(row["id"], "allow_once")

        second = Machine(board, tmp_path / "two", lambda _: [act, "Done."])
        second.asks = True
        assert await second.run() == ["done"]
        (row,) = await board.jobs(JobFilter())
        assert (row["turns"], row["tries"]) == (3, 1)
        assert len(await board.moves(row["id"])) == 2
        branch = row["outcome"]["branch"]
        assert git(repository, "ls-tree", "--name-only", branch).split() == [
            "a.txt",
            "b.txt",
            "c.txt",
        ]
        patch = await board.patch(row["id"])
        assert b"+three" in (patch or b"")
    session = await PersistenceHook(address).store.load(row["id"])
    said = [str(message.get("content")) for message in session.messages]
    assert any("the answer was: allow_once" in each for each in said)


async def test_a_zombie_ends_nothing(address: str, tmp_path: Path) -> None:
    async with Board(address, lease=0.5) as board:
        await board.submit("b", tasks("a"))
        (offer,) = await board.queue.lease(1)
        zombie = await board.claim(offer, "zombie")
        assert zombie is not None
        assert await board.claim(offer, "twice") is None
        async with asyncio.timeout(50):
            while not await board.rescue():  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        machine = Machine(board, tmp_path, lambda _: ["done"])
        assert await machine.run() == ["done"]
        assert not await board.leave(zombie, Left("failed", {"detail": "late"}))
        await board.queue.finish(offer, "failed")
        assert not await board.report(zombie, turns=9, cost=1.0, patch=None)
        assert await states(board) == [("a", "done")]


async def test_an_offer_that_was_leased_and_never_begun_is_made_again(
    address: str, tmp_path: Path
) -> None:
    async with Board(address, lease=0.2) as board:
        await board.submit("b", tasks("a"))
        assert len(await board.queue.lease(1)) == 1  # and its worker dies here
        async with asyncio.timeout(50):
            while not await board.offer_again():  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert await Machine(board, tmp_path, lambda _: ["done"]).run() == ["done"]
        assert await board.offer_again() == 0


async def test_a_drain_hands_back_what_runs_and_another_goes_on(
    address: str, tmp_path: Path
) -> None:
    async with Board(address) as board:
        await board.submit("b", tasks("a"))
        wait = call("Bash", command="touch ../begun; sleep 60")
        old = Machine(board, tmp_path / "old", lambda _: [wait], grace=0)
        work = asyncio.create_task(old.run())
        async with asyncio.timeout(50):
            while not list(tmp_path.rglob("begun")):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        old.worker.drain()
        assert await work == ["queued"]
        assert await Machine(board, tmp_path / "new", lambda _: ["done"]).run() == ["done"]
        (row,) = await board.jobs(JobFilter())
        assert (row["tries"], row["outcome"]["text"]) == (1, "done")


async def test_a_job_that_runs_is_cancelled_and_can_be_taken_up_again(
    address: str, tmp_path: Path
) -> None:
    async with Board(address, lease=1.5) as board:
        await board.submit("b", tasks("a", "b", labels={"kind": "x"}))
        script = [call("Bash", command="touch ../begun; sleep 60"), "never"]
        machine = Machine(board, tmp_path, lambda _: script, concurrency=1)
        work = asyncio.create_task(machine.run())
        async with asyncio.timeout(50):
            while not list(tmp_path.rglob("begun")):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert await board.cancel(JobFilter(label="kind=y")) == 0
        assert await board.cancel(JobFilter(label="kind=x")) == 2
        assert await work == ["cancelled"]
        assert await states(board) == [("a", "cancelled"), ("b", "cancelled")]
        assert await board.retry(JobFilter(label="kind")) == 2
        assert await Machine(board, tmp_path, lambda _: ["done"]).run() == ["done"] * 2


async def test_a_batch_that_has_spent_its_money_stops(address: str, tmp_path: Path) -> None:
    usage: Any = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, "cost": 0.6}
    one = [[text("x", usage=usage), call("Bash", command="true")], text("done", usage=usage)]
    async with Board(address) as board:
        await board.submit("b", tasks("a", "b", "c"), budget=1.0)
        machine = Machine(board, tmp_path, lambda _: one, concurrency=1)
        assert await machine.run() == ["done"]
        rows = await board.jobs(JobFilter())
        assert [row["state"] for row in rows] == ["done", "stopped", "stopped"]
        assert rows[1]["outcome"] == {"detail": "the budget of the batch is spent"}
        await board.submit("b", [], budget=10.0)
        assert await board.retry(JobFilter(batch="b")) == 2
        assert await Machine(board, tmp_path, lambda _: one).run() == ["done"] * 2
        assert round((await board.summary(JobFilter()))["cost"], 2) == 3.6


async def test_a_session_stops_at_its_own_limits(address: str, tmp_path: Path) -> None:
    again = [call("Bash", command="true")] * 5
    async with Board(address) as board:
        await board.submit("b", tasks("a", max_turns=2))
        assert await Machine(board, tmp_path, lambda _: again).run() == ["stopped"]
        (row,) = await board.jobs(JobFilter())
        assert (row["turns"], row["outcome"]["detail"]) == (2, "it has had 2 turns: its limit")


async def test_a_workspace_that_cannot_be_had_fails_its_job_alone(
    address: str, tmp_path: Path
) -> None:
    none = Workspace(git=str(tmp_path / "nowhere"))
    async with Board(address) as board:
        await board.submit("b", tasks("a", workspace=none) + tasks("b"))
        assert sorted(await Machine(board, tmp_path, lambda _: ["done"]).run()) == [
            "done",
            "failed",
        ]
        (row,) = await board.jobs(JobFilter(state="failed"))
        assert "git clone" in row["outcome"]["detail"]


async def test_a_machine_without_a_lease_lets_its_jobs_go(address: str, tmp_path: Path) -> None:
    async with Board(address, lease=1.2) as board:
        await board.submit("b", tasks("a"))
        script = [call("Bash", command="touch ../begun; sleep 60"), "never"]
        old = Machine(board, tmp_path / "old", lambda _: script)
        work = asyncio.create_task(old.run())
        async with asyncio.timeout(50):
            while not list(tmp_path.rglob("begun")):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            async with board.connection() as connection:  # as another that thought it dead
                await connection.execute("UPDATE fleet_jobs SET epoch = epoch + 1, who = 'heir'")
            while not old.left:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert old.left == ["lost"]
        old.worker.drain()
        await work
        assert await states(board) == [("a", "running")]


async def test_many_workers_begin_at_once_and_each_job_once(address: str, tmp_path: Path) -> None:
    async with Board(address) as one, Board(address) as two:
        await one.submit("b", tasks(*map(str, range(30))))
        machines = [
            Machine(b, tmp_path / str(n), lambda _: ["done"]) for n, b in enumerate((one, two))
        ]
        left = await asyncio.gather(*(machine.run() for machine in machines))
        assert sum(map(len, left)) == 30
        assert {row["tries"] for row in await one.jobs(JobFilter())} == {1}
