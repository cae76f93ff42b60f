"""No server outlives its session, its agent or the agent's process."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.extensions.mcp.conftest import SERVERS, Open, Table, pids
from tests.processes import is_alive

from crow.testing import call

Raw = Callable[..., Table]


def left(trace: Path, seconds: float = 10) -> list[int]:
    """The processes that run still; one that was killed needs a moment to die."""
    deadline = time.monotonic() + seconds
    while any(map(is_alive, pids(trace))) and time.monotonic() < deadline:
        time.sleep(0.01)
    return [pid for pid in pids(trace) if is_alive(pid)]


@pytest.mark.slow
async def test_a_session_takes_its_servers_and_their_children_along(
    opened: Open, raw: Raw, trace: Path
):
    servers = {name: raw(stubborn=True, tools=[name]) for name in ("one", "two")}
    async with opened(servers, "Hello.") as it:
        await it.prompt()
        assert len(pids(trace)) == 4
        assert all(map(is_alive, pids(trace)))
        await it.agent.close_session(it.session)
        assert left(trace) == []
        assert it.session.tools == {}


async def test_a_server_that_hears_the_end_of_its_input_is_not_killed(
    opened: Open, raw: Raw, trace: Path
):
    async with opened({"s": raw()}, "Hello.", close_timeout=100.0) as it:
        await it.prompt()
    assert trace.read_text().splitlines()[-1] == "heard the end"
    assert left(trace) == []


async def test_a_session_can_be_closed_while_its_servers_connect(
    opened: Open, raw: Raw, trace: Path
):
    async with opened({"s": raw(init="silent")}, "Hello.", wait=0.1) as it:
        await it.prompt()
        async with asyncio.timeout(30):
            while not pids(trace):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    assert left(trace) == []


async def test_a_server_that_has_never_said_a_word_is_not_waited_for(opened: Open, trace: Path):
    """Nor need it look at its input: half of 200 seconds is more than a test may take."""
    mute = {"command": "sh", "args": ["-c", f"echo $$ > {trace}.mute; exec sleep 600"]}
    pid = Path(f"{trace}.mute")
    async with opened({"s": mute}, "Hello.", wait=0.1, close_timeout=200.0) as it:
        await it.prompt()
        async with asyncio.timeout(30):
            while not (pid.exists() and pid.read_text().strip()):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    assert not is_alive(int(pid.read_text()))


async def test_closing_in_the_middle_of_a_call_ends_the_call(opened: Open, raw: Raw, trace: Path):
    async with opened({"s": raw(call="mute")}, call("mcp__s__echo")) as it:
        running = asyncio.create_task(it.agent.prompt(it.session, "Go on."))
        async with asyncio.timeout(30):
            while "call echo" not in (trace.read_text() if trace.exists() else ""):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await it.agent.close_session(it.session)
        assert (await running).stop_reason == "cancelled"
    assert left(trace) == []


async def test_an_extension_that_is_stopped_and_removed_leaves_nothing(
    opened: Open, raw: Raw, trace: Path
):
    async with opened({"s": raw()}, "Hello.", "Again.") as it:
        await it.prompt()
        await it.agent.stop("mcp")
        it.agent.remove("mcp")
        assert left(trace) == []
        assert it.session.tools == {}
        assert list(it.agent.commands_of(it.session)) == []
        await it.prompt()
        assert it.tools() == []


PROGRAM = """
import asyncio, json, sys
from crow import Agent
from crow.extensions import McpHook
from crow.testing import ScriptedModel

async def main():
    agent = Agent(llm=ScriptedModel("Hello."), hooks=[McpHook(json.loads(sys.argv[1]), wait=20)])
    await agent.run("Hi.")
    print("ready", flush=True)
    if sys.argv[2] == "wait":
        await asyncio.sleep(60)

asyncio.run(main())
"""


def program(server: Table, what: str) -> list[str]:
    return [sys.executable, "-c", PROGRAM, json.dumps({"s": server}), what]


@pytest.mark.slow
def test_an_agent_that_is_killed_takes_its_servers_along(raw: Raw, trace: Path):
    command = program(raw(stubborn=True), "wait")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as agent:
        assert agent.stdout is not None
        assert agent.stdout.readline() == "ready\n"
        assert len([pid for pid in pids(trace) if is_alive(pid)]) == 2
        agent.send_signal(signal.SIGKILL)
    assert left(trace) == []


@pytest.mark.slow
def test_a_program_that_forgets_to_close_leaves_no_server(raw: Raw, trace: Path):
    done = subprocess.run(program(raw(), "end"), capture_output=True, text=True, timeout=30)
    said = [line for line in done.stderr.splitlines() if "blocked everything" not in line]
    assert (done.stdout, said, done.returncode) == ("ready\n", [], 0)
    assert left(trace) == []


def test_a_server_that_is_started_by_hand_ends_with_its_input():
    done = subprocess.run(
        [sys.executable, str(SERVERS / "raw.py"), "{}"], input="", text=True, timeout=50
    )
    assert done.returncode == 0
