"""What people have for Codex, opencode, pi and Cursor is there at the first start."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Crow, calls

from crow import build
from crow.project.trust import trust
from crow.testing import ScriptedModel
from crow.testing.endpoint import Endpoint, answer

RAW = Path(__file__).parents[1] / "extensions/mcp/servers/raw.py"
TOOLS = json.dumps(json.dumps({"tools": ["hail", "burn"]}))
COMMAND = f'command = {json.dumps(sys.executable)}\nargs = ["-SE", {json.dumps(str(RAW))}, {TOOLS}]'
SERVER = [sys.executable, "-SE", str(RAW), '{"tools": ["hail"]}']
AGENT = "---\ndescription: {}\nmode: {}\ntools:\n  write: false\n---\nYou do.\n"
SKILL = "---\nname: {0}\ndescription: What {0} is for.\n---\nDo {0}.\n"


ROLE = '[agents.explorer]\ndescription = "Explores."\nconfig_file = "agents/explore.toml"\n'


def put(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def of_everybody(home: Path) -> None:
    """What four agents keep in a home, without servers."""
    reviewer = 'name = "reviewer"\ndescription = "Reviews."\ndeveloper_instructions = "Look."\n'
    inline = {
        "command": {"inline": {"template": "Inline of $ARGUMENTS"}},
        "agent": {"inliner": {"description": "Is inline.", "prompt": "You are."}},
        "instructions": ["~/more.md"],
    }
    put(
        home,
        {
            ".codex/AGENTS.md": "codex says",
            ".codex/prompts/draft.md": "Draft $FILE for $1 of $ARGUMENTS; $HOME.",
            ".codex/skills/deep/down/SKILL.md": SKILL.format("down"),
            ".codex/skills/.system/hidden/SKILL.md": SKILL.format("hidden"),
            ".codex/agents/reviewer.toml": reviewer,
            ".codex/config.toml": f'approval_policy = "never"\n{ROLE}',
            ".codex/agents/explore.toml": 'developer_instructions = "Explore."\n',
            ".config/opencode/AGENTS.md": "opencode says",
            ".config/opencode/opencode.jsonc": f"// mine\n{json.dumps(inline)}",
            ".config/opencode/agent/doer.md": AGENT.format("Does.", "subagent"),
            ".config/opencode/agent/main.md": AGENT.format("Is chosen.", "primary"),
            ".config/opencode/command/git/fix.md": "---\nmodel: x/y\n---\nFix $1",
            "more.md": "more is said",
            ".pi/agent/AGENTS.md": "codex says",
            ".pi/agent/APPEND_SYSTEM.md": "pi adds",
            ".pi/agent/prompts/cut.md": "Cut $1, then ${@:2}, ${@:2:1} of $@; ${4:-no more}, ${1:-x}.",
            ".pi/agent/skills/pick/SKILL.md": SKILL.format("pick"),
            ".cursor/commands/lint.md": "Lint it.",
            ".cursor/agents/critic.md": "---\ndescription: Is strict.\nreadonly: true\n---\nBe so.",
        },
    )


async def asked(crow: Crow, endpoint: Endpoint, prompt: str) -> dict[str, Any]:
    """The first request of a run."""
    before = len(endpoint.requests)
    endpoint.play(answer("Done."))
    crow.use(endpoint)
    ended = await crow("run", prompt)
    assert ended.status == 0, ended.err
    return endpoint.requests[before].body


async def test_instructions_skills_and_agents_of_others_are_there_without_an_import(
    crow: Crow, home: Path, endpoint: Endpoint
) -> None:
    of_everybody(home)
    body = await asked(crow, endpoint, "Go")
    system, tools = body["messages"][0]["content"], json.dumps(body["tools"])
    for text in ("opencode says", "more is said", "pi adds", "- down: What", "- pick: What"):
        assert text in system
    assert system.count("codex says") == 1  # pi has a copy of it
    assert f'file="{home}/.codex/AGENTS.md"' in system
    assert "hidden" not in system
    for name in ("reviewer", "explorer", "doer", "inliner", "critic"):
        assert f"- {name}" in tools
    assert "Is chosen." not in tools


@pytest.mark.parametrize(
    ("typed", "prompt"),
    [
        ("/draft FILE=a.txt me", "Draft a.txt for FILE=a.txt of FILE=a.txt me; $HOME."),
        ("/inline all", "Inline of all"),
        ("/git:fix this", "Fix this"),
        ("/cut 'a b' c d", "Cut a b, then c d, c of 'a b' c d; no more, a b."),
        ("/lint", "Lint it."),
        ("/pick it", "Do what the skill pick says."),
    ],
)
async def test_commands_of_others_mean_what_they_mean_there(
    crow: Crow, home: Path, endpoint: Endpoint, typed: str, prompt: str
) -> None:
    of_everybody(home)
    body = await asked(crow, endpoint, typed)
    assert body["messages"][1]["content"].startswith(prompt)
    assert body["model"] == "scripted"


async def test_a_sub_agent_of_another_has_the_tools_that_it_has_there(
    crow: Crow, home: Path, endpoint: Endpoint
) -> None:
    of_everybody(home)
    wanted = {"subagent_type": "critic", "description": "d", "prompt": "p"}
    endpoint.play(calls(("Agent", wanted)))
    endpoint.play(answer("Bad."), answer("Done."))
    crow.use(endpoint)
    assert (await crow("run", "Go")).status == 0
    names = [tool["function"]["name"] for tool in endpoint.requests[1].body["tools"]]
    assert "Read" in names
    assert not {"Edit", "Write"} & {*names}


@pytest.mark.slow
async def test_servers_of_others_are_there_with_the_tools_that_are_switched_on(
    crow: Crow, home: Path, endpoint: Endpoint
) -> None:
    mcp = {"near": {"type": "local", "command": SERVER}, "off": {"enabled": False, "url": "x"}}
    config = f'[mcp_servers.here]\n{COMMAND}\ndisabled_tools = ["burn"]\n'
    cursor = {"mcpServers": {"cur": {"command": SERVER[0], "args": SERVER[1:]}}}
    put(
        home,
        {
            ".codex/config.toml": config,
            ".config/opencode/opencode.json": json.dumps({"mcp": mcp}),
            ".cursor/mcp.json": json.dumps(cursor),
        },
    )
    body = await asked(crow, endpoint, "Go")
    names = {tool["function"]["name"] for tool in body["tools"]}
    found = {name for name in names if name.startswith("mcp__")}
    assert found == {"mcp__here__hail", "mcp__near__hail", "mcp__cur__hail"}
    listed = (await crow("mcp", "list")).out.splitlines()
    files = {line.split()[0]: line.split()[-1] for line in listed}
    assert files == {
        "here": "~/.codex/config.toml",
        "near": "~/.config/opencode/opencode.json",
        "cur": "~/.cursor/mcp.json",
    }


FOREIGN = {
    ".codex/config.toml": '[mcp_servers.theirs]\ncommand = "./server.py"\n',
    ".opencode/command/deploy.md": "Deploy !`echo it`",
    ".opencode/agents/boss.md": AGENT.format("Is theirs.", "all"),
    ".cursor/mcp.json": '{"mcpServers": {"cur": {"command": "${workspaceFolder}/cur.sh"}}}',
    "opencode.jsonc": '{/* ours */ "mcp": {"oc": {"type": "local", "command": ["sh", "oc.sh"]}}}',
    "server.py": "import time",
    "cur.sh": "exit",
    "oc.sh": "exit",
}


async def test_what_a_project_brings_waits_for_its_users_trust(
    crow: Crow, project: Path, endpoint: Endpoint
) -> None:
    put(project, FOREIGN)
    endpoint.play(answer("Done."))
    crow.use(endpoint)
    told = await crow("run", "Go")
    assert "the project is not trusted, so these are left out: " in told.err
    assert "boss" not in json.dumps(endpoint.requests[0].body["tools"])
    states = {row["name"]: row["state"] for row in (await crow("mcp", "list", "--json")).events}
    assert states == dict.fromkeys(("theirs", "cur", "oc"), "untrusted")
    shown = (await crow("trust", "--yes")).out
    for line in (
        "MCP server theirs: ./server.py",
        f"MCP server cur: {project}/cur.sh",
        "MCP server oc: sh oc.sh",
        "command: .opencode/command/deploy.md",
        "sub-agent: .opencode/agents/boss.md",
        *("script: server.py", "script: cur.sh", "script: oc.sh"),
    ):
        assert f"  {line}\n" in shown
    states = {row["name"]: row["state"] for row in (await crow("mcp", "list", "--json")).events}
    assert states == dict.fromkeys(("theirs", "cur", "oc"), "failed")
    put(project, {"oc.sh": "exit 1"})
    states = {row["name"]: row["state"] for row in (await crow("mcp", "list", "--json")).events}
    assert states == dict.fromkeys(("theirs", "cur", "oc"), "untrusted")


@pytest.mark.slow
async def test_a_project_switches_a_server_of_its_users_off(
    crow: Crow, home: Path, project: Path
) -> None:
    def servers(**told: Any) -> str:
        return json.dumps({"mcpServers": {"it": told}})

    keyed = {"command": "it", "env": {"KEY": "!pass show it"}}
    mine = {"mcpServers": {"it": {"command": "it"}, "keyed": keyed}}
    put(home, {".pi/agent/mcp.json": json.dumps(mine)})
    put(project, {".codex/config.toml": '[mcp_servers.mine]\ncommand = "m"\nenabled = false\n'})
    listed = (await crow("mcp", "list", "--json")).events
    assert [(row["name"], row["source"]) for row in listed] == [("it", "~/.pi/agent/mcp.json")]
    put(project, {".pi/mcp.json": servers(enabled=False)})
    listed = (await crow("mcp", "list", "--json")).events
    assert [row["name"] for row in listed if row["state"] != "untrusted"] == ["it"]
    await crow("trust", "--yes")
    assert (await crow("mcp", "list", "--json")).out == ""
    put(project, {".pi/mcp.json": servers(enabled=True)})
    await crow("trust", "--yes")
    (row,) = (await crow("mcp", "list", "--json")).events
    assert (row["name"], row["place"]) == ("it", "it")
    assert "a command gives one of its values" in (await crow("config", "--all")).out


async def test_instructions_that_a_project_names_are_in_it(
    crow: Crow, project: Path, home: Path, endpoint: Endpoint
) -> None:
    put(home, {"secret.md": "nobody may know"})
    named = ["docs/*.md", "../../home/secret.md", str(home / "secret.md"), "https://x.example/a.md"]
    put(project, {"opencode.json": json.dumps({"instructions": named}), "docs/a.md": "we say"})
    put(project, {".pi/APPEND_SYSTEM.md": "it adds @~/secret.md"})
    (project / "docs/link.md").symlink_to(home / "secret.md")
    body = await asked(crow, endpoint, "Go")
    system = body["messages"][0]["content"]
    assert "we say" in system
    assert "it adds" in system
    assert "nobody may know" not in system


async def test_a_setting_turns_each_of_them_off(
    crow: Crow, home: Path, project: Path, endpoint: Endpoint
) -> None:
    of_everybody(home)
    put(project, {".opencode/command/deploy.md": "Deploy"})
    off = {"codex": False, "opencode": False, "pi": False, "cursor": False}
    put(home, {".crow/settings.json": json.dumps({"other_agents": off})})
    endpoint.play(answer("Done."))
    crow.use(endpoint)
    ended = await crow("run", "Go")
    assert (ended.status, ended.err) == (0, "")
    whole = json.dumps(endpoint.requests[0].body)
    for text in ("codex says", "opencode says", "pi adds", "reviewer", "doer", "critic", "pick"):
        assert text not in whole


async def test_a_person_reads_once_what_is_used_and_what_is_not(
    crow: Crow, home: Path, endpoint: Endpoint
) -> None:
    of_everybody(home)
    put(home, {".codex/auth.json": '{"OPENAI_API_KEY": "sk-abcdefgh12345678"}'})
    crow.use(endpoint)
    endpoint.play(*[answer("Done.") for _ in range(3)])
    first = (await crow("run", "Go")).err.splitlines()
    assert first[0] == (
        "codex: read where it is: instructions, commands (1), skills, sub-agents (2); "
        "not used: approval_policy, auth.json (crow import --from codex says more)"
    )
    assert [line.split(":")[0] for line in first] == ["codex", "opencode", "pi", "cursor"]
    assert (await crow("run", "Go")).err == ""
    put(home, {".pi/agent/SYSTEM.md": "Be pi."})
    (again,) = (await crow("run", "Go")).err.splitlines()
    assert again.startswith("pi: ")
    assert "not used: SYSTEM.md" in again


async def test_each_thing_is_listed_with_the_file_that_it_came_from(crow: Crow, home: Path) -> None:
    of_everybody(home)
    rows = [row for row in (await crow("config", "--json")).events if "from " in row["name"]]
    found = {(row["name"], row["value"]): row["source"] for row in rows}
    assert found["from codex", "sub-agent reviewer"] == str(home / ".codex/agents/reviewer.toml")
    assert found["from opencode", "command inline"] == str(home / ".config/opencode/opencode.jsonc")
    shown = (await crow("config")).out
    assert f"commands  {home}/.cursor/commands" in shown
    assert "approval_policy" not in shown
    assert "approval_policy" in (await crow("config", "--all")).out


async def test_what_is_broken_of_anothers_stops_nobody(
    crow: Crow, home: Path, project: Path, endpoint: Endpoint
) -> None:
    broken = "{ broken ["
    put(
        home,
        {
            ".codex/config.toml": broken,
            ".codex/agents/a.toml": broken,
            ".config/opencode/opencode.json": broken,
            ".config/opencode/agent/b.md": "no front matter",
            ".cursor/mcp.json": '{"mcpServers": {"odd": 3, "worse": {"command": 5}}}',
            ".pi/agent/settings.json": broken,
        },
    )
    (project / ".codex").mkdir()
    os.mkfifo(project / ".codex/config.toml")
    (project / ".opencode/agent").mkdir(parents=True)
    os.mkfifo(project / ".opencode/agent/pipe.md")
    put(project, {"opencode.jsonc": "[" * 100_000, ".cursor/mcp.json": " " * 2_000_000})
    endpoint.play(answer("Done."))
    crow.use(endpoint)
    ended = await crow("run", "Go")
    assert (ended.status, ended.out) == (0, "Done.\n")
    assert "Traceback" not in ended.err


async def test_sessions_of_one_process_see_what_their_own_project_brings(
    home: Path, tmp_path: Path
) -> None:
    folders = tmp_path / "one", tmp_path / "two"
    for folder in folders:
        (folder / ".git").mkdir(parents=True)
        told = {"instructions": ["rule.md"], "command": {f"in-{folder.name}": {"template": "Go"}}}
        put(folder, {"opencode.json": json.dumps(told), "rule.md": f"rule of {folder.name}"})
        put(folder, {f".opencode/command/to-{folder.name}.md": "Go"})
        put(folder, {f".pi/skills/{folder.name}/SKILL.md": SKILL.format(folder.name)})
        trust(folder)
    put(home, {"README.md": "home"})
    model = ScriptedModel("Done.", "Done.")
    async with build(cwd=folders[0], model=model) as agent:
        for folder, other in (folders, folders[::-1]):
            session = await agent.new_session(folder)
            names = {*agent.commands_of(session)}
            assert {f"to-{folder.name}", folder.name} <= names
            assert names.isdisjoint({f"to-{other.name}", f"in-{other.name}", other.name})
            await agent.run("Go", session=session)
            system = str(model.asked[-1]["messages"][0]["content"])
            assert f"rule of {folder.name}" in system
            assert f"rule of {other.name}" not in system
