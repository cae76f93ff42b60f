"""The whole agent: whatever changes in a session, every request begins with what was sent before."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.extensions.mcp.conftest import SERVERS
from tests.extensions.tools import step

from crow import Agent, Continue, NullClient, tool
from crow.events import Event, Notice
from crow.extensions import DeferredToolsHook
from crow.extensions.deferred_tools import CALL_TOOL
from crow.keys import PROMPT_CACHE
from crow.testing import AgentOf, BuildAgent, call
from crow.testing.model import ScriptedCall


class Watching(NullClient):
    """A client that keeps the notices, and waits for them."""

    def __init__(self) -> None:
        self.notices: list[str] = []
        self._more = asyncio.Event()

    async def update(self, session_id: str, event: Event) -> None:
        if isinstance(event, Notice):
            self.notices.append(event.text)
            self._more.set()

    async def told(self, text: str) -> None:
        """Wait until somebody says this."""
        while not any(text in notice for notice in self.notices):
            self._more.clear()
            await self._more.wait()


def names(asked: Any) -> list[str]:
    return [spec["function"]["name"] for spec in asked["tools"]]


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def checkout(project: Path, branch: str) -> None:
    write(project / ".git" / "HEAD", f"ref: refs/heads/{branch}\n")


def add_skill(project: Path, name: str) -> None:
    text = f"---\nname: {name}\ndescription: Use it for {name}.\n---\nDo it.\n"
    write(project / ".crow" / "skills" / name / "SKILL.md", text)


def configure_late_server(gate: Path) -> None:
    """A server in the user's settings, which is there as soon as the gate is."""
    args = ["-SE", str(SERVERS / "raw.py"), json.dumps({"gate": str(gate)})]
    settings = {
        "mcpServers": {"late": {"command": sys.executable, "args": args}},
        "extensions": {"mcp": {"wait": 0.1}},
        "permissions": {"allow": ["mcp__late", "Bash(true)"]},
    }
    write(Path.home() / ".crow" / "settings.json", json.dumps(settings))


