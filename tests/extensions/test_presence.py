"""Which sessions are open, as somebody else sees it: by files, whatever becomes of who wrote them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crow import Agent, NullClient, tool
from crow.core.verdicts import Ask
from crow.extensions.presence import PresenceHook
from crow.testing import ScriptedModel, call

OPEN = """
import asyncio, sys
from crow import Agent
from crow.extensions import PresenceHook
from crow.testing import ScriptedModel

async def main():
    agent = Agent(ScriptedModel(), tools=(), hooks=[PresenceHook(sys.argv[1])])
    session = await agent.new_session()
    print(session.id, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


class User(NullClient):
    """Somebody who answers when they are told to."""

    answers = True

    def __init__(self) -> None:
        self.told = asyncio.Event()

    async def ask(self, session_id: str, question: Any) -> Any:
        await self.told.wait()
        return True


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "live"


async def becomes(hook: PresenceHook, is_so: Callable[[list[Any]], bool]) -> list[Any]:
    """What is open, as soon as something is true of it."""
    async with asyncio.timeout(20):
        while True:
            if is_so(found := hook.present()):
                return found
            await asyncio.sleep(0.02)


async def test_a_session_is_there_from_its_start_to_its_end(folder: Path):
    hook = PresenceHook(folder)
    agent = Agent(ScriptedModel("done"), tools=(), hooks=[hook])
    assert hook.present() == []
    session = await agent.new_session(str(folder.parent))
    (there,) = hook.present()
    assert (there.id, there.state, there.cwd) == (session.id, "idle", str(folder.parent))
    assert there.pid == os.getpid()
    await agent.prompt(session, "go")
    await becomes(hook, lambda found: [each.state for each in found] == ["idle"])
    await agent.close_session(session)
    assert hook.present() == []
    assert not [*folder.iterdir()]


async def test_it_says_what_it_works_on_and_what_it_waits_for(folder: Path):
    hook, user, at_work = PresenceHook(folder), User(), asyncio.Event()

    @tool
    async def slow() -> str:
        """Take some time."""
        await at_work.wait()
        return "slept"

    agent = Agent(ScriptedModel(call("slow"), "done"), tools=[slow], hooks=[hook])
    agent.hooks.register("after_loop", lambda ctx: ctx.ui.confirm("Push it?"))
    session = await agent.new_session(client=user)
    other = await agent.new_session()
    run = asyncio.create_task(agent.prompt(session, "go"))
    working, idle = await becomes(hook, lambda found: found[0].state == "works")
    assert (working.id, idle.id) == (session.id, other.id)
    at_work.set()
    waiting, _ = await becomes(hook, lambda found: found[0].state == "waits")
    assert (waiting.id, waiting.asks) == (session.id, "Push it?")
    assert waiting.since >= working.since
    user.told.set()
    await run
    await becomes(hook, lambda found: {each.state for each in found} == {"idle"})
    await agent.close()
    assert hook.present() == []


async def test_a_question_of_a_sub_agent_is_its_callers(folder: Path):
    hook, user = PresenceHook(folder), User()
    agent = Agent(ScriptedModel("done"), tools=(), hooks=[hook])
    agent.hooks.register("before_run", lambda ctx: Ask("Begin?") if ctx.session.parent else None)
    session = await agent.new_session(client=user)
    child = await agent.new_session(parent=session, client=user)
    run = asyncio.create_task(agent.prompt(child, "go"))
    await becomes(hook, lambda found: session.asking == ("Begin?",))
    assert [each.id for each in hook.present()] == [session.id]
    user.told.set()
    await run
    assert session.asking == ()
    with pytest.raises(AttributeError, match=r"session.asking cannot be replaced"):
        session.asking = ("Hello?",)
    await agent.close()


async def test_the_mark_of_a_process_that_was_killed_is_swept(folder: Path):
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", OPEN, str(folder)), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    session_id = (await process.stdout.readline()).decode().strip()
    hook = PresenceHook(folder)
    assert [(each.id, each.pid) for each in hook.present()] == [(session_id, process.pid)]
    process.send_signal(signal.SIGKILL)
    await process.wait()
    assert [*folder.iterdir()]
    assert hook.present() == []
    assert not [*folder.iterdir()]


async def test_files_that_say_nothing_are_passed_over(folder: Path):
    folder.mkdir()
    (folder / "a.json").write_text("{", "utf-8")
    (folder / "b.json").write_text(json.dumps({"id": "x"}), "utf-8")
    (folder / "notes.txt").write_text("mine", "utf-8")
    hook = PresenceHook(folder)
    assert hook.present() == []
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


async def test_a_folder_that_cannot_be_written_is_said_once_and_stops_nothing(folder: Path):
    folder.write_text("a file", "utf-8")
    said: list[str] = []

    class Listening(NullClient):
        async def update(self, session_id: str, event: Any) -> None:
            if hasattr(event, "severity"):
                said.append(event.text)

    agent = Agent(ScriptedModel("done"), tools=(), hooks=[PresenceHook(folder)])
    session = await agent.new_session(client=Listening())
    assert (await agent.prompt(session, "go")).text == "done"
    await agent.close()
    assert len(said) == 1
    assert said[0].startswith("crow sessions --live will not show this session: ")
