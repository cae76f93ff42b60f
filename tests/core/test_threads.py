"""Reading in a thread, which nobody has to wait for and which keeps nobody from one."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from crow import Agent, ToolResult, tool
from crow.keys import MAY_READ, Key
from crow.testing import ScriptedModel, call
from crow.tools import read_in_thread

BEHIND = """
import asyncio, time
from crow.tools import read_in_thread

async def main():
    reading = asyncio.create_task(read_in_thread(time.sleep, 3600))
    await asyncio.sleep(0)
    reading.cancel()

asyncio.run(main())
"""


def test_a_process_ends_although_somebody_reads() -> None:
    subprocess.run([sys.executable, "-c", BEHIND], check=True, timeout=50)


async def test_what_is_read_and_what_is_raised_come_back(tmp_path: Path) -> None:
    seen: list[Any] = []

    @tool
    async def look(name: str) -> str:
        """Read a file."""
        try:
            return await read_in_thread(Path(tmp_path, name).read_text, "utf-8")
        except OSError as error:
            seen.append(type(error))
            raise

    (tmp_path / "a").write_text("words")
    model = ScriptedModel([call("look", name="a"), call("look", name="b")], "done")
    reply = await Agent(model, tools=[look]).run("Go")
    answers = [str(m["content"]) for m in reply.session.messages if m["role"] == "tool"]
    assert answers[0] == "words"
    assert "b" in answers[1]
    assert seen == [FileNotFoundError]


async def test_a_thread_knows_whose_work_it_does() -> None:
    known: Key[str] = Key("known")
    found: list[str] = []

    async def before_tool(ctx: Any) -> None:
        known.set(ctx, "here")
        found.append(await read_in_thread(lambda: known.get(ctx) or ""))

    @tool
    async def nothing() -> ToolResult:
        """Do nothing."""
        return ToolResult("")

    await Agent(ScriptedModel(call("nothing"), "ok"), tools=[nothing], hooks=[before_tool]).run(
        "Go"
    )
    assert found == ["here"]


@pytest.mark.slow
async def test_whoever_searches_for_long_keeps_nobody_from_a_thread(tmp_path: Path) -> None:
    """More searches than the loop's executor has threads, and a file that is read beside them."""
    (tmp_path / "a.txt").write_text("words\n")
    many, free = (os.cpu_count() or 1) + 40, Event()
    waiting: set[str] = set()
    all_wait = asyncio.Event()
    loop = asyncio.get_running_loop()

    def before_tool(ctx: Any) -> None:
        def may_read(path: str) -> bool:
            if ctx.call.name == "Read":
                return True
            waiting.add(ctx.session.id)
            if len(waiting) == many:
                loop.call_soon_threadsafe(all_wait.set)
            return free.wait(50)

        MAY_READ.set(ctx, {"test": may_read})

    def agent(*script: Any) -> Agent:
        return Agent(ScriptedModel(*script), hooks=[before_tool])

    searching = [
        asyncio.create_task(agent(call("Glob", pattern="*"), "ok").run("Go", cwd=tmp_path))
        for _ in range(many)
    ]
    try:
        await all_wait.wait()
        read = call("Read", file_path=str(tmp_path / "a.txt"))
        reply = await agent(read, "ok").run("Go", cwd=tmp_path)
        assert "words" in str(reply.session.messages[2]["content"])
        assert not any(each.done() for each in searching)
    finally:
        free.set()
    for each in await asyncio.gather(*searching):
        assert "a.txt" in str(each.session.messages[2]["content"])
