"""From settings files to hooks that run: what is malformed is named, what is not trusted waits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.extensions.shell_hooks.conftest import Stage, given

from crow.app import build, startup_warnings
from crow.extensions import ShellHooks
from crow.project import HookFile
from crow.project.trust import trust
from crow.settings import Settings, load
from crow.testing import ScriptedModel, call

WRITE = call("Write", file_path="made.txt", content="x")
GOOD = {"hooks": [{"type": "command", "command": "true"}]}


def handler(**fields: Any) -> Any:
    return [{"hooks": [fields]}]


@pytest.mark.parametrize(
    ("event", "groups", "said"),
    [
        ("PreTolUse", [GOOD], "there is no hook event 'PreTolUse'; did you mean 'PreToolUse'?"),
        ("PreToolUse", {}, "'hooks.PreToolUse': it must be a list"),
        ("PreToolUse", ["x"], "'hooks.PreToolUse' entry 1: it must be a table"),
        ("PreToolUse", [GOOD, {"hooks": 1}], "entry 2: 'hooks' must be a list"),
        ("PreToolUse", [{"matcher": 1, "hooks": []}], "entry 1: 'matcher' is no text"),
        ("PreToolUse", [{"matcher": "(", **GOOD}], "the matcher '(' is no regular expression"),
        ("PreToolUse", [{"hooks": ["x"]}], "a handler must be a table"),
        ("PreToolUse", [{"matcher": "Edit|bash", **GOOD}], "'bash'; did you mean 'Bash'?"),
        ("PreToolUse", handler(type="shell"), "there is no handler type 'shell'"),
        ("PreToolUse", handler(type="command"), "a handler of type command needs 'command'"),
        ("PreToolUse", handler(type="http", url=1), "a handler of type http needs 'url'"),
        ("PreToolUse", handler(type="command", command="x", timeout="1"), "'timeout' must be"),
        ("PreToolUse", handler(type="command", command="x", args="y"), "'args' must be a list"),
        ("PreToolUse", handler(type="command", command="x", shell=1), "'shell' must be text"),
    ],
)
def test_what_is_malformed_is_named_in_a_line_and_the_rest_applies(
    event: str, groups: Any, said: str
):
    hooks = ShellHooks([HookFile("the/file", {event: groups, "Stop": [GOOD]})])
    [warning] = hooks.warnings
    assert warning.startswith("the/file: ")
    assert said in warning
    assert "Stop" in [entry.event.name for entry in hooks.entries]


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize(
    "groups, reason",
    [
        (handler(type="shell"), "there is no handler type 'shell'"),
        ([{"matcher": "(", **GOOD}], "is no regular expression"),
        ([{"hooks": {}}], "'hooks' must be a list"),
        ("rm.sh", "it must be a list"),
    ],
)
async def test_a_guard_that_nobody_can_read_refuses_what_it_was_to_decide(
    stage: Stage, groups: Any, reason: str, own: bool
):
    stage.tables[own]["PreToolUse"] = groups
    await stage.run(WRITE, "I see.")
    assert not (stage.cwd / "made.txt").exists()
    assert "could not decide" in stage.told()
    assert reason in stage.told()


@pytest.mark.parametrize(
    "matcher, wish, runs",
    [("Write", "block", False), ("Write", "continue", True), ("Bash", "block", True)],
)
async def test_an_unreadable_guard_refuses_the_calls_that_it_names_unless_it_says_otherwise(
    stage: Stage, matcher: str, wish: str, runs: bool
):
    guard = {"type": "shell", "onFailure": wish}
    stage.tables[False]["PreToolUse"] = [{"matcher": matcher, "hooks": [guard]}]
    await stage.run(WRITE, "I see.")
    assert (stage.cwd / "made.txt").exists() == runs


@pytest.mark.parametrize(
    ("event", "kind", "why"),
    [
        ("Notification", "prompt", "handlers of type prompt do not run at Notification"),
        ("SessionStart", "http", "handlers of type http do not run at SessionStart"),
        ("PermissionRequest", "agent", "handlers of type agent do not run at PermissionRequest"),
    ],
)
def test_a_handler_that_an_event_cannot_have_says_why_it_never_runs(
    event: str, kind: str, why: str
):
    spec = {"type": kind, "prompt": "x", "url": "x"}
    [entry] = ShellHooks([HookFile("f", {event: handler(**spec)})]).entries
    assert why in entry.inactive


def write(path: Path, **settings: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings))


def reading(stage: Stage, event: str = "PreToolUse") -> tuple[dict[str, Any], Path]:
    """The table of a hook, and the file that it writes what it is given to."""
    seen = stage.on(event)
    return {event: stage.tables[False].pop(event)}, seen


async def work(stage: Stage, settings: Settings | None = None, **options: Any) -> Any:
    agent = build(settings, cwd=stage.cwd, **options)
    agent.llm = ScriptedModel(call("Read", file_path="a.txt"), "Ok.")
    (stage.cwd / "a.txt").write_text("a")
    async with agent:
        await agent.run("Go", cwd=stage.cwd)
    return agent


async def test_a_projects_hooks_run_only_once_it_is_trusted(stage: Stage):
    table, seen = reading(stage)
    write(stage.cwd / ".claude/settings.json", hooks=table)
    agent = await work(stage)
    assert hooks_of(agent).entries == ()
    assert not seen.exists()
    assert any("not trusted" in line for line in startup_warnings(load(stage.cwd), agent))
    trust(stage.cwd)
    await work(stage)
    assert len(given(seen)) == 1
    assert given(seen)[0]["tool_input"]["file_path"] == str(stage.cwd / "a.txt")
    write(stage.cwd / ".claude/settings.json", hooks=table, env={"CHANGED": "1"})
    await work(stage)
    assert len(given(seen)) == 1


async def test_hooks_of_all_files_run_and_each_knows_its_project(stage: Stage, home: Path):
    tables = [reading(stage) for _ in range(4)]
    places = (
        home / ".claude/settings.json",
        home / ".crow/settings.json",
        stage.cwd / ".claude/settings.json",
        stage.cwd / ".claude/settings.local.json",
    )
    for place, (table, _) in zip(places, tables, strict=True):
        write(place, hooks=table)
    trust(stage.cwd)
    agent = await work(stage)
    assert [len(given(seen)) for _, seen in tables] == [1, 1, 1, 1]
    own = {Path(entry.source).parent.name: entry.blocks for entry in hooks_of(agent).entries}
    assert own == {".claude": False, ".crow": True}
    assert hooks_of(agent).project == str(stage.cwd)


def hooks_of(agent: Any) -> ShellHooks:
    return agent.extensions["shell_hooks"]


async def test_settings_hooks_come_after_a_projects_files_and_before_hooks_of_the_program(
    stage: Stage, home: Path
):
    table, _ = reading(stage)
    write(home / ".claude/settings.json", hooks=table)
    (home / ".crow/extensions").mkdir(parents=True)
    (home / ".crow/extensions/mine.py").write_text("def before_tool(ctx): ...\n")

    class Program:
        def before_tool(self, ctx: Any) -> None: ...

    agent = await work(stage, hooks=[Program()])
    order = [hook.owner.name for hook in agent.hooks.before_tool.entries if not hook.judge]
    ours = [name for name in order if name in ("mine", "shell_hooks", "program")]
    assert ours == ["mine", "shell_hooks", "program"]


async def test_malformed_hooks_are_told_before_the_first_prompt(stage: Stage, home: Path):
    write(home / ".claude/settings.json", hooks={"PreTolUse": [GOOD]})
    agent = build(cwd=stage.cwd)
    lines = list(startup_warnings(load(stage.cwd), agent))
    assert any("did you mean 'PreToolUse'?" in line for line in lines)


async def test_all_can_be_turned_off(stage: Stage, home: Path):
    table, seen = reading(stage)
    write(home / ".claude/settings.json", hooks=table)
    write(home / ".crow/settings.json", extensions={"disable": ["shell_hooks"]})
    agent = await work(stage)
    assert [found.disabled for found in agent.found if found.name == "shell_hooks"] == [True]
    assert not seen.exists()


@pytest.mark.parametrize(
    ("user", "project", "managed", "expected"),
    [
        ({"disableAllHooks": True}, {}, {}, ["managed"]),
        ({"disableAllHooks": True}, {"disableAllHooks": False}, {}, ["managed", "user"]),
        ({}, {}, {"disableAllHooks": True}, []),
        ({}, {}, {"allowManagedHooksOnly": True}, ["managed"]),
        ({"allowManagedHooksOnly": True}, {}, {}, ["managed", "user"]),
        ({"disableAllHooks": "yes"}, {}, {}, ["managed", "user"]),
        ({}, {}, {"strictPluginOnlyCustomization": True}, ["managed"]),
        ({}, {}, {"strictPluginOnlyCustomization": ["skills", "hooks"]}, ["managed"]),
        ({}, {}, {"strictPluginOnlyCustomization": ["skills"]}, ["managed", "user"]),
        ({"strictPluginOnlyCustomization": True}, {}, {}, ["managed", "user"]),
    ],
)
def test_switches_turn_off_what_their_file_may_turn_off(
    stage: Stage, home: Path, user: Any, project: Any, managed: Any, expected: list[str]
):
    write(home / ".claude/settings.json", hooks={"Stop": [GOOD]}, **user)
    write(stage.cwd / ".claude/settings.json", **project)
    folder = stage.scripts / "claude-code"
    write(folder / "managed-settings.json", hooks={"Stop": [GOOD]}, **managed)
    trust(stage.cwd)
    settings = load(stage.cwd, managed=(folder,))
    assert sorted(source.layer for source, _ in settings.hooks) == expected
    assert bool(settings.problems) == (user == {"disableAllHooks": "yes"})


def test_bounds_of_http_hooks_of_all_files_are_joined_and_an_empty_list_is_one(
    stage: Stage, home: Path
):
    assert load(stage.cwd).http_urls is None
    write(home / ".claude/settings.json", allowedHttpHookUrls=[])
    assert load(stage.cwd).http_urls == ()
    write(home / ".crow/settings.json", allowedHttpHookUrls=["http://a/*"])
    write(stage.cwd / ".claude/settings.json", allowedHttpHookUrls=["*"])
    assert load(stage.cwd).http_urls == ("http://a/*",)  # the project is not trusted
    write(home / ".claude/settings.json", httpHookAllowedEnvVars=["TOKEN"])
    assert load(stage.cwd).http_variables == ("TOKEN",)


def test_a_project_names_no_folders_of_plugins(stage: Stage, home: Path):
    write(home / ".crow/settings.json", plugins=["~/one"])
    write(stage.cwd / ".crow/settings.json", plugins=["elsewhere"])
    trust(stage.cwd)
    settings = load(stage.cwd)
    assert [entry.text for entry in settings.plugins] == ["~/one"]
    assert "they go to .crow/plugins" in settings.problems[0]


def test_an_untrusted_project_cannot_turn_off_the_users_hooks(stage: Stage, home: Path):
    write(home / ".claude/settings.json", hooks={"Stop": [GOOD]})
    write(stage.cwd / ".claude/settings.json", disableAllHooks=True)
    assert len(load(stage.cwd).hooks) == 1
