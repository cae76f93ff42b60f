"""Sub-agents in the background, and what a session that runs as an agent begins with."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast

import pytest
from tests.extensions.poet import TASK, built, define
from tests.extensions.test_subagents_memory import project

from crow import LLM, Agent, Completion, Request, RunContext
from crow.app import build
from crow.core.ports.client import NullClient, PermissionRequest
from crow.core.ports.llm import Delta
from crow.events import Notice
from crow.extensions import McpHook, SubagentsHook
from crow.keys import JOBS, SUBAGENTS
from crow.project.trust import trust
from crow.testing import ScriptedModel, ScriptedUser, call

__all__ = ["project"]

SERVER = """
from mcp.server import MCPServer

server = MCPServer("notes")

@server.tool()
def note(text: str) -> str:
    "Write it down."
    return f"noted {text}"

@server.tool()
def burn() -> str:
    "Burn all of it."
    return "burnt"

server.run()
"""


class Patient(NullClient):
    """A client of a run that ends with its answer."""

    waits_for_servers = True


class Reading(NullClient):
    """A client that answers yes to everything, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[PermissionRequest] = []

    async def permission(self, session_id: str, request: PermissionRequest) -> str | None:
        self.asked.append(request)
        return "allow_once"


class Stage:
    """A model for the session and one for its sub-agent, which answers once it may."""

    def __init__(self, main: ScriptedModel, poet: ScriptedModel) -> None:
        self.model = "scripted"
        self.context_window = None
        self.main = main
        self.poet = poet
        self.may_begin = asyncio.Event()
        self.has_begun = asyncio.Event()

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Completion]:
        """Answer by the script of whoever asks."""
        model = self.main
        if "You rhyme." in str(request.messages[0]):
            model = self.poet
            self.has_begun.set()
            await self.may_begin.wait()
        async for each in model.stream(request):
            yield each


class Woken:
    """Waits for the end of so many runs of the session."""

    name = "woken"

    def __init__(self, runs: int) -> None:
        self.left = runs
        self.done = asyncio.Event()

    def after_run(self, ctx: RunContext) -> None:
        """Count it."""
        self.left -= ctx.session.parent is None
        if not self.left:
            self.done.set()


@pytest.fixture
def stage() -> Stage:
    """What most of these tests play."""
    main = ScriptedModel(TASK, "It is on its way.", "It rhymes with June.", leftover="allow")
    return Stage(main, ScriptedModel("June."))


def on(stage: Stage, project: Path, **settings: Any) -> Agent:
    """The agent that the settings make, with these models."""
    return build({"model": "x", **settings}, cwd=project, model=cast(LLM, stage))


async def test_its_caller_goes_on_and_is_woken_by_what_it_says(
    project: Path, home: Path, stage: Stage
) -> None:
    define(home, "background: true")
    async with on(stage, project) as agent:
        agent.use(woken := Woken(2))
        session = await agent.new_session(project)
        reply = await agent.prompt(session, "Hi")
        assert "as agent_1. Do not wait" in str(session.messages[2].get("content"))
        stage.may_begin.set()
        await woken.done.wait()
    assert reply.text == "It is on its way."
    prompt = str(stage.main.asked[2]["messages"][-1].get("content"))
    assert prompt == (
        "The sub-agent poet (Rhyme) in the background is done. This is not the user's word:\n\nJune."
    )
    assert session.messages[-1].get("content") == "It rhymes with June."


async def test_it_is_waited_for_where_a_run_ends_with_its_answer(project: Path, home: Path) -> None:
    define(home, "background: true")
    agent, llm = built(project, TASK, "June.", "Ok.")
    async with agent:
        await agent.run("Hi", cwd=project, client=Patient())
    assert llm.asked[2]["messages"][-1].get("content") == "June."


async def test_in_the_background_nobody_is_asked(project: Path, home: Path, stage: Stage) -> None:
    define(home, "background: true")
    stage.poet = ScriptedModel(call("Bash", command="touch made"), "Denied.")
    client = Reading()
    async with on(stage, project, sandbox={"enabled": False}) as agent:
        agent.use(woken := Woken(2))
        session = await agent.new_session(project, client=client)
        await agent.prompt(session, "Hi")
        stage.may_begin.set()
        await woken.done.wait()
    assert client.asked == []
    assert not (project / "made").exists()
    assert "Denied." in str(stage.main.asked[2]["messages"][-1])


async def test_one_that_is_stopped_wakes_nobody(project: Path, home: Path, stage: Stage) -> None:
    define(home, "background: true")
    async with on(stage, project) as agent:
        session = await agent.new_session(project)
        await agent.prompt(session, "Hi")
        await stage.has_begun.wait()
        (own,) = session.cache[SUBAGENTS].values()
        job = session.cache[JOBS]["agent_1"]
        agent.cancel(own)
        await job.wait()
        await agent.prompt(session, "And?")
    first, _ = (str(each.get("content")) for each in stage.main.asked[2]["messages"][-2:])
    assert first == "And?"
    assert "in the background did not finish" in str(stage.main.asked[2]["messages"][-1])