async def turn_the_page(agent: Agent, session: Any, project: Path) -> None:
    """Change all at once that a session may see change."""
    checkout(project, "feature")
    add_skill(project, "second")
    write(project / "AGENTS.md", "Another rule.\n")
    write(
        Path.home() / ".crow" / "agents" / "critic.md",
        "---\nname: critic\ndescription: Finds fault.\n---\nFind fault.\n",
    )
    path = Path.home() / ".crow" / "settings.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps({**settings, "env": {"COLOUR": "blue"}}))
    (project / "more").mkdir()
    (project.parent / "elsewhere").mkdir()
    await agent.run(f"/add-dir {project.parent / 'elsewhere'}", session=session)
    await agent.configure(session, mode="plan")


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the day is another one by the time zone")
async def test_the_whole_agent_keeps_the_prefix_whatever_changes(
    build_agent: BuildAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    project, gate, client = tmp_path / "project", tmp_path / "gate", Watching()
    write(project / "AGENTS.md", "A rule.\n")
    checkout(project, "main")
    add_skill(project, "first")
    configure_late_server(gate)
    monkeypatch.setenv("TZ", "Etc/GMT+12")
    time.tzset()
    try:
        task: Any = {"description": "Look", "prompt": "Look", "subagent_type": "general-purpose"}
        script = (
            *(call("Bash", command="true"), "One."),
            *("Two.", call("Agent", **task), "Found.", "Three."),
            *(call(CALL_TOOL, name="mcp__late__echo", arguments={"x": 1}), "Four."),
        )
        async with build_agent(*script, cwd=project) as agent:
            session = await agent.new_session(project, client=client)
            await agent.run("One", session=session)
            gate.touch()
            await client.told("the MCP server 'late' is there now")
            await turn_the_page(agent, session, project)
            await agent.run("Two", session=session)
            monkeypatch.setenv("TZ", "Pacific/Kiritimati")
            time.tzset()
            await agent.configure(session, mode="default")
            await agent.run("Three", session=session)
            reply = await agent.run("Four", session=session)
        model: Any = agent.llm
        model.verify_prefix()
    finally:
        monkeypatch.undo()
        time.tzset()
    told = "\n".join(str(message.get("content")) for message in model.asked[-1]["messages"][1:])
    for text in (
        "The git branch is feature now.",
        "The session goes on on another day",
        "There are new tools.",
        "mcp__late__echo",
        "second: Use it for second.",
        "The user has added a directory",
    ):
        assert text in told
    main = [asked for asked in model.asked if asked["session_id"] == session.id]
    assert CALL_TOOL in names(main[0])
    assert "mcp__late__echo" not in names(main[-1])
    assert reply.session.messages[-2]["content"] != ""
    assert '{"x": 1}' in str(reply.session.messages[-2]["content"])
    assert PROMPT_CACHE.get(session) is not None
    assert [r.answer for r in session.trace if r.hook == "prompt_cache" and r.answer] == []


# tools that come late


class Bringer:
    """May bring tools, and says so."""

    name = "bringer"

    def __init__(self, *, says: bool = True) -> None:
        self.says = says

    def brings_tools(self, session: object) -> bool:
        return self.says

    def before_run(self) -> None:
        pass


@tool
def later(text: str) -> str:
    """Come late."""
    return f"late {text}"


async def test_a_tool_that_comes_late_is_announced_and_called_by_its_name(agent_of: AgentOf):
    judged: list[Any] = []
    wrapped = call(CALL_TOOL, name="later", arguments={"text": "a"})
    agent = agent_of("One.", wrapped, "Two.", hooks=[Bringer(), DeferredToolsHook()], tools=[step])
    agent.hooks.register("before_tool", lambda call: judged.append((call.name, call.args)))
    session = (await agent.run("Hi")).session
    agent.add_tool(later)
    await agent.run("Go on", session=session)
    model: Any = agent.llm
    model.verify_prefix()
    assert names(model.asked[0]) == ["step", CALL_TOOL]
    announced = model.asked[1]["messages"][-1]["content"]
    assert "There are new tools. Call them with CallTool" in announced
    assert '{"name": "later", "description": "Come late."' in announced
    assert judged == [("later", {"text": "a"})]
    called, answered = session.messages[-3], session.messages[-2]
    assert called["tool_calls"][0]["function"] == {"name": "later", "arguments": '{"text": "a"}'}
    assert answered["content"] == "late a"


@pytest.mark.parametrize("event", ["around_run", "on_stop", "after_turn"])
async def test_a_tool_is_announced_in_the_turn_in_which_it_comes(agent_of: AgentOf, event: str):
    hooks = [Bringer(), DeferredToolsHook()]
    script = ["One.", call("step"), "Two.", *(["Three."] if event == "on_stop" else [])]
    agent = agent_of(*script, hooks=hooks, tools=[step])
    session = (await agent.run("Hi")).session

    async def comes(ctx: Any, call_next: Any) -> Any:
        agent.add_tool(later)
        return await call_next()

    def comes_too(ctx: Any) -> Any:
        if agent.tool("later", session) is None:
            agent.add_tool(later)
            return Continue("go on") if event == "on_stop" else None
        return None

    around = event == "around_run"
    agent.hooks.register(event, comes if around else comes_too, order=1 if around else -1)
    await agent.run("Go on", session=session)
    model: Any = agent.llm
    model.verify_prefix()
    first = {"around_run": 1, "after_turn": 2, "on_stop": 3}[event]
    heard = ["There are new tools" in json.dumps(asked["messages"]) for asked in model.asked]
    assert heard == [number >= first for number in range(len(heard))]
    assert sum("There are new tools" in str(m["content"]) for m in session.messages) == 1


@pytest.mark.parametrize(
    "given, told",
    [
        ({}, "takes the name of another tool, not None"),
        ({"name": 5}, "takes the name of another tool, not 5"),
        ({"name": CALL_TOOL}, f"takes the name of another tool, not '{CALL_TOOL}'"),
        ({"name": "later", "arguments": "{"}, "the arguments for later are not valid JSON"),
        ({"name": "later", "arguments": [1]}, "the arguments for later must be one JSON object"),
        ({"name": "later", "arguments": "[1]"}, "the arguments for later must be one JSON object"),
    ],
)
async def test_the_model_is_told_what_is_wrong_with_a_call_of_an_announced_tool(
    agent_of: AgentOf, given: Any, told: str
):
    script = "One.", call(CALL_TOOL, **given), "Two."
    agent = agent_of(*script, hooks=[Bringer(), DeferredToolsHook()], tools=[step])
    session = (await agent.run("Hi")).session
    agent.add_tool(later)
    await agent.run("Go on", session=session)
    assert told in str(session.messages[-2]["content"])


async def test_a_tool_that_goes_or_changes_stays_in_the_list_and_is_told_of(agent_of: AgentOf):
    agent = agent_of("1", "2", "3", hooks=[Bringer(), DeferredToolsHook()], tools=[step])
    away = agent.add_tool(later)
    session = (await agent.run("Hi")).session
    away()
    await agent.run("Go on", session=session)

    @tool(name="step")
    def other() -> str:
        """Take another step."""
        return "done"

    agent.add_tool(other, replace=True)
    await agent.run("Go on", session=session)
    model: Any = agent.llm
    model.verify_prefix()
    said = [str(asked["messages"][-1]["content"]) for asked in model.asked]
    assert "These tools are not there any more: later" in said[1]
    assert "These tools are described otherwise than before" in said[2]
    assert "Take another step." in said[2]


async def test_after_a_new_beginning_the_list_is_that_of_the_moment(agent_of: AgentOf):
    agent = agent_of("1", "2", hooks=[Bringer(), DeferredToolsHook()], tools=[step])
    session = (await agent.run("Hi")).session
    agent.add_tool(later)
    session.restart([])
    await agent.run("Anew", session=session)
    model: Any = agent.llm
    assert names(model.asked[1]) == ["step", "later", CALL_TOOL]
    assert len(model.asked[1]["messages"]) == 1


async def test_where_nobody_was_to_bring_tools_they_stand_at_the_end(agent_of: AgentOf):
    hooks = [Bringer(says=False), DeferredToolsHook()]
    agent = agent_of("1", "2", hooks=hooks, tools=[step])
    session = (await agent.run("Hi")).session
    agent.add_tool(later)
    await agent.run("Go on", session=session)
    model: Any = agent.llm
    assert [names(asked) for asked in model.asked] == [["step"], ["step", "later"]]
    with pytest.raises(AssertionError, match=r"the tools \['step', 'later'\] were \['step'\]"):
        model.verify_prefix()


@pytest.mark.parametrize(
    "args", [{"tool": "later"}, {"name": "later", "arguments": "{"}, {"name": 3, "arguments": {}}]
)
async def test_a_call_that_names_no_tool_is_answered_with_what_is_wrong(
    args: dict[str, Any], agent_of: AgentOf
):
    hooks = [Bringer(), DeferredToolsHook()]
    agent = agent_of(ScriptedCall(CALL_TOOL, args), "One.", hooks=hooks, tools=[step])
    session = (await agent.run("Hi")).session
    assert CALL_TOOL in str(session.messages[2]["content"])


async def test_the_prefix_of_a_scripted_model_is_verified_message_by_message(agent_of: AgentOf):
    def before_llm_request(messages: list[Any]) -> list[Any]:
        return [{"role": "user", "content": str(len(messages) // 3)}, *messages]

    agent = agent_of("One.", "Two.", "Three.", hooks=[before_llm_request], tools=[])
    model: Any = agent.llm
    session = (await agent.run("Hi")).session
    model.verify_prefix()
    await agent.run("Go on", session=session)
    with pytest.raises(AssertionError, match=r'request 2 .*: message 1 is .*"1"}, it was .*"0"}'):
        model.verify_prefix()
    await agent.run("Go on", session=session)
