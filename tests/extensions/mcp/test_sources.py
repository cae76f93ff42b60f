"""Where servers come from: the client, the settings, a project; and what is wrong with them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp.server import MCPServer
from mcp.server.mcpserver import Context as McpContext
from pydantic import BaseModel
from tests.extensions.mcp.conftest import SERVERS, Open, Table, Watcher

from crow.core.agent import Agent
from crow.core.errors import ExtensionError
from crow.extensions import McpHook, PersistenceHook
from crow.testing import FakeEditor, ScriptedModel, ScriptedUser, call
from crow.testing.plugin import AgentOf

Raw = Callable[..., Table]


def result(it: Any, index: int = 0) -> dict[str, Any]:
    return json.loads(it.results[index].splitlines()[1])


@pytest.mark.slow
async def test_an_editors_servers_belong_to_its_session(agent_of: AgentOf, tmp_path: Path):
    server = {
        "name": "mine",
        "command": sys.executable,
        "args": [str(SERVERS / "raw.py"), '{"call": "env"}'],
        "env": [{"name": "TOKEN", "value": "${HOME}"}],
    }
    other = {"name": "gone", "type": "http", "url": "http://127.0.0.1:9/mcp", "headers": []}
    agent = agent_of(call("mcp__mine__echo"), "Done.", "Hello.", tools=[], hooks=[McpHook(wait=10)])
    editor = FakeEditor(notices=True)
    async with editor.connected(agent):
        assert editor.greeting is not None
        offered = editor.greeting.agent_capabilities
        assert offered is not None
        assert offered.mcp_capabilities is not None
        assert offered.mcp_capabilities.http
        params = {"cwd": str(tmp_path), "mcpServers": [server, other]}
        opened = (await editor.wire.request("session/new", params))["result"]
        session = agent.sessions[opened["sessionId"]]
        await editor.prompt(session.id, "Go on.")
        [told] = [m["content"] for m in session.messages if m["role"] == "tool"]
        env = json.loads(str(told).splitlines()[1])
        assert env["TOKEN"] == "${HOME}"
        assert env["CWD"] == str(tmp_path)
        plain = await editor.new_session(tmp_path)
        await editor.prompt(plain, "Hi.")
        model = agent.llm
        assert isinstance(model, ScriptedModel)
        assert [len(asked["tools"]) for asked in model.asked] == [1, 1, 0]
        notices = [str(update) for update in editor.updates("notice")]
        assert any("'gone' could not be connected" in text for text in notices)


async def test_servers_in_a_sessions_options_are_used_and_never_stored(
    agent_of: AgentOf, raw: Raw, tmp_path: Path
):
    store = PersistenceHook(db_path=str(tmp_path / "crow.db"))
    servers = [{"name": "s", **raw(), "env": {"KEY": "very-secret"}}]
    agent = agent_of("Hello.", tools=[], hooks=[store, McpHook(wait=10)])
    async with agent:
        session = await agent.new_session(tmp_path, options={"mcp_servers": servers})
        await agent.prompt(session, "Hi.")
        assert list(session.tools) == ["mcp__s__echo"]
    assert b"very-secret" not in (tmp_path / "crow.db").read_bytes()


async def test_a_projects_servers_count_only_where_it_is_given(
    opened: Open, raw: Raw, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("WHICH", "env")
    server = raw(call="env")
    server["env"] = {"A": "${WHICH}", "B": "${NO_SUCH:-fallback}", "C": "${WHICH"}
    servers = {"p": server, "off": {**server, "disabled": True}, "odd": {"command": "${NO_SUCH}"}}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    async with opened({}, "Hello.") as it:
        await it.prompt()
        assert it.tools() == []
    async with opened({}, call("mcp__p__echo"), "Done.", project=tmp_path) as it:
        await it.prompt()
        assert {key: result(it)[key] for key in "ABC"} == {
            "A": "env",
            "B": "fallback",
            "C": "${WHICH",
        }
        assert it.client.notices == [
            "the MCP server 'odd' (project): the environment has no NO_SUCH"
        ]


async def test_a_project_that_is_not_trusted_starts_no_server(raw: Raw, tmp_path: Path):
    from crow.app import build
    from crow.project.trust import distrust, trust

    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"p": raw()}}))
    shown: list[str] = []
    for change in (distrust, trust):
        change(tmp_path)
        async with build(cwd=tmp_path) as agent:
            session = await agent.new_session(tmp_path)
            shown.append((await agent.prompt(session, "/mcp")).text)
    assert shown[0] == "This session has no MCP servers."
    assert shown[1].startswith(f"p (stdio, {sys.executable}, from project): ")


@pytest.mark.parametrize("text", ["{", "[]", '{"mcpServers": 7}', '{"servers": {}}'])
async def test_a_projects_file_that_makes_no_sense_is_named(
    opened: Open, tmp_path: Path, text: str
):
    (tmp_path / ".mcp.json").write_text(text)
    async with opened({}, "Hello.", project=tmp_path) as it:
        assert await it.prompt() == "Hello."
        [notice] = it.client.notices
        assert notice.startswith(f"{tmp_path}/.mcp.json is left out: ")


async def test_of_two_with_one_name_the_users_own_counts(opened: Open, raw: Raw, tmp_path: Path):
    def named(tool: str) -> Table:
        return raw(tools=[tool])

    (tmp_path / ".mcp.json").write_text(
        json.dumps({"mcpServers": {"a": named("project"), "b": named("project"), "c": named("c")}})
    )
    client = Watcher()
    client.mcp_servers = [{"name": "a", **named("client")}]  # type: ignore[attr-defined]
    servers = {"a": named("settings"), "b": named("settings")}
    async with opened(servers, "Hello.", client=client, project=tmp_path) as it:
        await it.prompt()
        assert it.tools() == ["mcp__a__client", "mcp__b__settings", "mcp__c__c"]


@pytest.mark.parametrize(
    "table, why",
    [
        (7, "the MCP server 's' must be a table"),
        ({}, "needs a 'command' or a 'url'"),
        ({"url": ""}, "'url' must be text"),
        ({"command": 7}, "'command' must be text"),
        ({"command": "x", "args": "y"}, "'args' must be a list of texts"),
        ({"command": "x", "env": {"A": None}}, "'env' must be a table of texts"),
        ({"command": "x", "env": 1}, "there must be a table"),
        ({"url": "file:///etc/passwd"}, "'url' must begin with http:// or https://"),
        ({"type": "pigeon", "url": "http://x"}, "there is no type 'pigeon'; there are stdio"),
    ],
)
async def test_a_description_that_makes_no_sense_is_named_and_stops_nobody(
    opened: Open, raw: Raw, table: Any, why: str
):
    async with opened({"s": table, "good": raw()}, "Hello.") as it:
        await it.prompt()
        assert it.tools() == ["mcp__good__echo"]
        [notice] = it.client.notices
        assert why in notice


async def test_a_server_inherits_no_keys_and_runs_in_the_sessions_directory(
    opened: Open, raw: Raw, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SOME_API_KEY", "secret")
    async with opened({"s": raw(call="env")}, call("mcp__s__echo"), "Done.") as it:
        await it.prompt()
        env = result(it)
        assert "SOME_API_KEY" not in env
        assert env["CWD"] == str(tmp_path)
        assert env["PATH"] == os.environ["PATH"]


@pytest.mark.slow
async def test_the_command_lists_servers_and_connects_them_again(
    opened: Open, raw: Raw, tmp_path: Path
):
    flag = tmp_path / "flag"
    program = f"test -e {flag} && exec {sys.executable} {SERVERS / 'raw.py'} '{{}}'"
    late = {"command": "sh", "args": ["-c", program]}
    async with opened({"good": raw(), "late": late}, "One.", "Two.") as it:
        await it.prompt()
        assert (await it.prompt("/mcp")).splitlines() == [
            f"good (stdio, {sys.executable}, from settings): ready",
            "  tools: echo",
            "late (stdio, sh, from settings): failed: Connection closed; it exited with status 1",
        ]
        assert await it.prompt("/mcp reconnect x") == (
            "There is no MCP server 'x'; there are: good, late"
        )
        flag.touch()
        assert (await it.prompt("/mcp reconnect late")).startswith(
            "late (stdio, sh, from settings)"
        )
        await it.prompt()
        assert it.tools() == ["mcp__good__echo", "mcp__late__echo"]
    async with opened({}, "Hello.") as it:
        assert await it.prompt("/mcp") == "This session has no MCP servers."
        await it.prompt()


def test_an_option_that_is_not_there_is_an_error():
    with pytest.raises(ExtensionError, match="server"):
        Agent(tools=[]).use(McpHook, server={})


def test_the_library_is_not_imported_before_a_server_is_there():
    program = """
