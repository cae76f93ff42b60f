"""How a fleet grows: jobs in the queue, sessions a worker, workers on a database, and a pooler.

``python -m benchmarks.fleet_curves [--quick]`` starts a PostgreSQL server, pgbouncer and workers,
and writes ``docs/fleet.json`` and ``docs/fleet.svg``. Times are of this machine, and of whatever
else it does: ``load`` says how busy it was.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import psycopg
from benchmarks.fleet_plot import plot
from tests.postgres import Server

from crow.core.agent import Agent
from crow.extensions import PersistenceHook
from crow.extensions.persistence.postgres import Postgres
from crow.extensions.persistence.record import Row, dump
from crow.extensions.persistence.session_log import Batch
from crow.fleet.board import Board, JobFilter, Left
from crow.fleet.task import Task, Workspace
from crow.testing import ScriptedModel
from crow.testing.endpoint import USAGE, Endpoint, Received, Response, delta, stream

DOCS = Path(__file__).parent.parent / "docs"
QUEUED = (1, 10, 100, 1_000, 10_000, 100_000)
SESSIONS = (1, 10, 50, 100, 200)
TOGETHER = (1, 2, 4, 8)
PAUSE = 4.0
"""Seconds that the model takes for an answer."""
TURNS = 4
LEFT = "SELECT extract(epoch FROM until - clock_timestamp()) FROM {}.fleet_leases"
APPENDS = 400


class Reading(Endpoint):
    """A model that reads a file so many times, and notes when each session asks again."""

    def __init__(self) -> None:
        super().__init__()
        self.asked_at: dict[str, list[float]] = defaultdict(list)

    def _steps(self, received: Received) -> Response:
        if received.path.endswith("/models"):
            return super()._steps(received)
        messages = received.body["messages"]
        prompt = next(str(m["content"]) for m in messages if "the file" in str(m.get("content")))
        self.asked_at[prompt].append(time.monotonic())
        done = sum(message["role"] == "tool" for message in messages)
        if done >= TURNS:
            return [PAUSE, *stream("Done.", delta("stop"), USAGE)]
        function = {"name": "Read", "arguments": json.dumps({"file_path": f"{done}.txt"})}
        call = {"index": 0, "id": f"call_{done}", "function": function}
        return [PAUSE, *stream(delta(tool_calls=[call]), delta("tool_calls"), USAGE)]

    def gaps(self) -> list[float]:
        """Seconds from the end of an answer to the next request of the same session."""
        every = self.asked_at.values()
        return [b - a - PAUSE for at in every for a, b in pairwise(at)]


def part(values: list[float], share: float) -> float:
    """A quantile, in milliseconds of seconds."""
    return round(sorted(values)[min(int(len(values) * share), len(values) - 1)] * 1000, 2)


async def timed(work: Any) -> float:
    """Milliseconds."""
    began = time.perf_counter()
    await work
    return round((time.perf_counter() - began) * 1000, 2)


async def queue_of(server: Server, number: int) -> dict[str, Any]:
    """What many queued jobs cost who submits, who begins one, and who looks."""
    async with Board(server.database()) as board:
        tasks = [Task(f"Do {n}", str(n), labels={"kind": str(n % 7)}) for n in range(number)]
        began = time.perf_counter()
        await board.submit("b", tasks)
        made: dict[str, Any] = {"queued": number, "submit_s": time.perf_counter() - began}
        claims: list[float] = []
        for _ in range(min(number, 100)):
            began = time.perf_counter()
            (offer,) = await board.queue.lease(1)
            claimed = await board.claim(offer, "w")
            claims.append(time.perf_counter() - began)
            assert claimed is not None
            await board.leave(claimed, Left("done"))
            await board.queue.finish(offer, "done")
        made |= {"claim_p50": part(claims, 0.5), "claim_p95": part(claims, 0.95)}
        made["watch"] = await timed(board.summary(JobFilter()))
        made["inbox"] = await timed(board.jobs(JobFilter(state="waiting")))
        made["list"] = await timed(board.jobs(JobFilter()))
        made["rescue"] = await timed(board.rescue())
        return made


async def begin_many(address: str, together: int, number: int) -> dict[str, Any]:
    """How many jobs a second so many can begin and end, which do nothing between."""
    async with Board(address, size=together) as board:
        await board.submit("b", [Task(f"Do {n}", f"{together}-{n}") for n in range(number)])

        async def work() -> int:
            done = 0
            while offers := await board.queue.lease(1):
                claimed = await board.claim(offers[0], "w")
                if claimed is not None:
                    done += await board.leave(claimed, Left("done"))
                await board.queue.finish(offers[0], "done")
            return done

        began = time.perf_counter()
        done = sum(await asyncio.gather(*(work() for _ in range(together))))
        assert done == number
        return {"together": together, "jobs_s": number / (time.perf_counter() - began)}


def append(address: str, session_id: str) -> float:
    """Append records to a session of one's own, as a turn does; seconds."""
    place = Postgres(address)
    claim, connection = place.claim(session_id), place.open()
    began = time.perf_counter()
    for n in range(APPENDS):
        rows = [Row(100 + 2 * n + k, 0, "result", dump({"output": "x" * 500})) for k in (0, 1)]
        place.write(connection, Batch(session_id, rows, {"messages": n}, {}), claim)
    took = time.perf_counter() - began
    claim.release()
    place.close()
    return took