async def test_it_ends_with_the_session(project: Path, home: Path, stage: Stage) -> None:
    define(home, "background: true")
    async with on(stage, project) as agent:
        session = await agent.new_session(project)
        await agent.prompt(session, "Hi")
        await stage.has_begun.wait()
        await agent.close_session(session, "other")
    assert stage.poet.asked == []


async def test_what_a_session_begins_with_goes_before_the_first_prompt(
    project: Path, home: Path
) -> None:
    define(home, "initialPrompt: Look around.")
    agent, llm = built(project, "Seen.", "Again.", agent="poet")
    async with agent:
        session = await agent.new_session(project)
        await agent.prompt(session, "Hi")
        await agent.prompt(session, "Ho")
    prompts = [each["messages"][-1].get("content") for each in llm.asked]
    assert prompts == ["Look around.\n\nHi", "Ho"]


def server(tmp_path: Path) -> str:
    """A description of a server, as front matter has it."""
    (tmp_path / "server.py").write_text(SERVER)
    described = {"command": sys.executable, "args": [str(tmp_path / "server.py")]}
    return f"mcpServers: [{{notes: {json.dumps(described)}}}]"


@pytest.mark.slow
async def test_servers_of_its_own_live_as_long_as_its_work(
    project: Path, home: Path, tmp_path: Path
) -> None:
    define(home, server(tmp_path), "tools: Read", "disallowedTools: mcp__notes__burn")
    note = call("mcp__notes__note", text="moon")
    rules = {"permissions": {"allow": ["mcp__notes"]}}
    agent, llm = built(project, TASK, note, "Noted.", TASK, "Nothing.", "Ok.", **rules)
    async with agent:
        await agent.run("Hi", cwd=project)
    names = [{each["function"]["name"] for each in asked["tools"]} for asked in llm.asked]
    assert names[1] == names[4] == {"Read", "mcp__notes__note"}
    assert "mcp__notes__note" not in names[0] | names[3]
    assert llm.asked[2]["messages"][-1].get("content") == (
        '<mcp-data server="notes">\nnoted moon\n</mcp-data>'
    )


@pytest.mark.slow
async def test_a_session_that_runs_as_the_agent_has_its_servers(
    project: Path, home: Path, tmp_path: Path
) -> None:
    define(home, server(tmp_path))
    agent, llm = built(project, "Ok.", agent="poet", extensions={"mcp": {"wait": 30}})
    async with agent:
        await agent.run("Hi", cwd=project)
    assert "mcp__notes__note" in {each["function"]["name"] for each in llm.asked[0]["tools"]}


@pytest.mark.parametrize("is_sound", [True, False])
async def test_a_projects_file_starts_no_server_that_nobody_has_trusted(
    project: Path, home: Path, tmp_path: Path, is_sound: bool
) -> None:
    touched = tmp_path / "touched"
    start = f"mcpServers: [{{mine: {{command: touch, args: [{json.dumps(str(touched))}]}}}}]"
    define(project, start)
    if is_sound:
        trust(project)
    user = ScriptedUser()
    agents = SubagentsHook([project / ".claude/agents"])
    async with Agent(ScriptedModel(TASK, "Ok.", "Ok."), hooks=[McpHook(), agents]) as agent:
        await agent.run("Hi", cwd=project, client=user)
    told = str([each.text for each in user.told if isinstance(each, Notice)])
    assert (touched.exists(), "its servers do not start" in told) == (is_sound, not is_sound)


async def test_the_agent_of_a_plugin_brings_no_servers_and_no_mode(
    project: Path, home: Path, tmp_path: Path
) -> None:
    root, touched = tmp_path / "plugin", tmp_path / "touched"
    (root / ".claude-plugin").mkdir(parents=True)
    (root / ".claude-plugin/plugin.json").write_text('{"name": "art"}')
    (root / "agents").mkdir()
    head = "name: poet\ndescription: Rhymes.\npermissionMode: acceptEdits\nmemory: user\n"
    more = f"mcpServers: {{mine: {{command: touch, args: [{json.dumps(str(touched))}]}}}}\n"
    (root / "agents/poet.md").write_text(f"---\n{head}{more}---\nYou rhyme.\n")
    task = call("Agent", subagent_type="art:poet", description="Rhyme", prompt="Go")
    edit = call("Write", file_path=str(project / "b.txt"), content="sun")
    agent, llm = built(project, task, edit, "Done.", "Ok.", plugins=[str(root)])
    async with agent:
        await agent.run("Hi", cwd=project)
    assert not touched.exists()
    assert not (project / "b.txt").exists()
    assert str(home / ".claude/agent-memory/art-poet") in str(llm.asked[1]["messages"][0])
