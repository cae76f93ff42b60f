"""What a settings hook costs beside its process: Crow's own time, in milliseconds.

A hook that reads its input and says ``{}`` is run in turn as a bare asyncio subprocess of the same
shell and through the extension, at the same event of a session with a history. Beside that, what
an event costs that no hook matches.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time

from crow.core.agent import Agent
from crow.core.hooks.contexts import ToolContext
from crow.core.hooks.run_context import RunContext
from crow.core.session import Session
from crow.core.tools import Call
from crow.extensions import ShellHooks
from crow.project import HookFile
from crow.testing import ScriptedModel

ROUNDS = 200
COMMAND = "cat > /dev/null; echo '{}'"
BODY = b'{"hook_event_name":"PreToolUse"}\n'
TARGET = 2.0


async def bare(cwd: str) -> None:
    process = await asyncio.create_subprocess_exec(
        "sh",
        "-c",
        COMMAND,
        cwd=cwd,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    output, _ = await process.communicate(BODY)
    assert output == b"{}\n"


def call_of(agent: Agent, session: Session, name: str) -> ToolContext:
    return ToolContext(RunContext(agent, session, "x"), Call("1", name, {"command": "ls"}), None)


async def measure() -> tuple[list[float], list[float], list[float]]:
    through: list[float] = []
    without: list[float] = []
    unmatched: list[float] = []
    with tempfile.TemporaryDirectory() as cwd:
        group = {"matcher": "Bash", "hooks": [{"type": "command", "command": COMMAND}]}
        files = [HookFile("settings.json", {"PreToolUse": [group]})]
        agent = Agent(ScriptedModel(), hooks=[ShellHooks(files, directory=cwd)], tools=[])
        session = Session(cwd=cwd)
        for _ in range(200):
            session.messages.append({"role": "user", "content": "word " * 200})
        fire = agent.hooks.before_tool.fire
        for _ in range(ROUNDS):
            times = [time.perf_counter()]
            await bare(cwd)
            times.append(time.perf_counter())
            await fire(call_of(agent, session, "Bash"))
            times.append(time.perf_counter())
            await fire(call_of(agent, session, "Read"))
            times.append(time.perf_counter())
            for kept, began, ended in zip(
                (without, through, unmatched), times, times[1:], strict=False
            ):
                kept.append((ended - began) * 1000)
            session.messages.append({"role": "assistant", "content": "Done."})
    return through, without, unmatched


def main() -> None:
    through, without, unmatched = map(statistics.median, asyncio.run(measure()))
    print(f"bare asyncio subprocess        {without:6.2f} ms")
    print(f"through a settings hook        {through:6.2f} ms")
    print(f"Crow's own time                {through - without:6.2f} ms (target: under {TARGET:g})")
    print(f"a call that no hook matches    {unmatched:6.3f} ms")


if __name__ == "__main__":
    main()
