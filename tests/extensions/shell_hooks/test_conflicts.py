"""Several hooks that say different things, and hooks that fail: the table of conflicts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.extensions.shell_hooks.conftest import Stage, given, specific, verdict

from crow.core.hooks.contexts import ToolContext
from crow.extensions import PermissionsHook, ShellHooks
from crow.extensions.shell_hooks.matcher import FORMER, matcher
from crow.project import HookFile
from crow.testing import call

WRITE = call("Write", file_path="made.txt", content="x")
BASH = call("Bash", command="echo plain")


def made(stage: Stage) -> bool:
    return (stage.cwd / "made.txt").exists()


def shape(text: str) -> dict[str, Any]:
    """What the Bash tool gives."""
    return {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}


# several answers


async def test_of_several_outputs_for_a_tool_the_last_configured_stands(stage: Stage):
    for text, script in (("first", "sleep 0.1"), ("second", "")):
        says = specific("PostToolUse", updatedToolOutput=shape(text))
        stage.on("PostToolUse", script, says=says)
    await stage.run(BASH, "Ok.")
    assert stage.told().endswith("second")


async def test_a_rewrite_of_one_hook_is_not_taken_back_by_another_that_rewrites_nothing(
    stage: Stage,
):
    moved = {"file_path": str(stage.cwd / "other.txt"), "content": "x"}
    stage.on("PreToolUse", says=verdict("allow", updatedInput=moved))
    stage.on("PreToolUse", "sleep 0.1", says=verdict("allow"))
    await stage.run(WRITE, "Ok.")
    assert not made(stage)
    assert (stage.cwd / "other.txt").exists()


async def test_every_hook_sees_the_original_input(stage: Stage):
    moved = {"file_path": str(stage.cwd / "other.txt"), "content": "x"}
    stage.on("PreToolUse", says=verdict("allow", updatedInput=moved))
    seen = stage.on("PreToolUse")
    await stage.run(WRITE, "Ok.")
    assert given(seen)[0]["tool_input"]["file_path"] == str(stage.cwd / "made.txt")


@pytest.mark.parametrize(
    ("several", "agrees", "model"),
    [
        (["allow", "ask"], False, None),
        (["allow", "ask"], True, "other"),
        (["ask", "deny"], True, None),
        (["allow", "allow"], False, "other"),
    ],
)
async def test_at_a_model_switch_deny_beats_ask_beats_allow(
    stage: Stage, several: list[str], agrees: bool, model: str | None
):
    for permission in several:
        says = specific("PreModelSwitch", permissionDecision=permission)
        stage.on("PreModelSwitch", says=says)
    stage.person.agrees = agrees
    async with stage.agent() as agent:
        session = await agent.new_session(stage.cwd, client=stage.person)
        await agent.configure(session, model="other")
    assert session.model == model
    assert len(stage.person.questions) == ("ask" in several and "deny" not in several)


# failures


@pytest.mark.parametrize(
    "script",
    ["exit 1", "kill -SEGV $$", "no-such-program", "sleep 60"],
)
async def test_a_failure_decides_nothing_is_shown_and_blocks_where_it_is_meant_to(
    stage: Stage, script: str
):
    handler = {"type": "command", "command": script, "timeout": 0.1 if "sleep" in script else 600}
    stage.handle("PreToolUse", handler, matcher="Write")
    await stage.run(WRITE, "Ok.")
    assert made(stage)
    assert "PreToolUse hook [" in stage.person.notices
    stage.tables[False].clear()
    stage.handle("PreToolUse", {**handler, "onFailure": "block"})
    await stage.run(BASH, "Ok.")
    assert "could not decide" in stage.told()


async def test_the_others_count_where_one_fails(stage: Stage):
    stage.on("PreToolUse", code=1)
    stage.on("PreToolUse", says=verdict("deny", "not today"))
    await stage.run(WRITE, "Ok.")
    assert stage.told().endswith("not today")


async def hangs(ctx: ToolContext) -> None:
    await asyncio.Event().wait()


async def test_a_callback_in_python_that_takes_too_long_before_a_tool_blocks(stage: Stage):
    async with stage.agent(WRITE, "Ok.") as agent:
        agent.hooks.register("PreToolUse", hangs, timeout=0.05)
        await agent.run("Go", cwd=stage.cwd)
    assert not made(stage)
    assert "could not decide" in stage.told()


async def test_a_callback_in_python_that_takes_too_long_at_a_prompt_blocks(stage: Stage):
    async with stage.agent() as agent:
        agent.hooks.register("UserPromptSubmit", hangs, timeout=0.05)
        reply = await agent.run("Go", cwd=stage.cwd)
    assert reply.stop_reason == "refusal"


async def test_a_callback_in_python_that_fails_before_a_tool_blocks_in_crow(stage: Stage):
    def fails(ctx: ToolContext) -> None:
        raise RuntimeError("broken")

    async with stage.agent(WRITE, "Ok.") as agent:
        agent.hooks.register("PreToolUse", fails)
        await agent.run("Go", cwd=stage.cwd)
    assert not made(stage)


@pytest.mark.parametrize("event", ["PreToolUse", "PermissionRequest"])
async def test_a_call_is_blocked_where_it_cannot_be_told_which_hooks_are_meant(
    stage: Stage, event: str
):
    def broken(rule: str, name: str, args: Any, cwd: str) -> bool:
        raise RuntimeError("broken")

    stage.on(event, **{"if": "Write"})  # type: ignore[arg-type]
    stage.person.answer = "allow_once"
    async with stage.agent(WRITE, "Ok.", hooks=[PermissionsHook()]) as agent:
        agent.remove("shell_hooks")
        agent.use(stage.hooks(applies=broken))
        await agent.run("Go", cwd=stage.cwd, client=stage.person)
    assert not made(stage)


# what is the same, and what is meant


def command(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "command", "command": text, **more}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (command("x"), command("x"), True),
        (command("x"), command("x", timeout=5, statusMessage="Wait"), True),
        (command("x"), command("x", shell="powershell"), False),
        (command("x"), command("x", args=[]), False),
        (command("x", **{"if": "Bash(a)"}), command("x", **{"if": "Bash(b)"}), False),
        ({"type": "http", "url": "u"}, {"type": "http", "url": "u", "headers": {"a": "b"}}, True),
        ({"type": "http", "url": "u"}, {"type": "http", "url": "v"}, False),
        ({"type": "prompt", "prompt": "p"}, {"type": "prompt", "prompt": "p", "model": "m"}, True),
        ({"type": "prompt", "prompt": "p"}, {"type": "agent", "prompt": "p"}, False),
    ],
)
def test_the_same_handler_in_two_files_is_told_by_what_it_does(one: Any, other: Any, same: bool):
    files = [HookFile(str(spec), {"PreToolUse": [{"hooks": [spec]}]}) for spec in (one, other)]
    assert len(ShellHooks(files).chosen("PreToolUse", "Bash")) == (1 if same else 2)


@pytest.mark.parametrize(("former", "now"), FORMER.items())
def test_a_former_name_of_a_tool_means_the_present_one(former: str, now: str):
    assert matcher(former)(now)
    assert matcher(f"^{former}$")(now)
    assert matcher(now)(former)


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        (r"^tool\d$", "tool3", True),
        (r"^tool\d$", "tool\N{ARABIC-INDIC DIGIT THREE}", False),  # Python's \d takes it
        (r"^\w+$", "gr\N{LATIN SMALL LETTER U WITH DIAERESIS}n", False),  # and its \w
        (r"(?<=mcp__)memory", "mcp__memory__get", True),
        (r"(?<tool>Write|Edit)$", "NotebookEdit", True),
        (r"^(?!mcp__).*$", "mcp__memory__get", False),
        (r"^[^]$", "x", True),  # anything at all in JavaScript, an error in Python
        (r"mcp__memory", "mcp__memory__get", False),
        (r"mcp__memory__.*", "mcp__memory__get", True),
        (r"a$", "a\n", False),  # Python's $ stands before a last line feed
    ],
)
def test_a_matcher_is_a_javascript_expression_and_none_of_pythons(
    text: str, name: str, expected: bool
):
    assert matcher(text)(name) == expected


@pytest.mark.parametrize(
    ("event", "text", "expected"),
    [
        ("StopFailure", "rate_limit|overloaded", True),
        ("StopFailure", "rate_limit, overloaded", False),  # an expression, with a comma in it
        ("Notification", "rate_limit, overloaded", True),
        ("StopFailure", "rate-limit|rate_limit", True),
        ("FileChanged", "rate_limit", True),
        ("FileChanged", "rate_l", False),
        ("FileChanged", "rate.l", True),
    ],
)
def test_where_names_are_taken_literally_fewer_characters_make_a_list(
    event: str, text: str, expected: bool
):
    groups = [{"matcher": text, "hooks": [command("x")]}]
    hooks = ShellHooks([HookFile("f", {event: groups})])
    assert bool(hooks.chosen(event, "rate_limit")) == expected
