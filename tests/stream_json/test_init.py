"""The first message of a turn: what there is in a session, as programs read it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Crow, crow, endpoint, forks, project

from crow.testing.endpoint import Endpoint, answer

__all__ = ["crow", "endpoint", "forks", "project"]

STREAM = ("-p", "--output-format", "stream-json", "--verbose")
SERVER = """
from mcp.server import MCPServer

server = MCPServer("notes")

@server.tool()
def note(text: str) -> str:
    "Write it down."
    return text

server.run()
"""


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """A plugin with an agent and a skill."""
    root = tmp_path / "helper"
    write(root / ".claude-plugin" / "plugin.json", '{"name": "helper", "version": "1.2.0"}')
    write(root / "agents" / "critic.md", "---\nname: critic\ndescription: Judges\n---\nJudge.")
    write(root / "skills" / "tidy" / "SKILL.md", "---\nname: tidy\ndescription: Tidies\n---\nTidy.")
    return root


def write(path: Path, text: str) -> None:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def first(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The message that says what there is, which comes before all others."""
    assert (events[0]["type"], events[0]["subtype"]) == ("system", "init")
    return events[0]


async def test_it_names_agents_skills_and_plugins(
    crow: Crow, endpoint: Endpoint, plugin: Path
) -> None:
    endpoint.play(answer("Hello."))
    home = Path.home() / ".claude"
    write(home / "agents" / "scout.md", "---\nname: scout\ndescription: Looks\n---\nLook.")
    write(home / "skills" / "song" / "SKILL.md", "---\nname: song\ndescription: Sings\n---\nSing.")
    ended = await crow(*STREAM, "hi", "--plugin-dir", str(plugin))
    told = first(ended.events)
    assert {"scout", "helper:critic", "general-purpose"} <= {*told["agents"]}
    assert {"song", "helper:tidy"} <= {*told["skills"]} <= {*told["slash_commands"]}
    assert told["plugins"] == [{"name": "helper", "path": str(plugin), "version": "1.2.0"}]
    assert (told["permissionMode"], told["output_style"]) == ("default", "default")


@pytest.mark.slow
async def test_servers_are_there_or_have_failed_before_it(
    crow: Crow, endpoint: Endpoint, tmp_path: Path
) -> None:
    endpoint.play(answer("Hello."))
    program = tmp_path / "server.py"
    write(program, SERVER)
    servers = {
        "notes": {"command": sys.executable, "args": [str(program)]},
        "gone": {"command": str(tmp_path / "nothing")},
        "odd": {"type": "carrier pigeon"},
    }
    ended = await crow(*STREAM, "hi", "--mcp-config", json.dumps({"mcpServers": servers}))
    told = first(ended.events)
    status = {each["name"]: each["status"] for each in told["mcp_servers"]}
    assert status == {"notes": "connected", "gone": "failed", "odd": "failed"}
    assert "mcp__notes__note" in told["tools"]


@pytest.mark.parametrize(
    ("options", "there"),
    [
        (("--tools", "Read"), ["Read"]),
        (("--agent", "scout"), ["Read", "Skill"]),
        (("--disable-slash-commands", "--tools", ""), []),
    ],
)
async def test_tools_are_those_that_the_model_is_lent(
    crow: Crow, endpoint: Endpoint, options: tuple[str, ...], there: list[str]
) -> None:
    endpoint.play(answer("Hello."))
    home = Path.home() / ".claude"
    scout = "---\nname: scout\ndescription: Looks\ntools: Read\n---\nLook."
    write(home / "agents" / "scout.md", scout)
    write(home / "skills" / "song" / "SKILL.md", "---\nname: song\ndescription: Sings\n---\nSing.")
    ended = await crow(*STREAM, *options, "--", "hi")
    (request,) = endpoint.requests
    sent = [each["function"]["name"] for each in request.body.get("tools", ())]
    assert sorted(first(ended.events)["tools"]) == sorted(sent)
    assert sorted({*sent} - {"Skill"}) == sorted({*there} - {"Skill"})


async def test_it_says_where_the_key_is_from(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(answer("Hello."), answer("Hello."))
    other = await crow(*STREAM, "hi")
    crow.env.pop("CROW_API_KEY")
    helper = json.dumps({"apiKeyHelper": "echo k"})
    ours = await crow(*STREAM, "hi", "--settings", helper)
    sources = [first(each.events)["apiKeySource"] for each in (other, ours)]
    assert sources == ["none", "apiKeyHelper"]
