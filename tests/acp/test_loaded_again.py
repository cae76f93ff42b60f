"""A session that is open is loaded once more: what the client names then holds from then on."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from crow import Agent
from crow.extensions import McpHook
from crow.extensions.persistence import PersistenceHook
from crow.testing import FakeEditor, ScriptedModel

SERVER = Path(__file__).parents[1] / "extensions/mcp/servers/raw.py"


def server(name: str, tool: str) -> dict[str, Any]:
    args = ["-SE", str(SERVER), json.dumps({"tools": [tool]})]
    return {"name": name, "command": sys.executable, "args": args, "env": []}


def offered(asked: Any) -> list[str]:
    """The tools of MCP servers that a model was told of."""
    names = [tool["function"]["name"] for tool in asked["tools"]]
    return [name for name in names if name.startswith("mcp__")]


@pytest.mark.slow
async def test_other_servers_replace_those_of_an_open_session(tmp_path: Path) -> None:
    model = ScriptedModel("One.", "Same.", "Two.", "None.")
    hooks = [PersistenceHook(tmp_path / "db"), McpHook(wait=30)]
    editor = FakeEditor()
    async with editor.connected(Agent(llm=model, hooks=hooks)):
        params: dict[str, Any] = {"cwd": str(tmp_path), "mcpServers": [server("one", "first")]}
        opened = await editor.wire.request("session/new", params)
        session = params["sessionId"] = opened["result"]["sessionId"]
        await editor.prompt(session, "Hi")
        for servers in ([server("one", "first")], [server("two", "second")], []):
            params["mcpServers"] = servers
            assert "result" in await editor.wire.request("session/load", params)
            await editor.prompt(session, "Hi")
    assert [offered(asked) for asked in model.asked] == [
        ["mcp__one__first"],
        ["mcp__one__first"],
        ["mcp__two__second"],
        [],
    ]


async def test_other_directories_replace_those_of_an_open_session(tmp_path: Path) -> None:
    seen: list[tuple[str, ...]] = []

    def before_run(ctx: Any) -> None:
        seen.append(ctx.session.directories)

    hooks = [PersistenceHook(tmp_path / "db"), before_run]
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel("One.", "Two."), hooks=hooks)):
        session = await editor.new_session(tmp_path)
        await editor.prompt(session, "Hi")
        await editor.connection.resume_session(
            session, str(tmp_path), additional_directories=[str(tmp_path / "other")]
        )
        await editor.prompt(session, "Hi")
    assert seen == [(), (str(tmp_path / "other"),)]
