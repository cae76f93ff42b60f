"""Hooks that plugins bring: where they are, what they were configured with, and what runs twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.extensions.shell_hooks.conftest import Stage, verdict

from crow import tool
from crow.extensions import ShellHooks
from crow.extensions.shell_hooks import File
from crow.plugins import read
from crow.testing import call

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
    files = [File(str(path), table, plugin=p) for p in plugins for path, table in p.hooks]
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
    http, program = ShellHooks([File("f", table)], urls=patterns).entries
    assert not program.inactive
    assert (not http.inactive) == allowed
    assert allowed or "allowedHttpHookUrls" in http.inactive