async def append_many(address: str, together: int) -> dict[str, Any]:
    """How many appends a second so many processes come to."""
    async with Agent(ScriptedModel(*("x",) * together), hooks=[PersistenceHook(address)]) as agent:
        ids = [(await agent.run("Hello")).session.id for _ in range(together)]
    with ProcessPoolExecutor(together) as pool:
        list(pool.map(append, [address] * together, ids))  # once, to have them started
        took = max(pool.map(append, [address] * together, ids))
    return {"together": together, "appends_s": together * APPENDS / took}


class Process:
    """A worker's process, and what it takes."""

    def __init__(self, pid: int) -> None:
        self._path = Path(f"/proc/{pid}")
        self.cpu, self.memory = 0.0, 0.0

    def look(self) -> None:
        """Seconds of a processor, and megabytes at most."""
        try:
            fields = (self._path / "stat").read_text().rpartition(")")[2].split()
            status = (self._path / "status").read_text()
        except OSError:
            return
        self.cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        peak = next((line for line in status.splitlines() if line.startswith("VmHWM")), "")
        self.memory = int(peak.split()[1]) / 1024 if peak else self.memory


async def worker_of(server: Server, number: int, address: str) -> dict[str, Any]:
    """What so many sessions at once take of one worker and of the database."""
    schema = unquote(address).partition("search_path=")[2] or "public"
    folder = Path(tempfile.mkdtemp(prefix="crow-bench-"))
    for turn in range(TURNS):
        (folder / f"{turn}.txt").write_text(f"{turn}\n" * 50)
    async with Reading() as endpoint, Board(address) as board:
        environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("CROW_")},
            "HOME": str(folder),
            "CROW_STORE": address,
            "CROW_BASE_URL": endpoint.url,
            "CROW_MODEL": "reading",
            "CROW_API_KEY": "k",
        }
        place = Workspace(str(folder))
        tasks = [
            Task(f"Read the file, {number}-{n}.", f"{time.time()} {n}", place)
            for n in range(number)
        ]
        await board.submit(f"b{time.time()}", tasks)
        told(server, "SELECT pg_stat_statements_reset()")
        command = [sys.executable, "-m", "crow", "fleet", "work", "--until-empty"]
        with (folder / "log").open("w") as log:
            process = await asyncio.create_subprocess_exec(
                *command, "--concurrency", str(number), env=environment, stdout=log, stderr=log
            )
        began, seen, margin, most = time.perf_counter(), Process(process.pid), board.lease, 0
        ended = asyncio.create_task(process.wait())
        while not ended.done():
            seen.look()
            left = [float(str(row[0])) for row in told(server, LEFT.format(schema))]
            margin, most = min([margin, *left]), max(most, len(left))
            await asyncio.wait({ended}, timeout=0.5)
        took = time.perf_counter() - began
        states = (await board.summary(JobFilter()))["states"]
        assert set(states) == {"done"}, (states, (folder / "log").read_text()[-2000:])
    database = told(
        server, "SELECT sum(calls)::float8, sum(total_exec_time) FROM pg_stat_statements"
    )
    shutil.rmtree(folder)
    turns = number * (TURNS + 1)
    gaps = endpoint.gaps()
    return {
        "sessions": number,
        "at_once": most,
        "took_s": round(took, 1),
        "memory_mb": round(seen.memory, 1),
        "cpu_ms_turn": round(seen.cpu * 1000 / turns, 1),
        "gap_p50": part(gaps, 0.5),
        "gap_p95": part(gaps, 0.95),
        "lease_left_s": round(margin, 1),
        "statements_turn": round(float(database[0][0]) / turns, 2),
        "database_ms_turn": round(float(database[0][1]) / turns, 2),
        "database_share": round(float(database[0][1]) / 1000 / took, 4),
        "load": os.getloadavg()[0],
    }


