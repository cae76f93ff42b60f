"""The tools at work in the real loop: what hooks see, parallel calls, the end of a session."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.processes import is_alive

from crow import Agent
from crow.core.hooks.contexts import ToolContext
from crow.core.messages import text_of
from crow.testing import ScriptedModel, call
from crow.tools import builtin


def answers(model: ScriptedModel, request: int) -> list[str]:
    """What the model was told of its calls, in the order in which it made them."""
    messages = model.asked[request]["messages"]
    return [text_of(m.get("content")) for m in messages if m["role"] == "tool"]


async def test_t10_parallel_calls_are_answered_in_order(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello\n")
    slow_then_quick = [
        call("Bash", command="sleep 0.2; echo slow"),
        call("Bash", command="exit 7"),
        call("Read", file_path="a.txt"),
    ]
    model = ScriptedModel(slow_then_quick, "done")
    async with Agent(llm=model, tools=builtin()) as agent:
        reply = await agent.run("go", cwd=tmp_path)
    assert reply.text == "done"
    assert answers(model, 1) == ["slow", "Exit code 7\n(no output)", "     1\thello"]


async def test_hooks_see_absolute_paths_and_claudes_shapes(tmp_path: Path) -> None:
    seen: list[Any] = []
    model = ScriptedModel(
        call("Write", file_path="a.txt", content="1\n"),
        call("Edit", file_path="./a.txt", old_string="1", new_string="2"),
        "done",
    )

    async def before_tool(ctx: ToolContext) -> None:
        seen.append(ctx.args["file_path"])

    async def after_tool(ctx: ToolContext) -> None:
        assert ctx.result is not None
        seen.append(sorted(ctx.result.data))

    async with Agent(llm=model, tools=builtin()) as agent:
        agent.hooks.register("before_tool", before_tool)
        agent.hooks.register("PostToolUse", after_tool)
        await agent.run("go", cwd=tmp_path)
    path = str(tmp_path / "a.txt")
    written = ["content", "filePath", "originalFile", "structuredPatch", "type"]
    assert seen[:3] == [path, written, path]
    assert seen[3] == [
        "filePath",
        "newString",
        "oldString",
        "originalFile",
        "replaceAll",
        "structuredPatch",
        "userModified",
    ]
    assert Path(path).read_text() == "2\n"


async def test_arguments_that_do_not_fit_never_run(tmp_path: Path) -> None:
    model = ScriptedModel(call("Write", file_path="a.txt", text="1"), "done")
    async with Agent(llm=model, tools=builtin()) as agent:
        await agent.run("go", cwd=tmp_path)
    assert answers(model, 1) == [
        (
            "Write: content: missing (it is required); "
            "text: no such argument; there are file_path, content"
        )
    ]
    assert list(tmp_path.iterdir()) == []


async def test_background_commands_end_with_the_session(tmp_path: Path) -> None:
    command = "echo $$ >pid; exec sleep 3600"
    model = ScriptedModel(
        call("Bash", command=command, run_in_background=True),
        call("Bash", command="until [ -s pid ]; do sleep 0.01; done"),
        "done",
    )
    async with Agent(llm=model, tools=builtin()) as agent:
        await agent.run("go", cwd=tmp_path)
        pid = (tmp_path / "pid").read_text().strip()
        assert Path(f"/proc/{pid}").exists()
    assert not Path(f"/proc/{pid}").exists()


UNCLOSED = """
import asyncio, sys
from crow import Agent
from crow.testing import ScriptedModel, call
from crow.tools import builtin

model = ScriptedModel(
    call("Bash", command="sleep 3600 & echo $!"),
    call("Bash", command="exec sleep 3600", run_in_background=True),
    "done",
)


async def main():
    asyncio.get_running_loop().slow_callback_duration = 60  # a busy machine is no fault of Crow's
    return await Agent(llm=model, tools=builtin()).run("go", cwd=sys.argv[1])


reply = asyncio.run(main())
print(reply.session.messages[2]["content"].split()[0])
"""


def test_an_agent_that_nobody_closes_leaves_nothing_behind(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-W", "default", "-c", UNCLOSED, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert run.stderr == ""
    while is_alive(int(run.stdout)):  # until the test's own time-out
        time.sleep(0.01)


async def test_cancelling_a_run_ends_its_command(tmp_path: Path) -> None:
    model = ScriptedModel(call("Bash", command="echo $$ >pid; exec sleep 3600"))
    async with Agent(llm=model, tools=builtin()) as agent:
        session = await agent.new_session(tmp_path)
        running = asyncio.create_task(agent.prompt(session, "go"))
        async with asyncio.timeout(50):
            while not (tmp_path / "pid").exists():  # noqa: ASYNC110 - a process makes it
                await asyncio.sleep(0.01)
        agent.cancel(session)
        reply = await running
        assert reply.stop_reason == "cancelled"
        pid = (tmp_path / "pid").read_text().strip()
    assert not Path(f"/proc/{pid}").exists()
