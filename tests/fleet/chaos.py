"""Many sessions on workers that are killed, stopped and cut off: each turn happens, and once.

``python -m tests.fleet.chaos [SESSIONS] [TURNS] [WORKERS] [SECONDS]`` starts a database, an
endpoint and workers, does harm to them at random for so long, lets them end, and counts. It exits
with 1 where anything is lost, doubled or stuck.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.postgres import Server

from crow.extensions import PersistenceHook
from crow.fleet.board import Board
from crow.fleet.job_filter import JobFilter
from crow.fleet.task import Task, Workspace
from crow.testing.endpoint import USAGE, Endpoint, Received, Response, delta, stream

LEASE = 3.0
GRACE = ("--grace", "2")
WITHIN = 10.0
"""Seconds after a lease in which a job can go on elsewhere."""
PAUSE = 0.05
"""Seconds that the model takes for an answer."""
STUCK = 90.0
"""Seconds without a request after which nothing moves any more; a slow machine is none."""


class Counting(Endpoint):
    """A model that asks for the next step of a session, whichever machine it is on."""

    last = 0.0
    """When it was asked last, by the monotonic clock."""

    def _steps(self, received: Received) -> Response:
        if received.path.endswith("/models"):
            return super()._steps(received)
        self.last = time.monotonic()
        messages = received.body["messages"]
        prompt = next(str(m["content"]) for m in messages if "steps" in str(m.get("content")))
        found = re.search(r"session (\d+), (\d+) steps", prompt)
        assert found is not None
        done = sum(message["role"] == "tool" for message in messages)
        if done >= int(found[2]):
            return [PAUSE, *stream("All steps are done.", delta("stop"), USAGE)]
        function = {
            "name": "Bash",
            "arguments": json.dumps({"command": self.command(found[1], done)}),
        }
        call = {"index": 0, "id": f"call_{done}", "function": function}
        return [PAUSE, *stream(delta(tool_calls=[call]), delta("tool_calls"), USAGE)]

    def command(self, session: str, step: int) -> str:
        """What a step does."""
        return f"echo {session}:{step} >> steps"


class Fleet:
    """The processes, and what is done to them."""

    def __init__(self, address: str, url: str, folder: Path, concurrency: int) -> None:
        self.workers: list[asyncio.subprocess.Process] = []
        self.harm: Counter[str] = Counter()
        self.deaths: list[tuple[int, float]] = []
        self._folder = folder
        self._args = (
            "fleet",
            "work",
            "--concurrency",
            str(concurrency),
            "--lease",
            str(LEASE),
            *GRACE,
        )
        self._env = {
            **{k: v for k, v in os.environ.items() if not k.startswith("CROW_")},
            "HOME": str(folder),
            "CROW_STORE": address,
            "CROW_BASE_URL": url,
            "CROW_MODEL": "counting",
            "CROW_API_KEY": "k",
        }

    async def start(self) -> None:
        """Start one worker."""
        with (self._folder / "log").open("a") as log:
            self.workers.append(
                await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "crow", *self._args),
                    env=self._env,
                    cwd=self._folder,
                    stdout=log,
                    stderr=log,
                )
            )

    async def hurt(self, server: Server) -> None:
        """Do one kind of harm to one worker, or to the database."""
        worker = random.choice(self.workers)
        match random.choice(["kill", "kill", "kill", "stop", "drain", "cut", "restart"]):
            case "kill":
                self.harm["killed"] += 1
                await self._end(worker, signal.SIGKILL)
            case "drain":
                self.harm["drained"] += 1
                await self._end(worker, signal.SIGTERM, wait=False)
            case "stop":
                self.harm["stopped for longer than a lease"] += 1
                if worker.returncode is not None:
                    return
                worker.send_signal(signal.SIGSTOP)
                self.deaths.append((worker.pid, time.time()))
                await asyncio.sleep(2 * LEASE)
                worker.send_signal(signal.SIGCONT)
            case "cut":
                self.harm["all connections cut"] += 1
                cut(server)
            case _:
                self.harm["database restarted"] += 1
                await asyncio.to_thread(server.stop)
                await asyncio.to_thread(server.start)

    async def _end(
        self, worker: asyncio.subprocess.Process, number: signal.Signals, *, wait: bool = True
    ) -> None:
        self.workers.remove(worker)
        if worker.returncode is not None:
            raise RuntimeError(f"a worker ended by itself: {(self._folder / 'log').read_text()}")
        worker.send_signal(number)
        if number == signal.SIGKILL:
            self.deaths.append((worker.pid, time.time()))
        if wait:
            await worker.wait()
        await self.start()

    async def end(self) -> None:
        """Drain all."""
        for worker in self.workers:
            if worker.returncode is None:
                worker.send_signal(signal.SIGTERM)
        for worker in self.workers:
            await worker.wait()

    def kill(self) -> None:
        """Leave nothing behind, however the play ends."""
        for worker in self.workers:
            if worker.returncode is None:
                worker.send_signal(signal.SIGKILL)


def cut(server: Server) -> None:
    """End every connection."""
    import psycopg

    with psycopg.connect(server.address(), autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )


async def play(sessions: int, turns: int, workers: int, seconds: float) -> list[str]:
    """What went wrong; nothing where all went well."""
    server = Server()
    folder = Path(tempfile.mkdtemp(prefix="crow-fleet-"))
    try:
        async with Counting() as endpoint:
            address = server.database()
            return await _play(server, address, endpoint, folder, sessions, turns, workers, seconds)
    finally:
        server.remove()


async def _play(
    server: Server,
    address: str,
    endpoint: Counting,
    folder: Path,
    sessions: int,
    turns: int,
    workers: int,
    seconds: float,
) -> list[str]:
    tasks: list[Task] = []
    for number in range(sessions):
        place = folder / f"work{number}"
        place.mkdir()
        prompt = f"This is session {number}, {turns} steps."
        tasks.append(Task(prompt, str(number), Workspace(str(place)), allow=("Bash",), tries=1000))
    async with Board(address, lease=LEASE) as board:
        await board.submit("chaos", tasks)
    fleet = Fleet(address, endpoint.url, folder, max(2, 2 * sessions // workers // 3))
    began = time.monotonic()
    try:
        for _ in range(workers):
            await fleet.start()
        while time.monotonic() - began < seconds:
            await asyncio.sleep(random.uniform(0.5, 2))
            await fleet.hurt(server)
        hurt = time.monotonic() - began
        async with Board(address, lease=LEASE) as board:
            await _until_over(board, endpoint)
            took = time.monotonic() - began
            await fleet.end()
            wrong = await check(board, address, folder, sessions, turns)
            wrong += await recovery(board, fleet.deaths)
            rows = await board.jobs(JobFilter())
            moved = sum(row["epoch"] - 1 for row in rows)
    finally:
        fleet.kill()
    print(f"{sessions} sessions of {turns} turns on {workers} workers, hurt for {hurt:.0f} s:")
    print(f"  {dict(fleet.harm)}; sessions moved {moved} times; {took:.0f} s in all")
    return wrong


async def recovery(board: Board, deaths: list[tuple[int, float]]) -> list[str]:
    """How long after a worker died its jobs were taken back, and began elsewhere."""
    taken: list[float] = []
    begun: list[float] = []
    for row in await board.jobs(JobFilter()):
        moves = await board.moves(row["id"])
        for lost, following in pairwise(moves):
            pid, ended = int(lost["who"].split("/")[1]), lost["ended"]
            if lost["how"] != "lost":
                continue
            at = max((t for who, t in deaths if who == pid and t < ended.timestamp()), default=0.0)
            if at > lost["began"].timestamp():
                taken.append(ended.timestamp() - at)
                begun.append(following["began"].timestamp() - at)
    for name, times in (("taken back", taken), ("begun elsewhere", begun)):
        if times:
            print(f"  {len(times)} jobs of dead workers were {name} after {told(times)}")
    late = [each for each in taken if each > LEASE + WITHIN]  # to begin, it waits for a place
    return [f"{len(late)} jobs were free later than {WITHIN} s after their lease"] if late else []


def told(times: list[float]) -> str:
    """Quantiles of seconds."""
    ordered = sorted(times)
    p50, p95 = (ordered[int(len(ordered) * share)] for share in (0.5, 0.95))
    return f"{p50:.1f} s (p50), {p95:.1f} s (p95), {ordered[-1]:.1f} s (most)"


async def _until_over(board: Board, endpoint: Counting) -> None:
    """Wait until nothing is queued or at work. Raises ``TimeoutError`` where nothing moves."""
    while (summary := await board.summary(JobFilter()))["states"].keys() & {"queued", "running"}:
        if time.monotonic() - endpoint.last > STUCK:
            raise TimeoutError(f"nothing moves any more: {summary['states']}")
        await asyncio.sleep(0.5)


async def check(board: Board, address: str, folder: Path, sessions: int, turns: int) -> list[str]:
    """Count what is stored, and what was really done."""
    wrong: list[str] = []
    hook = PersistenceHook(address)
    unknown = 0
    for row in await board.jobs(JobFilter()):
        number = re.search(r"session (\d+)", row["task"]["prompt"])
        assert number is not None
        if row["state"] != "done":
            wrong.append(f"session {number[1]} is {row['state']}: {row['outcome']}")
            continue
        messages = [m for part in await hook.store.segments(row["id"]) for m in part]
        answers: dict[str, str] = {}
        for message in messages:
            if message["role"] == "tool":
                answers[str(message.get("tool_call_id"))] = str(message.get("content"))
        calls = [c["id"] for m in messages for c in m.get("tool_calls", ())]
        if calls != [f"call_{step}" for step in range(turns)]:
            wrong.append(f"session {number[1]} has the calls {calls}")
        done = Counter((folder / f"work{number[1]}" / "steps").read_text().split())
        for step in range(turns):
            times = done[f"{number[1]}:{step}"]
            said = answers.get(f"call_{step}", "")
            is_open = any(
                word in said for word in ("interrupted", "not executed", "not started", "cancelled")
            )
            unknown += is_open
            if times > 1 or (times == 0 and not is_open):
                wrong.append(f"session {number[1]} did step {step} {times} times: {said!r}")
    print(f"  {sessions * turns} steps, {unknown} of them marked as of unknown outcome")
    return wrong


def main() -> int:
    """Play it."""
    wanted = [float(word) for word in sys.argv[1:]]
    sessions, turns, workers, seconds = [*wanted, *(400, 40, 6, 60)[len(wanted) :]]
    wrong = asyncio.run(play(int(sessions), int(turns), int(workers), seconds))
    for line in wrong[:20]:
        print(f"  WRONG: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())


__all__: list[Any] = ["play"]
