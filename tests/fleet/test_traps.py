"""What other queues lose sessions by: each of it happens here, and nothing is lost or done twice."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import pytest
from tests.fleet.conftest import Machine
from tests.fleet.processes import until, working
from tests.postgres import Server

from crow.core.hooks.contexts import ToolContext
from crow.extensions import PersistenceHook
from crow.fleet.board import Board, Claimed
from crow.fleet.job_filter import JobFilter
from crow.fleet.leases import Leases
from crow.fleet.task import FleetError, Task, Workspace
from crow.testing import call
from crow.testing.endpoint import USAGE, Endpoint, Received, Response, delta, stream

pytestmark = pytest.mark.slow
FAKETIME = next(iter(Path("/usr/lib").glob("*/faketime/libfaketime.so.1")), None)

OPEN = ("interrupted", "not executed", "cancelled")
"""What a call's result says whose outcome nobody knows."""


def tasks(*prompts: str, **fields: Any) -> list[Task]:
    return [Task(prompt, key=prompt, allow=("Bash",), **fields) for prompt in prompts]


async def claimed(board: Board, who: str = "w") -> Claimed:
    (offer,) = await board.queue.lease(1)
    mine = await board.claim(offer, who)
    assert mine is not None
    return mine


async def row_of(board: Board) -> dict[str, Any]:
    (row,) = await board.jobs(JobFilter())
    return row


def there(folder: Path, name: str) -> Callable[[], Awaitable[list[Path]]]:
    async def look() -> list[Path]:
        return list(folder.rglob(name))

    return look


class Stepping(Endpoint):
    """A model that has a session do ``steps`` commands, each a line of a file, whoever runs it."""

    def __init__(self, steps: int, pause: float) -> None:
        super().__init__()
        self.steps = steps
        self.pause = pause

    def _steps(self, received: Received) -> Response:
        if received.path.endswith("/models"):
            return super()._steps(received)
        done = sum(message["role"] == "tool" for message in received.body["messages"])
        if done >= self.steps:
            return [*stream("done", delta("stop"), USAGE)]
        command = f"sleep {self.pause}; echo {done} >> steps"
        function = {"name": "Bash", "arguments": json.dumps({"command": command})}
        asked = {"index": 0, "id": f"call_{done}", "function": function}
        return [*stream(delta(tool_calls=[asked]), delta("tool_calls"), USAGE)]


async def each_step_once(board: Board, address: str, folder: Path, steps: int) -> None:
    """Every step ran once, or is told in the conversation as one whose outcome nobody knows."""
    row = await row_of(board)
    assert (row["state"], row["outcome"]["text"]) == ("done", "done")
    messages = [
        m for part in await PersistenceHook(address).store.segments(row["id"]) for m in part
    ]
    told = {m.get("tool_call_id"): str(m["content"]) for m in messages if m["role"] == "tool"}
    assert list(told) == [f"call_{n}" for n in range(steps)]
    done = (folder / "steps").read_text().split()
    assert len(done) == len(set(done))
    for n in range(steps):
        is_open = any(word in told[f"call_{n}"] for word in OPEN)
        assert str(n) in done or is_open


# a drain


async def test_a_drain_that_takes_longer_than_a_lease_keeps_it(
    address: str, tmp_path: Path
) -> None:
    async with Board(address, lease=1.5) as board, Board(address, lease=1.5) as other:
        await board.submit("b", tasks("a"))
        script = [call("Bash", command="touch ../begun; sleep 5"), "done"]
        old = Machine(board, tmp_path / "old", lambda _: script, grace=30)
        work = asyncio.create_task(old.run())
        await until(there(tmp_path, "begun"))
        old.worker.drain()
        new = Machine(other, tmp_path / "new", lambda _: ["stolen"])
        assert await new.run() == []  # it looked until nothing was left, and took nothing
        assert await work == ["done"]
        row = await row_of(board)
        assert (row["epoch"], row["outcome"]["text"]) == (1, "done")


# a loop that blocks


async def test_a_loop_that_blocks_for_longer_than_a_lease_keeps_its_job(
    address: str, tmp_path: Path
) -> None:
    blocked = threading.Event()

    def block(ctx: ToolContext) -> None:
        blocked.set()
        time.sleep(4)

    async with Board(address, lease=1.2) as board:
        await board.submit("b", tasks("a"))
        machine = Machine(board, tmp_path, lambda _: [call("Bash", command="true"), "done"])
        machine.hooks.append(block_before_tool(block))
        rescued: list[int] = []

        def other_machine() -> None:
            async def look() -> None:
                async with Board(address, lease=1.2) as other:
                    while (await row_of(other))["state"] != "done":
                        rescued.append(await other.rescue())
                        await asyncio.sleep(0.1)

            blocked.wait(60)
            asyncio.run(look())

        looking = asyncio.create_task(asyncio.to_thread(other_machine))
        assert await machine.run() == ["done"]
        await looking
        assert len(rescued) > 10
        assert sum(rescued) == 0
        assert (await row_of(board))["epoch"] == 1


