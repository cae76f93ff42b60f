"""A child process by itself: who reads slowly holds it back."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest
from tests.processes import is_alive
from tests.tools.test_bash import demand_gone

from crow.process import ChildProcess, run


class Patient(ChildProcess):
    """Reads its standard output only once it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = {1: b"", 2: b""}
        self.complained = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        pipe = cast("asyncio.SubprocessTransport", transport).get_pipe_transport(1)
        self.output = cast("asyncio.ReadTransport", pipe)
        self.output.pause_reading()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.heard[fd] += data
        if fd == 2:
            self.complained.set()


async def test_who_pauses_a_pipe_reads_nothing_of_it_until_it_is_resumed(tmp_path: Path) -> None:
    child = Patient()
    await child.start(["sh", "-c", "echo out; echo err >&2"], str(tmp_path), os.environ)
    await child.exited.wait()
    await child.complained.wait()
    assert child.heard == {1: b"", 2: b"err\n"}
    assert not child.silent.is_set()
    child.output.resume_reading()
    await child.silent.wait()
    assert child.heard[1] == b"out\n"
    assert child.output.is_closing()
    child.close()


async def test_a_program_is_run_to_its_end_with_what_it_reads_and_prints(tmp_path: Path) -> None:
    line = "cat; pwd; echo why >&2; exit 3"
    done = await run(["sh", "-c", line], cwd=tmp_path, stdin=b"read\n" * 100_000)
    assert done.out == b"read\n" * 100_000 + f"{tmp_path.resolve()}\n".encode()
    assert (done.code, done.err, done.complaint) == (3, b"why\n", "why")


@pytest.mark.parametrize("by", ["time", "cancel"])
async def test_nothing_stays_of_a_program_that_nobody_waits_for(tmp_path: Path, by: str) -> None:
    os.mkfifo(tmp_path / "pids")
    line = "sleep 3600 & echo $! $$ > pids; wait"
    running = asyncio.create_task(
        run(["sh", "-c", line], cwd=tmp_path, timeout=2.0 if by == "time" else None)
    )
    pids = (await asyncio.to_thread((tmp_path / "pids").read_text)).split()
    if by == "cancel":
        running.cancel()
    with pytest.raises((TimeoutError, asyncio.CancelledError)):
        await running
    for pid in pids:
        await demand_gone(int(pid))


MANY = """
import os, subprocess, sys
from crow.process import ProcessReaper

reaper = ProcessReaper()
reaper.expect("CROW_COMMAND=none")

def start(number):
    mark = f"CROW_COMMAND={os.getpid()}.{number}"
    reaper.expect(mark)
    sleep = subprocess.Popen(["sleep", "3600"], start_new_session=True)
    reaper.add(sleep.pid, mark)
    return sleep.pid

first = [start(number) for number in range(40)]  # more than a page of lines
reaper.remove(mark="CROW_COMMAND=none")
for pid in first[::2]:
    reaper.remove(pid)
last = [start(number) for number in range(40, 50)]
print(*first[::2], flush=True)
print(*first[1::2], *last, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_whatever_runs_dies_with_the_agent_however_much_came_and_went(
    number: signal.Signals,
) -> None:
    agent = subprocess.Popen(
        [sys.executable, "-c", MANY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with agent:
        assert agent.stdout is not None
        free, held = ([*map(int, agent.stdout.readline().split())] for _ in range(2))
        try:
            agent.send_signal(number)
            agent.wait()
            assert len(held) == 30
            for pid in held:
                asyncio.run(demand_gone(pid))
            assert all(map(is_alive, free))
        finally:
            for pid in free:
                os.kill(pid, signal.SIGKILL)
