"""`crow import`: what other agents are set to, shown before anything is written."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Crow

from crow.testing.endpoint import Endpoint, answer

RAW = Path(__file__).parents[1] / "extensions/mcp/servers/raw.py"
SECRET = "sk-abcdefgh12345678"

CODEX = f"""
model = "gpt-5.4"
approval_policy = "never"

[mcp_servers.here]
command = {json.dumps(sys.executable)}
args = ["-SE", {json.dumps(str(RAW))}, "{{}}"]
startup_timeout_sec = 20
disabled_tools = ["burn"]

[mcp_servers.here.env]
API_KEY = "{SECRET}"
PLAIN = "x"

[mcp_servers.web]
url = "https://mcp.example.com/mcp"
bearer_token_env_var = "WEB_TOKEN"
http_headers = {{ X-Team = "{SECRET}" }}

[mcp_servers.keyed]
command = "npx"
args = ["server", "--api-key", "{SECRET}"]

[mcp_servers.off]
command = "npx"
enabled = false
"""

OPENCODE = """{
  // what opencode writes
  "model": "anthropic/claude-sonnet-4-5",
  "mcp": {
    "near": { "type": "local", "command": ["npx", "-y", "thing"], "environment": { "K": "v" } },
    "far": { "type": "remote", "url": "https://example.com/mcp", "headers": { "A": "{env:A}" } },
  },
  "permission": { "edit": "ask", "bash": { "*": "ask", "git push *": "deny" } },
}"""


def home() -> Path:
    return Path.home()


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def settings() -> dict[str, Any]:
    return json.loads((home() / ".crow/settings.json").read_text("utf-8"))


async def test_nothing_is_written_before_somebody_has_said_yes(crow: Crow):
    put(home() / ".codex/config.toml", CODEX)
    for options, status in (([], 2), (["--dry-run"], 0)):
        ended = await crow("import", "--from", "codex", *options)
        assert ended.status == status
        assert "MCP server here" in ended.out
        assert not (home() / ".crow/settings.json").exists()


async def test_what_codex_has_is_taken_without_its_keys(crow: Crow):
    put(home() / ".codex/config.toml", CODEX)
    put(home() / ".codex/prompts/review.md", "Review $ARGUMENTS")
    ended = await crow("import", "--from", "codex", "--yes", "--json")
    assert ended.status == 0, ended.err
    assert SECRET not in ended.out + ended.err + json.dumps(settings())
    fates = {row["what"]: row["fate"] for row in ended.events}
    assert fates == {
        "MCP server here": "changed",
        "tool burn": "changed",
        "MCP server web": "changed",
        "MCP server keyed": "left out",
        "MCP server off": "left out",
        "model": "changed",
        "approval_policy": "left out",
        "commands": "taken",
    }
    told = settings()
    assert told["model"] == "openai/gpt-5.4"
    assert told["permissions"] == {"deny": ["mcp__here__burn"]}
    assert told["mcpServers"]["here"]["env"] == {"API_KEY": "${API_KEY}", "PLAIN": "x"}
    assert told["mcpServers"]["web"]["headers"] == {
        "X-Team": "${WEB_X_TEAM}",
        "Authorization": "Bearer ${WEB_TOKEN}",
    }


async def test_a_second_time_changes_nothing_and_what_is_there_stays(crow: Crow):
    put(home() / ".codex/config.toml", CODEX)
    own = {"model": "mine/own", "mcpServers": {"here": {"command": "mine"}}}
    put(home() / ".crow/settings.json", json.dumps(own))
    assert (await crow("import", "--from", "codex", "--yes")).status == 0
    first = settings()
    assert first["model"] == "mine/own"
    assert first["mcpServers"]["here"] == {"command": "mine"}
    assert "web" in first["mcpServers"]
    ended = await crow("import", "--from", "codex")
    assert (ended.status, settings()) == (0, first)
    assert "there is nothing to write" in ended.err


@pytest.mark.slow
async def test_what_was_imported_is_there_in_the_first_request(crow: Crow, endpoint: Endpoint):
    put(home() / ".codex/config.toml", CODEX.partition("[mcp_servers.web]")[0])
    put(home() / ".codex/prompts/review.md", "Look at $ARGUMENTS with care.")
    await crow("import", "--from", "codex", "--yes")
    endpoint.play(answer("Done."))
    crow.use(endpoint)
    ended = await crow("run", "/review it", API_KEY="k")
    assert ended.status == 0, ended.err
    body = endpoint.requests[0].body
    assert "mcp__here__echo" in [tool["function"]["name"] for tool in body["tools"]]
    assert "Look at it with care." in json.dumps(body["messages"])


async def test_opencodes_json_with_comments_becomes_servers_and_rules(crow: Crow):
    put(home() / ".config/opencode/opencode.jsonc", OPENCODE)
    ended = await crow("import", "--from", "opencode", "--yes")
    assert ended.status == 0, ended.err
    assert settings() == {
        "mcpServers": {
            "near": {"command": "npx", "args": ["-y", "thing"], "env": {"K": "v"}},
            "far": {
                "type": "http",
                "url": "https://example.com/mcp",
                "headers": {"A": "${A:-}"},
            },
        },
        "model": "anthropic/claude-sonnet-4-5",
        "permissions": {"ask": ["Edit"], "deny": ["Bash(git push *)"]},
    }


async def test_pis_model_and_folders_are_taken_and_its_keys_are_not(crow: Crow):
    own = home() / ".pi/agent"
    put(own / "settings.json", '{"defaultProvider": "openai", "defaultModel": "gpt-5.4"}')
    put(own / "auth.json", json.dumps({"openai": {"key": SECRET}}))
    put(own / "skills/it/SKILL.md", "---\nname: it\ndescription: Does it.\n---\nDo it.")
    ended = await crow("import", "--from", "pi", "--yes")
    assert ended.status == 0, ended.err
    assert "auth.json" in ended.out
    assert settings() == {
        "model": "openai/gpt-5.4",
        "extensions": {"skills": {"paths": [str(own / "skills")]}},
    }


async def test_a_projects_servers_wait_for_its_trust(crow: Crow):
    put(crow.cwd / ".codex/config.toml", '[mcp_servers.theirs]\ncommand = "their-server"\n')
    ended = await crow("import", "--from", "codex", "--yes")
    assert "crow trust" in ended.err
    assert not (home() / ".crow/settings.json").exists()
    listed = await crow("mcp", "list")
    assert "untrusted" in listed.out


@pytest.mark.parametrize("agent", ["codex", "opencode", "pi", "claude"])
async def test_a_broken_file_is_one_line(crow: Crow, agent: str):
    for name in (".codex/config.toml", ".pi/agent/settings.json", ".claude.json"):
        put(home() / name, "{ broken")
    put(home() / ".config/opencode/opencode.json", "{ broken")
    ended = await crow("import", "--from", agent, "--yes")
    assert ended.status == 0
    [line] = ended.out.splitlines()
    assert "it cannot be read" in line


@pytest.mark.slow
async def test_claude_codes_own_servers_are_there_without_an_import(crow: Crow, endpoint: Endpoint):
    def server(name: str) -> dict[str, Any]:
        spec = json.dumps({"tools": [name]})
        return {"type": "stdio", "command": sys.executable, "args": ["-SE", str(RAW), spec]}

    told = {
        "mcpServers": {"both": server("user"), "off": server("off"), "all": server("all")},
        "projects": {
            str(crow.cwd): {
                "mcpServers": {"both": server("local")},
                "disabledMcpServers": ["off"],
            },
            "/elsewhere": {"mcpServers": {"elsewhere": server("no")}},
        },
    }
    put(home() / ".claude.json", json.dumps(told))
    before = (home() / ".claude.json").read_bytes()
    listed = await crow("mcp", "list", "--json")
    rows = {row["name"]: (row["state"], row["source"]) for row in listed.events}
    assert rows == {"both": ("ready", "~/.claude.json"), "all": ("ready", "~/.claude.json")}
    endpoint.play(answer("Done."))
    crow.use(endpoint)
    assert (await crow("run", "Go on.")).status == 0
    names = [tool["function"]["name"] for tool in endpoint.requests[0].body["tools"]]
    found = {name for name in names if name.startswith("mcp__")}
    assert found == {"mcp__both__local", "mcp__all__all"}
    assert (home() / ".claude.json").read_bytes() == before