def block_before_tool(block: Callable[[ToolContext], None]) -> Callable[[ToolContext], None]:
    def before_tool(ctx: ToolContext) -> None:
        block(ctx)

    return before_tool


async def test_a_loop_that_blocks_for_ever_loses_its_jobs(address: str) -> None:
    async with Board(address, lease=0.6) as board:
        await board.submit("b", tasks("a"))
        mine = await claimed(board)
        leases = Leases(address, 0.6, stuck=2.0)
        leases.hold((mine.job, mine.epoch), lambda _: None)
        leases.start()
        try:
            async with asyncio.timeout(1.5):
                while True:
                    leases.alive()
                    assert await board.rescue() == 0
                    await asyncio.sleep(0.1)
        except TimeoutError:
            pass
        await until(board.rescue)  # nothing says any more that the loop lives
        leases.close()
        assert (await row_of(board))["state"] == "queued"


# rows and names of workers


async def test_jobs_of_a_worker_whose_rows_are_pruned_first_are_taken_back(
    address: str, tmp_path: Path
) -> None:
    async with Board(address, lease=0.5) as board:
        await board.submit("b", tasks("a"))
        await board.come_by("dead", 1, 1)
        await claimed(board, "dead")
        async with board.connection() as connection:
            await connection.execute("DELETE FROM fleet_workers")
            await connection.execute("DELETE FROM procrastinate_workers")
        await until(board.rescue)
        assert await Machine(board, tmp_path, lambda _: ["done"]).run() == ["done"]


async def test_a_living_worker_whose_row_is_pruned_goes_on_leasing(address: str) -> None:
    async with Board(address) as board:
        await board.submit("b", tasks("a", "b"))
        assert len(await board.queue.lease(1)) == 1
        async with board.connection() as connection:
            await connection.execute("DELETE FROM procrastinate_workers")
        assert len(await board.queue.lease(1)) == 1


async def test_a_worker_of_the_same_name_keeps_nothing_of_its_dead_namesake(address: str) -> None:
    async with Board(address, lease=0.9) as board:
        await board.submit("b", tasks("old", "new"))
        await claimed(board, "pod-0")
        new = await claimed(board, "pod-0")
        leases = Leases(address, board.lease)
        leases.hold((new.job, new.epoch), lambda _: None)
        leases.start()
        beating = asyncio.create_task(beat(leases))
        await until(board.rescue)
        await asyncio.sleep(1)
        assert await board.rescue() == 0
        beating.cancel()
        leases.close()
        states = {row["id"]: row["state"] for row in await board.jobs(JobFilter())}
        assert states.pop(new.job) == "running"
        assert list(states.values()) == ["queued"]


async def beat(leases: Leases) -> None:
    while True:
        leases.alive()
        await asyncio.sleep(0.1)


# a machine that stops, a link that is cut, a clock that goes wrong


async def test_a_worker_that_is_stopped_for_longer_than_its_lease_and_goes_on(
    address: str, tmp_path: Path
) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    lease = ("--lease", "2", "--concurrency", "1")
    async with Stepping(6, 0.5) as endpoint, Board(address, lease=2) as board:
        await board.submit("b", tasks("a", workspace=Workspace(str(folder))))
        async with working(address, endpoint.url, tmp_path / "one", *lease) as old:
            await until(there(folder, "steps"))
            os.kill(old.pid, signal.SIGSTOP)
            async with working(address, endpoint.url, tmp_path / "two", *lease):

                async def moved() -> bool:
                    return (await row_of(board))["epoch"] == 2

                await until(moved)
                os.kill(old.pid, signal.SIGCONT)
                await until(lambda: board.jobs(JobFilter(state="done")))
        await each_step_once(board, address, folder, 6)
        assert "lost" in (tmp_path / "one/log").read_text()