import asyncio, sys
from crow import Agent
from crow.extensions import McpHook
from crow.testing import ScriptedModel

async def main():
    async with Agent(llm=ScriptedModel("Hello."), hooks=[McpHook()], tools=[]) as agent:
        await agent.run("Hi.")
    print([name for name in sys.modules if name.split(".")[0] in ("mcp", "anyio", "pydantic")])

asyncio.run(main())
"""
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "[]\n"


class Lender:
    """Brings a server of this process along, as an extension does."""

    def __init__(self) -> None:
        server = MCPServer("sums")

        @server.tool()
        async def add(a: int, b: int, ctx: McpContext) -> str:  # pyright: ignore[reportUnusedFunction]
            """Add two numbers."""
            answer = await ctx.elicit("Really?", Sure)
            return str(a + b) if answer.action == "accept" else "no"

        self.mcp_servers = {"sums": server}

    def before_run(self) -> None: ...


class Sure(BaseModel):
    sure: bool = True


def test_a_session_begins_while_the_library_comes_for_another_one(raw: Raw, tmp_path: Path):
    script = """
import asyncio, importlib.abc, json, sys, threading

from crow import Agent
from crow.extensions import McpHook
from crow.testing import ScriptedModel

half, go_on = threading.Event(), threading.Event()


