"""How much a command may use: real commands that use too much, in every back end and in none."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import resource
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from tests.extensions.sandbox.conftest import BACKENDS, backend
from tests.extensions.sandbox.test_rings import running

from crow.extensions.sandbox.limits import limits_of
from crow.extensions.sandbox.policy import Limits
from crow.extensions.sandbox.process_monitor import Family, ProcessMonitor, memory
from crow.testing import BuildAgent, call

Play = Callable[..., Awaitable[str]]
MARK = f"crow-bomb-{uuid.uuid4().hex}"
FORKS = f": {MARK}; SECONDS=0; f() {{{{ [ $SECONDS -ge 15 ] || {{{{ {{}} f | f & }}}}; }}}}; f; wait; sleep 15"
"""A bomb of forks, which goes out by itself should nobody end it; what is put in slows it down."""


@pytest.fixture(params=[*BACKENDS, "none"])
def confined(
    request: pytest.FixtureRequest, build_agent: BuildAgent, monkeypatch: pytest.MonkeyPatch
) -> str:
    """The back ends that work here, and none; sessions run their commands in it."""
    del build_agent
    if request.param != "none":
        backend(request.param)
    monkeypatch.setenv("CROW_SANDBOX", request.param)
    return request.param


@pytest.fixture
async def alone() -> AsyncIterator[None]:
    """One test at a time, of all that run beside each other: two bombs are more than a machine has."""
    with Path(tempfile.gettempdir(), "crow-tests-of-limits.lock").open("w") as lock:
        await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)
        yield


@pytest.fixture
def play(confined: str, alone: None, build_agent: BuildAgent, tmp_path: Path) -> Play:
    """Run a command in the whole agent, with some limits."""

    async def playing(command: str, *, timeout: int = 30_000, **limits: int) -> str:
        path = Path.home() / ".crow/settings.json"
        path.parent.mkdir(exist_ok=True)
        rules = {"permissions": {"allow": ["Bash"]}}
        path.write_text(json.dumps({**rules, "extensions": {"sandbox": limits}}))
        folder = tmp_path / "project"
        folder.mkdir(exist_ok=True)
        run = call("Bash", command=command, timeout=timeout)
        async with build_agent(run, "done", cwd=folder) as agent:
            reply = await agent.run("Go", cwd=folder)
        [output] = [str(m.get("content")) for m in reply.session.messages if m["role"] == "tool"]
        return output

    return playing


@pytest.mark.variants(1)
async def test_a_bomb_of_forks_ends_its_command_soon_though_root_lights_it(play: Play):
    output = await play(FORKS.format("sleep 0.05;"), processes=150)
    assert "Killed by SIGKILL." in output
    assert output.endswith(
        "[the command was ended: it used more than 150 processes and threads "
        "(the setting extensions.sandbox.processes)]"
    )
    assert not family_of(MARK)


@pytest.mark.slow
async def test_so_does_one_that_burns_as_fast_as_it_can(play: Play):
    began = time.monotonic()
    output = await play(FORKS.format(""), processes=500)
    assert "more than 500 processes" in output
    assert time.monotonic() - began < 15
    assert not family_of(MARK)


@pytest.mark.variants(1)
async def test_so_does_one_whose_processes_all_leave_their_group(play: Play, tmp_path: Path):
    bomb = tmp_path / "project" / "bomb"
    bomb.parent.mkdir()
    end = int(time.time()) + 15
    code = f'[ "$(date +%s)" -lt {end} ] || exit; sleep 0.2; setsid "$0" & setsid "$0" &'
    bomb.write_text(f"#!/bin/sh\n{code}\n")
    bomb.chmod(0o755)
    output = await play(f"{bomb}; sleep 15", processes=60)
    assert "more than 60 processes" in output
    assert not family_of(str(bomb))


@pytest.mark.variants(1)
async def test_threads_count_as_the_kernel_counts_them(play: Play):
    code = (
        "import threading, time\n"
        "for _ in range(200): threading.Thread(target=time.sleep, args=[20]).start()"
    )
    output = await play(f"python3 -c '{code}'", processes=150)
    assert "more than 150 processes and threads" in output


@pytest.mark.slow
async def test_a_hog_of_memory_is_ended_and_what_is_shared_counts_once(play: Play):
    hog = "x = bytearray(300_000_000); import time; time.sleep(20)"
    output = await play(f"python3 -c '{hog}'", memory=200_000_000)
    assert "it used more than 0.2 GB of memory (the setting extensions.sandbox.memory)" in output
    shared = (
        "import os, time; x = bytearray(120_000_000)\n"
        "for _ in range(4):\n if not os.fork(): time.sleep(4); os._exit(0)\n"
        "time.sleep(3); print(1); [os.wait() for _ in range(4)]"
    )
    assert await play(f"python3 -c '{shared}'", memory=200_000_000) == "1"


@pytest.mark.variants(1)
async def test_memory_that_is_no_processes_own_counts_as_well(play: Play):
    """What is written into a file without a name, or in /dev/shm, lies in memory all the same."""
    code = (
        "import os, time; f = os.memfd_create('x')\n"
        "for _ in range(300): os.write(f, bytes(1_000_000))\n"
        "time.sleep(20)"
    )
    output = await play(f'python3 -c "{code}"', memory=200_000_000)
    assert "it used more than 0.2 GB of memory" in output


@pytest.mark.variants(1)
async def test_all_that_a_command_leaves_behind_counts_too(play: Play):
    """Each is small, none has a parent any more, and together they are too many."""
    output = await play(
        "for i in $(seq 60); do (env -i setsid sleep 19.41 &); done; sleep 9", processes=40
    )
    assert "more than 40 processes" in output
    assert not running("19.41")


@pytest.mark.variants(1)
async def test_open_files_and_large_ones_are_limited_and_the_model_is_told(play: Play):
    files = 'x = [open("/dev/null") for _ in range(99)]'
    output = await play(f"python3 -c '{files}'", open_files=50)
    assert output.endswith(
        "[a process may have 50 open files in the sandbox at most "
        "(the setting extensions.sandbox.open_files)]"
    )
    output = await play("head -c 2000000 /dev/zero > big", file_size=1_000_000)
    assert "extensions.sandbox.file_size" in output


@pytest.mark.slow
@pytest.mark.parametrize("confined", ["none"], indirect=True)
async def test_a_gigabyte_of_output_is_bounded_in_memory_and_on_disk(play: Play):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    output = await play("head -c 1000000000 /dev/zero | tr '\\0' x; echo end", timeout=50_000)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert output.rstrip().endswith("end")
    assert len(output) < 32_000
    assert grown < 100_000  # KiB
    kept = [path.stat().st_size for path in Path.home().rglob("bash-*.txt")]
    assert max(kept) <= 64 * 1024 * 1024


@pytest.mark.variants(1)
async def test_a_build_and_its_many_processes_are_not_hindered(play: Play):
    """Three hundred at once, which is what tests and builds on all cores have."""
    output = await play("for i in $(seq 300); do sleep 1 & done; wait; echo built")
    assert output == "built"


@pytest.mark.variants(1)
async def test_zero_is_no_limit(play: Play):
    output = await play("for i in $(seq 60); do sleep 1 & done; wait; echo all", processes=0)
    assert output == "all"


def test_what_counts_by_default_leaves_others_their_share():
    limits = limits_of(Limits())
    assert limits.processes is not None
    assert 1000 < limits.processes <= int(Path("/proc/sys/kernel/pid_max").read_text()) // 4
    assert limits.memory is not None
    assert 0 < limits.memory <= memory()[0] * 3 // 4 + 4096
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert limits.open_files == (65536 if soft > 65536 else None)
    assert limits_of(Limits(0, 0, 0, 0)) == Limits()


async def test_a_watch_looks_after_no_process_but_the_commands_own():
    """Neither those of another command, nor who has its number by now."""
    other = await asyncio.create_subprocess_exec("sleep", "20", start_new_session=True)
    mine = await asyncio.create_subprocess_exec(
        "sh", "-c", "sleep 20 & sleep 20 & wait", start_new_session=True
    )
    family = Family(mine.pid)
    while len(family.members()) < 3:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    family.end()
    await mine.wait()
    assert family.members() == []
    assert other.returncode is None
    other.kill()
    await other.wait()


async def test_a_watch_that_is_left_ends_nothing(tmp_path: Path):
    with ProcessMonitor(Limits(processes=1)) as watch:
        child = await asyncio.create_subprocess_exec("sleep", "0.5", start_new_session=True)
    watch.begin(child.pid)
    assert await child.wait() == 0
    assert watch.over == []


def family_of(word: str) -> list[str]:
    """The command lines with this word in them."""
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            found += [f"{path.parent.name}: {line}"] * (word in line)
    return found
