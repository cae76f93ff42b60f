"""`crow import`: what other agents are set to, shown before anything is written."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Crow
from tests.cli.screens import Tmux, needs_tmux

from crow.testing.endpoint import Endpoint, answer

RAW = Path(__file__).parents[1] / "extensions/mcp/servers/raw.py"
SECRET = "sk-abcdefgh12345678"
HARMLESS = "correct horse battery"
"""A secret under a name, and of a look, that nobody knows for one."""

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
PLAIN = "{HARMLESS}"

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


async def test_what_codex_has_is_read_where_it_is_and_its_keys_are_nowhere(crow: Crow):
    put(home() / ".codex/config.toml", CODEX)
    put(home() / ".codex/prompts/review.md", "Review $ARGUMENTS")
    ended = await crow("import", "--from", "codex", "--yes", "--json")
    assert ended.status == 0, ended.err
    for secret in (SECRET, HARMLESS):
        assert secret not in ended.out + ended.err + json.dumps(settings())
    fates = {row["what"]: row["fate"] for row in ended.events}
    assert fates == {
        "commands": "read live",
        "MCP server here": "read live",
        "MCP server web": "read live",
        "MCP server keyed": "read live",
        "MCP server off (it is switched off)": "left out",
        "approval_policy": "left out",
        "model": "changed",
    }
    assert settings() == {"model": "openai/gpt-5.4"}


@needs_tmux
@pytest.mark.slow
async def test_a_person_reads_the_table_and_decides(crow: Crow, tmux: Tmux):
    put(home() / ".codex/config.toml", CODEX)
    for key, told in (("n", "nothing is written"), ("y", "written: ")):
        await tmux.start(crow, "import", "--from", "codex")
        screen = await tmux.until("read live  MCP server here", "Write ", "y/N:")
        assert SECRET not in screen
        assert HARMLESS not in screen
        await tmux.keys(key, "Enter")
        await tmux.until(told, "ended: ")
        await tmux.close()
    assert settings() == {"model": "openai/gpt-5.4"}


async def test_a_second_time_changes_nothing_and_what_is_there_stays(crow: Crow):
    put(home() / ".config/opencode/opencode.jsonc", OPENCODE)
    own = {"model": "mine/own"}
    put(home() / ".crow/settings.json", json.dumps(own))
    assert (await crow("import", "--from", "opencode", "--yes")).status == 0
    first = settings()
    assert first["model"] == "mine/own"
    assert first["permissions"] == {"ask": ["Edit"], "deny": ["Bash(git push *)"]}
    ended = await crow("import", "--from", "opencode")
    assert (ended.status, settings()) == (0, first)
    assert "there is nothing to write" in ended.err


async def test_opencodes_json_with_comments_becomes_rules(crow: Crow):
    put(home() / ".config/opencode/opencode.jsonc", OPENCODE)
    ended = await crow("import", "--from", "opencode", "--yes")
    assert ended.status == 0, ended.err
    assert settings() == {
        "model": "anthropic/claude-sonnet-4-5",
        "permissions": {"ask": ["Edit"], "deny": ["Bash(git push *)"]},
    }


async def test_pis_model_is_taken_and_its_keys_are_not(crow: Crow):
    own = home() / ".pi/agent"
    put(own / "settings.json", '{"defaultProvider": "openai", "defaultModel": "gpt-5.4"}')
    put(own / "auth.json", json.dumps({"openai": {"key": SECRET}}))
    put(own / "skills/it/SKILL.md", "---\nname: it\ndescription: Does it.\n---\nDo it.")
    ended = await crow("import", "--from", "pi", "--yes")
    assert ended.status == 0, ended.err
    assert "auth.json" in ended.out
    assert "read live  skills     ~/.pi/agent/skills" in ended.out
    assert settings() == {"model": "openai/gpt-5.4"}


async def test_cursors_rules_and_servers_are_read_live(crow: Crow):
    put(crow.cwd / ".cursor/rules/a.mdc", "---\nalwaysApply: true\n---\nno tabs")
    put(crow.cwd / ".cursor/mcp.json", '{"mcpServers": {"it": {"command": "it"}}}')
    ended = await crow("import", "--from", "cursor")
    assert ended.status == 0, ended.err
    assert "read live  MCP server it  ./.cursor/mcp.json" in ended.out
    assert "read live  rules          ./.cursor/rules" in ended.out


async def test_a_projects_model_waits_for_its_trust(crow: Crow):
    put(crow.cwd / ".codex/config.toml", 'model = "gpt-5.4"\n[mcp_servers.it]\ncommand = "it"\n')
    ended = await crow("import", "--from", "codex", "--yes")
    assert "crow trust" in ended.err
    assert not (home() / ".crow/settings.json").exists()
    assert json.loads((crow.cwd / ".crow/settings.local.json").read_text("utf-8")) == {
        "model": "openai/gpt-5.4"
    }
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


async def test_what_is_left_of_claude_codes_settings_is_named_with_what_to_do_instead(crow: Crow):
    own = {"spinnerTipsEnabled": False, "theme": "dark", "model": "opus", "env": {"A": "b"}}
    put(home() / ".claude/settings.json", json.dumps(own))
    put(crow.cwd / ".claude/settings.json", json.dumps({"newest": 1}))
    ended = await crow("import", "--from", "claude", "--json")
    assert ended.status == 0
    left = [row for row in ended.events if row["fate"] == "left out"]
    assert [(row["file"], row["why"].partition(": ")[0]) for row in left] == [
        ("~/.claude/settings.json", "spinnerTipsEnabled, theme"),
        ("./.claude/settings.json", "newest"),
        ("~/.claude/settings.json", "model"),
    ]
    assert "docs/terminal.md" in left[0]["why"]


async def test_plugins_of_claude_code_are_in_the_table(crow: Crow):
    root = home() / ".claude/plugins/cache/market/guard/1.0"
    put(root / ".claude-plugin/plugin.json", '{"name": "guard"}')
    known = {"guard@market": [{"scope": "user", "installPath": str(root)}]}
    put(root.parents[3] / "installed_plugins.json", json.dumps({"version": 2, "plugins": known}))
    enabled = {"guard@market": True, "gone@market": True, "off@market": False}
    put(home() / ".claude/settings.json", json.dumps({"enabledPlugins": enabled}))
    ended = await crow("import", "--from", "claude", "--json")
    plugins = [row for row in ended.events if row["what"].startswith("plugin")]
    assert [(row["what"], row["fate"], row["file"]) for row in plugins] == [
        ("plugin guard@market", "read live", "~/.claude/plugins/cache/market/guard/1.0"),
        ("plugin gone@market", "left out", "~/.claude/settings.json"),
    ]
