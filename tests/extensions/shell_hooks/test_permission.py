"""What a PermissionRequest hook may change: arguments, rules, mode, directories."""

from __future__ import annotations

from typing import Any

import pytest
from tests.extensions.shell_hooks.conftest import Stage, given, specific

from crow.core.catalog import Mode
from crow.extensions import PermissionsHook
from crow.testing import call

WRITE = call("Write", file_path="made.txt", content="x")
TOUCH = call("Bash", command="touch made.txt")


def answer(**decision: Any) -> dict[str, Any]:
    return specific("PermissionRequest", decision={"behavior": "allow", **decision})


async def test_the_rewritten_call_runs_where_no_rule_is_against_it(stage: Stage):
    rewritten = {"file_path": str(stage.cwd / "other.txt"), "content": "rewritten"}
    stage.on("PermissionRequest", says=answer(updatedInput=rewritten))
    seen = stage.on("PostToolUse")
    await stage.run(WRITE, "Ok.", hooks=[PermissionsHook()])
    assert (stage.cwd / "other.txt").read_text() == "rewritten"
    assert not (stage.cwd / "made.txt").exists()
    assert given(seen)[0]["tool_input"] == rewritten


@pytest.mark.parametrize("behaviour", ["deny", "ask"])
async def test_deny_and_ask_rules_judge_the_rewritten_call(stage: Stage, behaviour: str):
    stage.on("PermissionRequest", says=answer(updatedInput={"command": "rm made.txt"}))
    (stage.cwd / "made.txt").write_text("")
    rules: Any = {behaviour: ["Bash(rm *)"]}
    await stage.run(TOUCH, "Ok.", hooks=[PermissionsHook(**rules)])
    assert (stage.cwd / "made.txt").exists()
    assert len(stage.person.asked) == (behaviour == "ask")
    if behaviour == "ask":
        assert stage.person.asked[0].args == {"command": "rm made.txt"}
    else:
        assert "the rule Bash(rm *) denies it" in stage.told()


async def test_a_rewrite_that_does_not_fit_the_tool_is_refused(stage: Stage):
    stage.on("PermissionRequest", says=answer(updatedInput={"nothing": "fits"}))
    await stage.run(TOUCH, "Ok.", hooks=[PermissionsHook()])
    assert "command: missing" in stage.told()


async def test_the_hook_is_offered_the_rule_that_would_answer_and_can_have_it_kept(stage: Stage):
    saved: list[Any] = []
    suggested = {
        "type": "addRules",
        "rules": [{"toolName": "Bash", "ruleContent": "touch made.txt"}],
        "behavior": "allow",
        "destination": "localSettings",
    }
    seen = stage.on("PermissionRequest", says=answer(updatedPermissions=[suggested]))
    permissions = PermissionsHook(save=lambda rule, behaviour: saved.append((rule, behaviour)))
    reply = await stage.run(TOUCH, TOUCH, "Ok.", hooks=[permissions])
    [event] = given(seen)
    assert event["permission_suggestions"] == [suggested]
    assert saved == [("Bash(touch made.txt)", "allow")]
    assert reply.session.state["permissions"]["allow"] == ["Bash(touch made.txt)"]


async def test_mode_and_directories_change_but_nobody_is_let_off_all_questions(stage: Stage):
    more = str(stage.scripts)
    updates: list[Any] = [
        {"type": "setMode", "mode": "bypassPermissions", "destination": "session"},
        {"type": "setMode", "mode": "plan", "destination": "session"},
        {
            "type": "addDirectories",
            "directories": [more, "/no/such", "/"],
            "destination": "session",
        },
        {"type": "removeDirectories", "directories": ["/", 1], "destination": "session"},
        {"type": "removeRules", "rules": [], "behavior": "deny", "destination": "session"},
        {"type": "addRules", "rules": [{"toolName": "Bash("}], "behavior": "deny"},
        {"type": "addRules", "rules": [{"toolName": "Read"}], "behavior": "deny"},
    ]
    stage.on("PermissionRequest", says=answer(updatedPermissions=updates))
    async with stage.agent(TOUCH, "Ok.", hooks=[PermissionsHook()]) as agent:
        for name in ("plan", "bypassPermissions"):
            agent.add_mode(Mode(name, name, ""))
        reply = await agent.run("Go", cwd=stage.cwd, client=stage.person)
    session = reply.session
    assert (session.mode, session.directories) == ("plan", (more,))
    assert session.state["permissions"] == {"deny": ["Read"]}
    assert "the mode bypassPermissions is not a hook's to choose" in stage.person.notices
    assert "removeRules is not done by Crow" in stage.person.notices
