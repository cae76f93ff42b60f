"""Hooks that nobody waits for: what they say reaches the model later, and they end in time."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.extensions.shell_hooks.conftest import Stage, specific
from tests.processes import is_alive, until

from crow.testing import call

WRITE = call("Write", file_path="made.txt", content="x")
TEXT = {"type": "command"}


async def test_an_async_hook_is_not_waited_for_and_its_context_comes_with_the_next_turn(
    stage: Stage, tmp_path: Path
):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    says = {**specific("PostToolUse", additionalContext="tests are green"), "decision": "block"}
    stage.on("PostToolUse", f"cat {gate} > /dev/null", says=says, **{"async": True})  # type: ignore[arg-type]
    async with stage.agent(WRITE, "Ok.", "Ok.") as agent:
        reply = await agent.run("Go", cwd=stage.cwd)
        assert "tests are green" not in stage.told()
        await asyncio.to_thread(gate.write_text, "go")
        await until(lambda: bool(reply.session.pending))
        await agent.run("And?", session=reply.session)
    assert "tests are green" in stage.told()


async def test_a_hook_in_the_background_may_take_longer_than_its_time_out(
    stage: Stage, tmp_path: Path
):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    says = specific("Stop", additionalContext="it is late")
    stage.on("Stop", f"cat {gate} > /dev/null", says=says, timeout=0.01, **{"async": True})  # type: ignore[arg-type]
    async with stage.agent("Ok.", "Ok.") as agent:
        reply = await agent.run("Go", cwd=stage.cwd)
        await asyncio.to_thread(gate.write_text, "go")  # nobody reads it where the hook was ended
        await until(lambda: bool(reply.session.pending))
    assert "it is late" in str(reply.session.pending)


@pytest.mark.parametrize("how", ["asyncRewake", "asyncTimeout"])
async def test_a_hook_in_the_background_that_has_a_limit_is_ended_at_it(
    stage: Stage, tmp_path: Path, how: str
):
    pids = tmp_path / "pids"
    first = """echo '{"async": true, "asyncTimeout": 300}'; """ if how == "asyncTimeout" else ""
    command = f"{first}sleep 60 & echo $! $$ >> {pids}.new; mv {pids}.new {pids}; wait"
    limit = {"asyncRewake": True, "timeout": 0.3} if how == "asyncRewake" else {}
    stage.handle("Stop", {**TEXT, "command": command, **limit})
    async with stage.agent("Ok.") as agent:
        await agent.run("Go", cwd=stage.cwd)
        await until(pids.exists)
        for pid in map(int, pids.read_text().split()):
            await until(lambda pid=pid: not is_alive(pid))


async def test_of_what_a_hook_in_the_background_says_the_sound_fields_count(stage: Stage):
    says = {**specific("Stop", additionalContext="read me", sessionTitle=7), "systemMessage": 7}
    stage.on("Stop", says=says, **{"async": True})  # type: ignore[arg-type]
    async with stage.agent("Ok.") as agent:
        reply = await agent.run("Go", cwd=stage.cwd, client=stage.person)
        await until(lambda: bool(reply.session.pending))
    assert "read me" in str(reply.session.pending)


async def test_a_hook_in_the_background_decides_nothing(stage: Stage):
    stage.on("PreToolUse", stderr="no", code=2, **{"async": True})  # type: ignore[arg-type]
    await stage.run(WRITE, "Ok.")
    assert (stage.cwd / "made.txt").exists()


async def test_async_rewake_wakes_the_idle_model_with_standard_error(stage: Stage):
    stage.on("Stop", "grep -q nothing", stderr="the build broke", code=2, asyncRewake=True)
    script = Path(stage.tables[False]["Stop"][0]["hooks"][0]["command"])
    text = script.read_text().replace("grep -q nothing", f"mkdir {stage.scripts}/once || exit 0")
    script.write_text(text)
    async with stage.agent("Ok.", "I will mend it.") as agent:
        reply = await agent.run("Go", cwd=stage.cwd)
        await until(lambda: len(stage.model.asked) == 2 and not reply.session.busy)
    assert "the build broke" in stage.told()
    assert "<system-reminder>" in stage.told()


async def test_a_hook_in_the_background_ends_with_the_session(stage: Stage, tmp_path: Path):
    pid = tmp_path / "pid"
    command = f"echo $$ > {pid}; exec sleep 60"
    stage.handle("Stop", {**TEXT, "command": command, "async": True})
    async with stage.agent("Ok.") as agent:
        await agent.run("Go", cwd=stage.cwd)
        await until(lambda: pid.exists() and pid.read_text().strip())
    await until(lambda: not is_alive(int(pid.read_text())))


async def test_hooks_that_start_crow_inside_each_other_are_stopped(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("CROW_HOOK_DEPTH", "3")
    stage.on("Stop")
    reply = await stage.run()
    assert reply.stop_reason == "refusal"
    assert "3 times inside each other" in reply.detail


KILLED = """
import asyncio, sys
from crow import Agent
from crow.extensions import ShellHooks
from crow.project import HookFile
from crow.testing import ScriptedModel

async def main():
    handler = {"type": "command", "command": sys.argv[1], "async": sys.argv[3] == "async"}
    hooks = ShellHooks([HookFile("x", {"Stop": [{"hooks": [handler]}]})], directory=sys.argv[2])
    async with Agent(ScriptedModel("Ok."), hooks=[hooks], tools=[]) as agent:
        await agent.run("Go", cwd=sys.argv[2])
        await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("how", [pytest.param("sync", marks=pytest.mark.slow), "async"])
async def test_a_hook_dies_with_its_children_where_crow_is_killed(
    stage: Stage, tmp_path: Path, how: str
):
    pids = tmp_path / "pids"
    # it has its input, so Crow knows of it
    command = f"cat; sleep 60 & echo $! $$ >> {pids}.new; mv {pids}.new {pids}; wait"
    crow = subprocess.Popen(  # noqa: ASYNC220 - it only starts
        [sys.executable, "-c", KILLED, command, str(tmp_path), how]
    )
    with crow:
        await until(pids.exists)
        crow.kill()
    for pid in map(int, pids.read_text().split()):
        await until(lambda pid=pid: not is_alive(pid))