class Slow(importlib.abc.MetaPathFinder):
    # The library as it is found on a slow disk: it stands still in the middle.

    def find_spec(self, name, path=None, target=None):
        if name == "mcp.server.mcpserver":
            half.set()
            go_on.wait(50)


async def main():
    sys.meta_path.insert(0, Slow())
    failed = []
    agent = Agent(ScriptedModel("Yes."), hooks=[McpHook(servers={"it": json.loads(sys.argv[1])})])
    agent.hooks.register("on_error", lambda error: failed.append(error))
    async with agent:
        first = asyncio.create_task(agent.new_session())
        await asyncio.to_thread(half.wait)
        second = asyncio.create_task(agent.new_session())
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.gather(first, second)
    assert failed == [], failed


asyncio.run(main())
"""
    code = [sys.executable, "-c", script, json.dumps(raw(tools=[]))]
    done = subprocess.run(code, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


async def test_a_server_of_this_process_comes_and_goes_with_its_extension(agent_of: AgentOf):
    script = call("mcp__sums__add", a=1, b=2), "Three.", call("mcp__sums__add", a=1, b=2), "Gone."
    agent = agent_of(*script, tools=[], hooks=[McpHook(), Lender()])
    user = ScriptedUser(True)
    async with agent:
        reply = await agent.run("Add", client=user)
        session = reply.session
        assert "3" in str(session.messages[2]["content"])
        assert "in this process" in (await agent.run("/mcp", session=session)).text
        agent.remove("lender")
        await agent.run("Add", session=session)
        assert "there is no tool" in str(session.messages[-2]["content"])
        assert (await agent.run("/mcp", session=session)).text == "This session has no MCP servers."


async def test_a_server_of_this_process_is_given_by_hand_and_its_failure_is_an_answer(
    agent_of: AgentOf,
):
    server = MCPServer("broken")

    @server.tool()
    def fail() -> str:  # pyright: ignore[reportUnusedFunction]
        """Fail."""
        raise OSError("disk on fire")

    script = call("mcp__broken__fail"), "I see."
    agent = agent_of(*script, tools=[], hooks=[McpHook({"broken": server})])
    async with agent:
        reply = await agent.run("Try")
    assert "Error executing tool fail" in str(reply.session.messages[2]["content"])