class Link:
    """A link to a server's socket, which can be cut: nothing passes, and nothing is closed."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.folder = folder
        self.open = asyncio.Event()
        self.open.set()
        self._target = next(server.folder.glob(".s.PGSQL.*[0-9]"))
        self._tasks: set[asyncio.Task[None]] = set()

    def address(self, address: str) -> str:
        """An address of the server, by way of this link."""
        return address.replace(quote(str(self._target.parent)), quote(str(self.folder)))

    async def __aenter__(self) -> Self:
        path = str(self.folder / self._target.name)
        self._server = await asyncio.start_unix_server(self._accept, path)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_unix_connection(str(self._target))
        for each in ((reader, far_writer), (far_reader, writer)):
            task = asyncio.create_task(self._pass(*each))
            self._tasks.add(task)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                await self.open.wait()
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


async def test_a_worker_whose_link_is_cut_starts_nothing_and_another_goes_on(
    address: str, postgres: Server, tmp_path: Path
) -> None:
    folder, near = tmp_path / "shared", tmp_path / "link"
    folder.mkdir()
    near.mkdir()
    lease = ("--lease", "2", "--concurrency", "1")
    async with (
        Stepping(6, 0.5) as endpoint,
        Board(address, lease=2) as board,
        Link(postgres, near) as link,
    ):
        await board.submit("b", tasks("a", workspace=Workspace(str(folder))))
        far = link.address(address)
        async with working(far, endpoint.url, tmp_path / "one", *lease):
            await until(there(folder, "steps"))
            link.open.clear()
            async with working(address, endpoint.url, tmp_path / "two", *lease):
                await until(lambda: board.jobs(JobFilter(state="done")))
            link.open.set()
        await each_step_once(board, address, folder, 6)
        assert (await row_of(board))["epoch"] == 2


@pytest.mark.skipif(FAKETIME is None, reason="libfaketime is not installed")
@pytest.mark.parametrize("hour", ["-1h", "+1h"])
async def test_a_worker_whose_clock_is_set_keeps_its_jobs(
    address: str, tmp_path: Path, hour: str
) -> None:
    folder, clock = tmp_path / "shared", tmp_path / "clock"
    folder.mkdir()
    clock.write_text("+0")
    fake = {
        "LD_PRELOAD": str(FAKETIME),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "CROW_SANDBOX": "off",  # in which the library waits for its own memory
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    one = ("--lease", "2", "--concurrency", "1")
    async with Stepping(8, 0.5) as endpoint, Board(address, lease=2) as board:
        await board.submit("b", tasks("a", workspace=Workspace(str(folder))))
        async with working(address, endpoint.url, tmp_path / "one", *one, **fake):
            await until(there(folder, "steps"))
            clock.write_text(hour)
            async with working(address, endpoint.url, tmp_path / "two", *one):
                await until(lambda: board.jobs(JobFilter(state="done")))
        await each_step_once(board, address, folder, 8)
        assert (await row_of(board))["epoch"] == 1


# the engine's tables


async def test_tables_of_an_engine_that_is_too_old_are_refused(address: str) -> None:
    async with Board(address) as board, board.connection() as connection:
        found = await connection.execute(
            "SELECT conname FROM pg_constraint WHERE contype = 'f'"
            " AND confrelid = 'procrastinate_workers'::regclass"
        )
        (name,) = await found.fetchone() or ("",)
        drop = f"ALTER TABLE procrastinate_jobs DROP CONSTRAINT {name}"
        await connection.execute(drop.encode())
    with pytest.raises(FleetError, match=r"older than its version 3\.1"):
        async with Board(address):
            pass


async def test_rows_of_the_engine_that_nobody_will_end_are_deleted(
    address: str, tmp_path: Path
) -> None:
    async def rows(board: Board) -> int:
        found = await board.database.rows("SELECT count(*) AS n FROM procrastinate_jobs")
        return found[0]["n"]

    async with Board(address, lease=0.3) as board:
        await board.submit("b", tasks("a", "b"))
        await claimed(board)  # and its worker dies here
        await until(board.rescue)
        await board.clean()
        assert await rows(board) == 1  # that of the other one, which waits
        await board.offer_due()
        assert await rows(board) == 2
        machine = Machine(board, tmp_path, lambda _: ["done"])
        assert await machine.run() == ["done"] * 2
        assert await rows(board) == 0


async def test_a_worker_that_begins_while_the_database_restarts_waits_for_it(
    postgres: Server, tmp_path: Path
) -> None:
    server = Server()
    try:
        async with Board(server.database(), patience=30) as board:
            await board.submit("b", [Task("edit", key="k")])
            await asyncio.to_thread(server.stop)
            machine = Machine(board, tmp_path, lambda _: ["done"])
            running = asyncio.create_task(machine.run())
            await asyncio.to_thread(server.start)
            assert await running == ["done"]
    finally:
        server.remove()
