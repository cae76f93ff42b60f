"""Hooks that plugins bring: where they are, what they were configured with, and what runs twice."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.extensions.shell_hooks.conftest import Stage, verdict

from crow import Agent, tool
from crow.app import build, startup_warnings
from crow.extensions import ShellHooks
from crow.project import HookFile
from crow.project.plugins import read
from crow.project.trust import trust
from crow.settings import load
from crow.testing import ScriptedModel, call
from crow.testing.model import Line

WRITE = call("Write", file_path="made.txt", content="x")


def plugin(
    folder: Path, *handlers: Any, event: str = "PreToolUse", options: Any = None, **manifest: Any
) -> Path:
    """A plugin in a folder, with these handlers in its ``hooks/hooks.json``."""
    (folder / "hooks").mkdir(parents=True)
    table = {"description": "Tries it", "hooks": {event: [{"hooks": list(handlers)}]}}
    (folder / "hooks/hooks.json").write_text(json.dumps(table))
    (folder / ".claude-plugin").mkdir()
    written = {"name": folder.name, "userConfig": options or {}, **manifest}
    (folder / ".claude-plugin/plugin.json").write_text(json.dumps(written))
    return folder


def hooks_of(stage: Stage, *roots: Path, configured: Any = None) -> ShellHooks:
    """The extension with the hooks of these plugins."""
    plugins = [read(root, configured=configured or {}, data=stage.state / "data") for root in roots]
    files = [HookFile(str(path), table, plugin=p) for p in plugins for path, table in p.hooks]
    return ShellHooks(files, directory=stage.state, project=str(stage.cwd))


def command(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "command", "command": text, **more}


async def test_a_plugins_program_finds_its_folders_and_its_options(stage: Stage, tmp_path: Path):
    out = tmp_path / "out"
    show = 'echo "$CLAUDE_PLUGIN_ROOT" "$CLAUDE_PLUGIN_OPTION_DEPTH" "$CLAUDE_PLUGIN_OPTION_FAST"'
    root = plugin(
        tmp_path / "my plugin",
        command(f"{show} > {out}; touch ${{CLAUDE_PLUGIN_DATA}}/kept; cat $0 >> {out}"),
        command(f"sh ${{CLAUDE_PLUGIN_ROOT}}/x.sh > {out}.2"),
        options={"depth": {"type": "number", "default": 2}, "fast": {"default": True}},
    )
    (root / "x.sh").write_text("echo never")  # the blank splits it, as it would in any shell
    hooks = hooks_of(stage, root, configured={"my plugin@inline": {"options": {"depth": 3}}})
    await stage.run(WRITE, "Ok.", hooks=[hooks])
    assert out.read_text() == f"{root} 3 true\n"
    assert (stage.state / "data/my-plugin-inline/kept").exists()


async def test_placeholders_are_put_into_arguments_and_options_too(stage: Stage, tmp_path: Path):
    script = tmp_path / "args.sh"
    script.write_text(f'#!/bin/sh\nfor each in "$@"; do echo "$each" >> {tmp_path}/out; done\n')
    script.chmod(0o755)
    args = ["${CLAUDE_PLUGIN_ROOT}/a b", "x=${user_config.word}", "${user_config.n}", "${HOME}"]
    root = plugin(tmp_path / "p", command(str(script), args=args))
    options = {"p@inline": {"options": {"word": "$(touch pwned) ;", "n": 7}}}
    await stage.run(WRITE, "Ok.", hooks=[hooks_of(stage, root, configured=options)])
    expected = [f"{root}/a b", "x=$(touch pwned) ;", "7", "${HOME}"]
    assert (tmp_path / "out").read_text().splitlines() == expected


async def test_an_option_that_nobody_configured_is_an_error_of_the_hook(
    stage: Stage, tmp_path: Path
):
    root = plugin(tmp_path / "p", command("echo", args=["${user_config.word}"]))
    await stage.run(WRITE, "Ok.", hooks=[hooks_of(stage, root)])
    assert (stage.cwd / "made.txt").exists()
    assert "the plugin p has no option 'word'" in stage.person.notices


async def test_an_option_in_a_command_for_the_shell_is_an_error(stage: Stage, tmp_path: Path):
    root = plugin(tmp_path / "p", command(f"touch {stage.cwd}/ran ${{user_config.word}}"))
    hooks = hooks_of(stage, root, configured={"p@inline": {"options": {"word": "x"}}})
    await stage.run(WRITE, "Ok.", hooks=[hooks])
    assert not (stage.cwd / "ran").exists()
    [warning] = hooks.warnings
    assert "only put in where 'args' are given" in warning


async def test_the_same_handler_of_two_plugins_runs_twice_and_of_one_once(
    stage: Stage, tmp_path: Path
):
    out = tmp_path / "out"
    same = command(f"echo ${{CLAUDE_PLUGIN_ROOT}} >> {out}")
    roots = [plugin(tmp_path / name, same, same) for name in ("one", "two")]
    await stage.run(WRITE, "Ok.", hooks=[hooks_of(stage, *roots)])
    assert sorted(out.read_text().split()) == [str(root) for root in roots]


async def test_a_server_of_a_plugin_has_the_plugins_name_in_that_of_its_tools(
    stage: Stage, tmp_path: Path
):
    @tool(name="mcp__plugin_p_guard__check")
    def check() -> str:
        """Check."""
        return json.dumps(verdict("deny", "says the guard"))

    @tool(name="echo")
    def echo() -> str:
        """Echo."""
        return "echoed"

    handler = {"type": "mcp_tool", "server": "plugin:p:guard", "tool": "check"}
    root = plugin(tmp_path / "p", handler)
    hooks = [hooks_of(stage, root)]
    await stage.run(call("echo"), "Ok.", hooks=hooks, tools=[check, echo])
    assert stage.told().endswith("says the guard")


@pytest.mark.parametrize(
    ("patterns", "allowed"),
    [
        (None, True),
        ([], False),
        (["*"], True),
        (["http://hooks.example/*"], True),
        (["https://*"], False),
        (["*.example/a"], True),
        (["http://hooks.example/"], False),
        (["http://hooks?example/a"], False),
    ],
)
def test_only_the_urls_of_the_list_are_asked(patterns: list[str] | None, allowed: bool):
    handlers: list[Any] = [{"type": "http", "url": "http://hooks.example/a"}, command("true")]
    table = {"PreToolUse": [{"hooks": handlers}]}
    http, program = ShellHooks([HookFile("f", table)], urls=patterns).entries
    assert not program.inactive
    assert (not http.inactive) == allowed
    assert allowed or "allowedHttpHookUrls" in http.inactive


# where plugins come from


def built(stage: Stage, *lines: Line, managed: tuple[Path, ...] = ()) -> Agent:
    made = build(load(stage.cwd, managed=managed), cwd=stage.cwd)
    made.llm = stage.model = ScriptedModel(*lines)
    return made


async def ran(stage: Stage, **options: Any) -> list[str]:
    """What is in the file that programs of plugins write to, after a run."""
    async with built(stage, "Ok.", **options) as made:
        await made.run("Go", cwd=stage.cwd, client=stage.person)
    path = stage.cwd / "ran"
    return sorted(path.read_text().split()) if path.exists() else []


def noting(word: str) -> dict[str, Any]:
    return command(f"echo {word} >> $CLAUDE_PROJECT_DIR/ran")


def settings(path: Path, **table: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(table))


@pytest.fixture
def shop(home: Path, stage: Stage) -> Path:
    """Plugins as Claude Code installs them: two for the user, one for another project."""
    places: dict[str, Any] = {}
    for name, project in (("one", None), ("two", None), ("theirs", "/elsewhere")):
        root = plugin(home / f".claude/plugins/cache/shop/{name}/1", noting(name), event="Stop")
        place = {"scope": "user", "installPath": str(root), "version": "1"}
        places[f"{name}@shop"] = [{**place, "projectPath": project} if project else place]
    other = plugin(home / ".claude/plugins/cache/shop/one/2", noting("mine"), event="Stop")
    places["one@shop"].append(
        {"scope": "project", "projectPath": str(stage.cwd), "installPath": str(other)}
    )
    file = home / ".claude/plugins/installed_plugins.json"
    file.write_text(json.dumps({"version": 2, "plugins": places}))
    return home


async def test_plugins_that_claude_code_has_installed_run_where_they_are_enabled(
    stage: Stage, shop: Path
):
    assert await ran(stage) == []
    enabled = {"one@shop": True, "two@shop": False, "theirs@shop": True, "none@shop": True}
    settings(shop / ".claude/settings.json", enabledPlugins=enabled)
    assert await ran(stage) == ["mine"]  # installed for this project, which counts before


@pytest.mark.parametrize("fault", ["", "no manifest"])
async def test_what_only_a_marketplace_of_claude_codes_says_of_a_plugin_counts(
    stage: Stage, shop: Path, fault: str
):
    folder = shop / ".claude/plugins"
    manifest = folder / "cache/shop/two/1/.claude-plugin/plugin.json"
    manifest.unlink(missing_ok=True)
    entry = {"name": "two", "source": "./", "hooks": {"Stop": [{"hooks": [noting("said")]}]}}
    index = folder / "marketplaces/shop/.claude-plugin/marketplace.json"
    index.parent.mkdir(parents=True)
    index.write_text("[" if fault else json.dumps({"name": "shop", "plugins": [1, entry]}))
    settings(shop / ".claude/settings.json", enabledPlugins={"two@shop": True})
    assert await ran(stage) == (["two"] if fault else ["said", "two"])


async def test_what_it_says_of_one_that_crow_has_itself_was_never_agreed_to(
    stage: Stage, shop: Path
):
    root = plugin(shop / ".crow/plugins/guard", noting("guard"), event="Stop")
    (root / ".claude-plugin/plugin.json").unlink()
    record = {"guard@shop": {"folder": "guard", "origin": {}, "digest": ""}}
    (root.parent / "installed.json").write_text(json.dumps(record))
    entry = {"name": "guard", "source": "./", "hooks": {"Stop": [{"hooks": [noting("said")]}]}}
    index = shop / ".claude/plugins/marketplaces/shop/.claude-plugin/marketplace.json"
    index.parent.mkdir(parents=True)
    index.write_text(json.dumps({"name": "shop", "plugins": [entry]}))
    assert await ran(stage) == ["guard"]


async def test_a_project_turns_on_installed_plugins_once_it_is_trusted(stage: Stage, shop: Path):
    settings(stage.cwd / ".claude/settings.json", enabledPlugins={"two@shop": True})
    assert await ran(stage) == []
    trust(stage.cwd)
    assert await ran(stage) == ["two"]


async def test_folders_of_plugins_are_used_and_a_projects_only_where_it_is_trusted(
    stage: Stage, home: Path, tmp_path: Path
):
    plugin(home / ".crow/plugins/user", noting("user"), event="Stop")
    plugin(stage.cwd / ".crow/plugins/project", noting("project"), event="Stop")
    plugin(tmp_path / "named", noting("named"), event="Stop")
    plugin(home / ".crow/plugins/off", noting("off"), event="Stop")
    (home / ".crow/plugins/notes").mkdir()
    table = {"plugins": [str(tmp_path / "named")], "enabledPlugins": {"off@inline": False}}
    settings(home / ".crow/settings.json", **table)
    assert await ran(stage) == ["named", "user"]
    told = "\n".join(startup_warnings(load(stage.cwd)))
    assert ".crow/plugins" in told
    (stage.cwd / "ran").unlink()
    linked = plugin(stage.cwd / "tools/linked", noting("linked"), event="Stop")
    (stage.cwd / ".crow/plugins/linked").symlink_to(linked)  # can change without being noticed
    trust(stage.cwd)
    assert await ran(stage) == ["named", "project", "user"]
    (stage.cwd / "ran").unlink()
    with (stage.cwd / ".crow/plugins/project/hooks/hooks.json").open("a") as file:
        file.write(" ")
    assert await ran(stage) == ["named", "user"]


async def test_a_project_that_is_trusted_in_an_open_session_brings_its_plugins_there(
    stage: Stage, home: Path
):
    root = plugin(stage.cwd / ".crow/plugins/p", noting("hook"), event="Stop")
    (root / "skills/careful").mkdir(parents=True)
    text = "---\nname: careful\ndescription: Be careful\n---\nBe careful."
    (root / "skills/careful/SKILL.md").write_text(text)
    async with built(stage, "Ok.", "Ok.", "Ok.") as made:
        reply = await made.run("Go", cwd=stage.cwd)
        assert not (stage.cwd / "ran").exists()
        trust(stage.cwd)
        await made.run("And?", session=reply.session)
        await made.run("/careful", session=reply.session)
    assert (stage.cwd / "ran").read_text().split() == ["hook", "hook"]
    assert "Do what the skill p:careful says" in str(stage.model.asked[-1]["messages"][-1])


async def test_the_administrators_switches_leave_the_plugins_that_they_enabled(
    stage: Stage, shop: Path, tmp_path: Path
):
    folder = tmp_path / "claude-code"
    settings(shop / ".claude/settings.json", enabledPlugins={"one@shop": True})
    table = {"allowManagedHooksOnly": True, "enabledPlugins": {"two@shop": True}}
    settings(folder / "managed-settings.json", **table)
    assert await ran(stage, managed=(folder,)) == ["two"]
    settings(shop / ".claude/settings.json", disableAllHooks=True)
    (stage.cwd / "ran").unlink()
    assert await ran(stage, managed=(folder,)) == ["two"]


async def test_where_only_plugins_may_customise_their_hooks_are_all_that_run(
    stage: Stage, shop: Path, tmp_path: Path
):
    hooks = {"Stop": [{"hooks": [noting("user")]}]}
    settings(shop / ".claude/settings.json", hooks=hooks, enabledPlugins={"two@shop": True})
    assert await ran(stage) == ["two", "user"]
    folder = tmp_path / "claude-code"
    settings(folder / "managed-settings.json", strictPluginOnlyCustomization=True)
    (stage.cwd / "ran").unlink()
    assert await ran(stage, managed=(folder,)) == ["two"]


async def test_what_is_wrong_with_a_plugin_is_told_in_a_line_and_stops_nobody(
    stage: Stage, home: Path
):
    plugin(home / ".crow/plugins/good", noting("good"), event="Stop")
    bad = plugin(home / ".crow/plugins/bad", noting("bad"), event="Stop")
    (bad / ".claude-plugin/plugin.json").write_text("{")
    plugin(home / ".crow/plugins/out", hooks="../good/hooks/hooks.json")
    (home / ".crow/plugins/link").mkdir()
    (home / ".crow/plugins/link/hooks").symlink_to("../good/hooks")
    settings(home / ".crow/settings.json", plugins=["~/nowhere"])
    assert await ran(stage) == ["good"]
    lines = "\n".join(startup_warnings(load(stage.cwd)))
    assert "plugin.json cannot be read" in lines
    assert "../good/hooks/hooks.json is outside of it" in lines
    assert "link is left out: hooks/hooks.json is outside of it" in lines
    assert "there is no such folder" in lines


async def test_the_manifest_names_files_of_hooks_or_has_them_itself(stage: Stage, home: Path):
    named: list[Any] = ["./more.json", {"Stop": [{"hooks": [noting("inline")]}]}]
    root = plugin(home / ".crow/plugins/p", noting("usual"), event="Stop", hooks=named)
    table = {"hooks": {"Stop": [{"hooks": [noting("more")]}]}}
    (root / "more.json").write_text(json.dumps(table))
    assert await ran(stage) == ["inline", "more", "usual"]


RAW = Path(__file__).parents[1] / "mcp/servers/raw.py"


@pytest.mark.slow
async def test_the_tools_of_a_plugins_server_have_the_names_that_hooks_know_them_by(
    stage: Stage, home: Path, tmp_path: Path
):
    seen = stage.scripts / "seen"
    matcher = "mcp__plugin_a-formatter-plugin_guard__.*"
    root = plugin(home / ".crow/plugins/a-formatter-plugin", event="Stop")
    args, env = ["-SE", str(RAW), "{}"], {"TRACE": str(tmp_path / "trace")}
    server = {"command": sys.executable, "args": args, "env": env}
    (root / ".mcp.json").write_text(json.dumps({"mcpServers": {"guard": server}}))
    deny = f"cat > {seen}; echo no >&2; exit 2"
    groups = [{"matcher": matcher, "hooks": [command(deny)]}]
    (root / "hooks/hooks.json").write_text(json.dumps({"hooks": {"PreToolUse": groups}}))
    echo = call("mcp__plugin_a-formatter-plugin_guard__echo")
    async with built(stage, echo, "Ok.") as made:
        made.extensions["mcp"].limits = replace(made.extensions["mcp"].limits, wait=60.0)
        await made.run("Go", cwd=stage.cwd, client=stage.person)
    name = "plugin:a-formatter-plugin:guard"
    assert json.loads(seen.read_text())["mcp_server"] == {"name": name, "source": "plugin"}
    assert stage.told().endswith("no")


async def test_a_plugin_brings_commands(stage: Stage, home: Path):
    root = plugin(home / ".crow/plugins/p", event="Stop")
    (root / "commands/git").mkdir(parents=True)
    (root / "commands/git/fix.md").write_text("Mend $ARGUMENTS.")
    async with built(stage, "Ok.") as made:
        await made.run("/git:fix it", cwd=stage.cwd)
    assert "Mend it." in str(stage.model.asked[0]["messages"][-1])


async def test_a_plugin_brings_skills_sub_agents_and_servers_but_no_hooks_of_its_sub_agents(
    stage: Stage, home: Path
):
    root = plugin(
        home / ".crow/plugins/p", mcpServers={"x": {"command": "${CLAUDE_PLUGIN_ROOT}/serve"}}
    )
    for path, own in (
        ("skills/careful/SKILL.md", command("echo $CLAUDE_PLUGIN_ROOT >> $CLAUDE_PROJECT_DIR/ran")),
        ("agents/careful.md", noting("agent")),
    ):
        (root / path).parent.mkdir(parents=True)
        head = {"name": "careful", "description": "x", "hooks": {"PreToolUse": [{"hooks": [own]}]}}
        (root / path).write_text(f"---\n{json.dumps(head)}\n---\nBe careful.")
    task = call("Agent", description="A task", prompt="Do it", subagent_type="careful")
    read = call("Read", file_path="none.txt")
    use = call("Skill", skill="careful")
    async with built(stage, task, read, "Done.", use, read, "Ok.") as made:
        [(name, server)] = made.extensions["mcp"].servers.items()
        assert (name, server["command"]) == ("plugin:p:x", f"{root}/serve")
        assert server["env"]["CLAUDE_PLUGIN_ROOT"] == str(root)
        made.remove("mcp")
        await made.run("Go", cwd=stage.cwd, client=stage.person)
    stage.model.verify()
    assert (stage.cwd / "ran").read_text() == f"{root}\n"
    assert "the agents of a plugin bring no hooks" in stage.person.notices