def told(server: Server, sql: str) -> list[tuple[Any, ...]]:
    """Ask the server what it has counted."""
    with psycopg.connect(server.address(), autocommit=True) as connection:
        cursor = connection.execute(sql.encode())
        return cursor.fetchall() if cursor.description else []


class Pooler:
    """pgbouncer in front of a server, in the mode ``transaction``."""

    def __init__(self, server: Server, size: int = 10) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="crow-pooler-"))
        if not os.geteuid():
            shutil.chown(self.folder, server.user)
        (self.folder / "users").write_text(f'"{server.user}" ""\n')
        (self.folder / "ini").write_text(
            f"[databases]\n* = host={server.folder}\n[pgbouncer]\npool_mode = transaction\n"
            f"unix_socket_dir = {self.folder}\nlisten_port = 6543\nauth_type = trust\n"
            f"auth_file = {self.folder}/users\nmax_client_conn = 1000\ndefault_pool_size = {size}\n"
            f"unix_socket_mode = 0777\n"
        )
        os.chmod(self.folder, 0o755)  # noqa: PTH101
        name = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
        user = None if os.geteuid() else server.user
        self._process = subprocess.Popen([name, "-q", str(self.folder / "ini")], user=user)
        self.address = f"postgresql://{server.user}@/postgres?host={self.folder}&port=6543"
        deadline = time.monotonic() + 10
        while not (self.folder / ".s.PGSQL.6543").exists() and time.monotonic() < deadline:
            time.sleep(0.05)

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


async def measure(quick: bool) -> dict[str, Any]:
    """Everything, one after the other."""
    few = 3 if quick else None
    server = Server("shared_preload_libraries=pg_stat_statements")
    found: dict[str, Any] = {"at": time.strftime("%Y-%m-%d"), "cores": os.cpu_count()}
    try:
        told(server, "CREATE EXTENSION pg_stat_statements")
        found["queue"] = [said(await queue_of(server, n)) for n in QUEUED[:few]]
        found["claims"] = [
            said(await begin_many(server.database(), n, 300)) for n in TOGETHER[:few]
        ]
        found["appends"] = [said(await append_many(server.database(), n)) for n in TOGETHER[:few]]
        found["worker"] = [
            said(await worker_of(server, n, server.database())) for n in SESSIONS[:few]
        ]
        pooler = Pooler(server)
        try:
            number = SESSIONS[:few][-1] if quick else 100
            found["pooler"] = said(await worker_of(server, number, pooler.address))
            found["pooler"] |= said(await append_many(pooler.address, 4))
        finally:
            pooler.close()
    finally:
        server.remove()
    return found


def said(row: dict[str, Any]) -> dict[str, Any]:
    """The row, rounded and printed."""
    row = {name: round(v, 3) if isinstance(v, float) else v for name, v in row.items()}
    print(json.dumps(row), flush=True)
    return row


def main() -> None:
    """Measure, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="the first points alone; writes nothing"
    )
    wanted = parser.parse_args()
    found = asyncio.run(measure(wanted.quick))
    if not wanted.quick:
        (DOCS / "fleet.json").write_text(json.dumps(found, indent=1) + "\n")
        (DOCS / "fleet.svg").write_text(plot(found))


if __name__ == "__main__":
    main()
