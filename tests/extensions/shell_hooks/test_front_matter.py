"""Hooks in the front matter of skills and sub-agents: when they begin, and when they end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.extensions.shell_hooks.conftest import Stage, given, verdict

from crow import Agent
from crow.app import build
from crow.project.trust import trust
from crow.settings import load
from crow.testing import ScriptedModel, call
from crow.testing.model import Line

USE = call("Skill", skill="guarded")
WRITE = call("Write", file_path="made.txt", content="x")
TASK = call("Agent", description="A task", prompt="Do it", subagent_type="careful")


def script(stage: Stage, name: str, *, says: Any = None, code: int = 0) -> tuple[str, Path]:
    """A program for a hook, and the file in which it keeps what it is given."""
    path, seen = stage.scripts / name, stage.scripts / f"{name}.in"
    said = f"echo '{json.dumps(says)}'" if says is not None else ":"
    path.write_text(f"#!/bin/sh\ncat >> '{seen}'\n{said}\nexit {code}\n")
    path.chmod(0o755)
    return str(path), seen


def skill(folder: Path, hooks: Any, name: str = "guarded") -> None:
    path = folder / ".claude/skills" / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    head = {"name": name, "description": "Guards", "hooks": hooks}
    path.write_text(f"---\n{json.dumps(head)}\n---\nBe careful.\n")


def agent(folder: Path, hooks: Any) -> None:
    path = folder / ".claude/agents/careful.md"
    path.parent.mkdir(parents=True)
    head = {"name": "careful", "description": "Careful", "hooks": hooks}
    path.write_text(f"---\n{json.dumps(head)}\n---\nBe careful.\n")


def on(event: str, command: str, **more: Any) -> Any:
    return {event: [{"hooks": [{"type": "command", "command": command, **more}]}]}


def built(stage: Stage, *lines: Line, **flags: Any) -> Agent:
    settings = load(stage.cwd, flags={"permissions": {"allow": ["Write", "Agent"]}, **flags})
    made = build(settings, cwd=stage.cwd)
    made.llm = stage.model = ScriptedModel(*lines)
    return made


async def run(stage: Stage, *lines: Line, **flags: Any) -> None:
    async with built(stage, *lines, **flags) as made:
        await made.run("Go", cwd=stage.cwd, client=stage.person)
    stage.model.verify()


async def test_a_skills_hooks_begin_with_its_use_and_stay_for_the_session(stage: Stage, home: Path):
    command, seen = script(stage, "guard")
    skill(home, on("PreToolUse", command))
    async with built(stage, WRITE, USE, WRITE, "Ok.", WRITE, "Ok.", WRITE, "Ok.") as made:
        reply = await made.run("Go", cwd=stage.cwd)
        assert [each["tool_name"] for each in given(seen)] == ["Write"]
        await made.run("And?", session=reply.session)
        assert len(given(seen)) == 2
        await made.run("Somebody else's session", cwd=stage.cwd)
        assert len(given(seen)) == 2


async def test_a_skills_hook_denies_like_any_other(stage: Stage, home: Path):
    command, _ = script(stage, "guard", says=verdict("deny", "not with this skill"))
    skill(home, on("PreToolUse", command))
    await run(stage, USE, WRITE, "Ok.")
    assert not (stage.cwd / "made.txt").exists()
    assert stage.told().endswith("not with this skill")


async def test_the_users_command_for_a_skill_begins_its_hooks_too(stage: Stage, home: Path):
    command, seen = script(stage, "end")
    skill(home, on("Stop", command))
    async with built(stage, "Ok.") as made:
        await made.run("/guarded", cwd=stage.cwd)
    assert len(given(seen)) == 1


@pytest.mark.parametrize("args", [{}, {"args": []}])
async def test_a_skills_hook_finds_its_folder(stage: Stage, home: Path, args: dict[str, Any]):
    skill(home, on("Stop", "${CLAUDE_SKILL_DIR}/note", **args))
    folder = home / ".claude/skills/guarded"
    (folder / "note").write_text('#!/bin/sh\nprintf %s "$CLAUDE_SKILL_DIR" > "$0.in"\n')
    (folder / "note").chmod(0o755)
    await run(stage, USE, "Ok.")
    assert (folder / "note.in").read_text() == str(folder)


async def test_a_skill_that_is_used_twice_has_its_hooks_once(stage: Stage, home: Path):
    command, seen = script(stage, "guard")
    skill(home, on("Stop", command))
    await run(stage, USE, USE, "Ok.")
    assert len(given(seen)) == 1


async def test_once_in_a_skill_ends_with_the_first_success(stage: Stage, home: Path):
    handlers = [script(stage, name, code=code) for name, code in (("ok", 0), ("bad", 1))]
    group = [{"type": "command", "command": path, "once": True} for path, _ in handlers]
    skill(home, {"PostToolUse": [{"matcher": "Write", "hooks": group}]})
    await run(stage, USE, WRITE, WRITE, WRITE, "Ok.")
    assert [len(given(seen)) for _, seen in handlers] == [1, 3]


async def test_two_skills_with_the_same_hook_both_run_it(stage: Stage, home: Path):
    command, seen = script(stage, "same")
    skill(home, on("Stop", command))
    skill(home, on("Stop", command), name="other")
    await run(stage, USE, call("Skill", skill="other"), "Ok.")
    assert len(given(seen)) == 2


@pytest.mark.parametrize("trusted", [False, True])
async def test_hooks_of_a_projects_skill_need_trust(stage: Stage, home: Path, trusted: bool):
    command, seen = script(stage, "guard")
    skill(stage.cwd, on("Stop", command))
    if trusted:
        trust(stage.cwd)
    await run(stage, USE, "Ok.")
    assert len(given(seen)) == trusted
    assert ("its hooks do not run" in stage.person.notices) != trusted


@pytest.mark.parametrize("trusted", [False, True])
async def test_hooks_of_a_skill_behind_a_link_need_trust_too(
    stage: Stage, home: Path, trusted: bool
):
    command, seen = script(stage, "guard")
    skill(stage.cwd / "elsewhere", on("Stop", command))
    folders = stage.cwd / ".claude/skills"
    folders.mkdir(parents=True)
    (folders / "guarded").symlink_to("../../elsewhere/.claude/skills/guarded")
    if trusted:
        trust(stage.cwd)
    await run(stage, USE, "Ok.")
    assert len(given(seen)) == trusted
    assert ("its hooks do not run" in stage.person.notices) != trusted


async def test_hooks_of_a_skill_that_is_not_among_what_is_trusted_do_not_run(
    stage: Stage, home: Path
):
    command, seen = script(stage, "guard")
    skill(stage.cwd / "docs", on("Stop", command))
    (stage.cwd / ".claude").mkdir()
    trust(stage.cwd)
    options = {"skills": {"folders": ["docs/.claude/skills"]}}
    await run(stage, USE, "Ok.", extensions=options)
    assert not given(seen)
    assert "its hooks do not run" in stage.person.notices


async def test_a_projects_skill_that_has_changed_since_brings_no_hooks(stage: Stage, home: Path):
    command, seen = script(stage, "guard")
    skill(stage.cwd, on("Stop", command))
    trust(stage.cwd)
    async with built(stage, USE, "Ok.") as made:
        with (stage.cwd / ".claude/skills/guarded/SKILL.md").open("a") as file:
            file.write("And more.")
        await made.run("Go", cwd=stage.cwd, client=stage.person)
    assert not given(seen)
    assert "not trusted" in stage.person.notices


@pytest.mark.parametrize("switch", ["disableAllHooks", "extension"])
async def test_switches_turn_hooks_of_skills_and_sub_agents_off(
    stage: Stage, home: Path, switch: str
):
    command, seen = script(stage, "guard")
    skill(home, on("PreToolUse", command))
    agent(home, on("PreToolUse", command))
    off = {"extensions": {"disable": ["shell_hooks"]}}
    flags = {switch: True} if switch == "disableAllHooks" else off
    await run(stage, USE, WRITE, TASK, WRITE, "Done.", "Ok.", **flags)
    assert not given(seen)


async def test_a_switch_that_is_thrown_while_the_session_is_open_counts(stage: Stage, home: Path):
    command, seen = script(stage, "guard")
    skill(home, on("Stop", command))
    async with built(stage, "Ok.", USE, "Ok.") as made:
        reply = await made.run("Go", cwd=stage.cwd)
        (home / ".crow").mkdir(exist_ok=True)
        (home / ".crow/settings.json").write_text('{"disableAllHooks": true}')
        await made.run("And?", session=reply.session)
    assert not given(seen)


async def test_what_is_wrong_with_a_skills_hooks_is_told_and_the_rest_runs(
    stage: Stage, home: Path
):
    command, seen = script(stage, "end")
    skill(home, {**on("Stop", command), "NoSuchEvent": []})
    skill(home, ["Stop"], name="odd")
    await run(stage, USE, call("Skill", skill="odd"), "Ok.")
    assert len(given(seen)) == 1
    assert "there is no hook event 'NoSuchEvent'" in stage.person.notices
    assert "'hooks' must be a table" in stage.person.notices


async def test_a_sub_agents_hooks_run_while_it_does_and_its_stop_is_that_of_a_sub_agent(
    stage: Stage, home: Path
):
    before, seen = script(stage, "before")
    end, ended = script(stage, "end")
    agent(home, {**on("PreToolUse", before), **on("Stop", end)})
    await run(stage, WRITE, TASK, WRITE, "Done.", WRITE, "Ok.")
    [inside] = given(seen)
    assert (inside["tool_name"], inside["agent_type"]) == ("Write", "careful")
    [stopped] = given(ended)
    assert (stopped["hook_event_name"], stopped["agent_type"]) == ("SubagentStop", "careful")


async def test_once_means_nothing_in_a_sub_agent(stage: Stage, home: Path):
    command, seen = script(stage, "before")
    agent(home, on("PreToolUse", command, once=True))
    await run(stage, TASK, WRITE, WRITE, "Done.", "Ok.")
    assert len(given(seen)) == 2


async def test_a_skill_that_a_sub_agent_uses_brings_its_hooks_to_the_sub_agent(
    stage: Stage, home: Path
):
    command, seen = script(stage, "end")
    skill(home, {**on("Stop", command), **on("PreToolUse", command)})
    agent(home, {})
    await run(stage, TASK, USE, WRITE, "Done.", WRITE, "Ok.")
    events = [(each["hook_event_name"], each.get("agent_type")) for each in given(seen)]
    assert events == [("PreToolUse", "careful"), ("SubagentStop", "careful")]


@pytest.mark.parametrize("trusted", [False, True])
async def test_a_projects_sub_agents_need_trust_for_their_hooks(
    stage: Stage, home: Path, trusted: bool
):
    command, seen = script(stage, "before")
    agent(stage.cwd, on("PreToolUse", command))
    if trusted:
        trust(stage.cwd)
    await run(stage, TASK, *([WRITE, "Done."] if trusted else []), "Ok.")
    assert len(given(seen)) == trusted


async def test_a_projects_sub_agent_that_has_changed_since_brings_no_hooks(
    stage: Stage, home: Path
):
    command, seen = script(stage, "before")
    agent(stage.cwd, on("PreToolUse", command))
    trust(stage.cwd)
    async with built(stage, TASK, WRITE, "Done.", "Ok.") as made:
        assert "careful" in made.tools["Agent"].description  # it is read, and stays as it was
        with (stage.cwd / ".claude/agents/careful.md").open("a") as file:
            file.write("And more.")
        await made.run("Go", cwd=stage.cwd, client=stage.person)
    assert not given(seen)
