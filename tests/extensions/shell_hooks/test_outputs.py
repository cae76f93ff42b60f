"""The table of exit statuses and outputs, and what happens where hooks contradict each other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given as over
from hypothesis import strategies as st
from tests.extensions.shell_hooks.conftest import Stage, given, specific, verdict

from crow.core.events import Notice
from crow.extensions import PermissionsHook, SkillsHook, SystemPromptHook
from crow.extensions.shell_hooks.event import EVENTS
from crow.extensions.shell_hooks.output import read
from crow.testing import call

WRITE = call("Write", file_path="made.txt", content="x")
BLOCK = {"decision": "block", "reason": "because"}
FAULTY: Any = {"decision": "maybe"}


@pytest.mark.parametrize(
    ("code", "says", "runs", "told", "notice"),
    [
        (0, verdict("deny", "because"), False, "because", ""),
        (0, BLOCK, False, "because", ""),
        (0, {"decision": "approve"}, True, "", ""),
        (0, FAULTY, False, "could not decide", "'decision' must be one of"),
        (0, '{"decision": ', False, "could not decide", "no JSON"),
        (0, "{broken}", False, "could not decide", "no JSON"),
        (0, "{broken", False, "could not decide", "no JSON"),
        (0, "{ 'decision': 'block'", False, "could not decide", "no JSON"),
        (0, "{} and text", True, "", ""),
        (0, '{"systemMessage": 3}', True, "", "'systemMessage' has the wrong type"),
        (0, "plain text", True, "", ""),
        (0, '["deny"]', True, "", ""),
        (0, "", True, "", ""),
        (2, verdict("deny", "because"), False, "because", ""),
        (2, {"systemMessage": "look"}, False, "stderr text", "look"),
        (2, FAULTY, False, "stderr text", ""),
        (2, "{broken}", False, "stderr text", ""),
        (2, "plain text", False, "stderr text", ""),
        (7, BLOCK, False, "because", ""),
        (7, {}, True, "", ""),
        (7, FAULTY, False, "could not decide", "'decision' must be one of"),
        (7, "{broken}", False, "could not decide", "no JSON"),
        (7, "plain text", True, "", "failed: exit status 7: stderr text"),
        (7, "", True, "", "failed: exit status 7: stderr text"),
        (0, {"continue": "no"}, False, "could not decide", "'continue' has the wrong type"),
        (0, {"hookSpecificOutput": {"permissionDecision": "deny"}}, False, "", "'hookEventName'"),
        (0, {"hookSpecificOutput": {"permissionDecision": "allow"}}, True, "", "'hookEventName'"),
        (0, {"hookSpecificOutput": "deny"}, False, "", "'hookSpecificOutput' has the wrong type"),
        (0, specific("PostToolUse"), True, "", "'hookEventName' must be 'PreToolUse'"),
        (0, verdict("alow"), False, "could not decide", "'permissionDecision' must be one of"),
        (0, {"decision": 1}, False, "could not decide", "'decision' must be one of"),
        (0, {"continue": 1.0}, False, "could not decide", "'continue' has the wrong type"),
        (0, {"permissionDecision": "deny"}, False, "could not decide", "must stand in"),
        (0, {"permissionDecision": "allow"}, True, "", ""),
        (0, verdict("allow") | {"permissionDecision": "deny"}, True, "", ""),
        (0, specific("PreToolUse", decision="block"), False, "could not decide", "must stand"),
        (0, verdict("allow", decision="approve"), True, "", ""),
        (0, BLOCK | specific("PreToolUse", decision="block"), False, "because", ""),
        (0, "\ufeff" + json.dumps(BLOCK), False, "because", ""),
        (0, verdict("deny", unknownKey=1), False, "denied by a hook", ""),
    ],
)
async def test_the_table_before_a_tool(
    stage: Stage, code: int, says: Any, runs: bool, told: str, notice: str
):
    stage.on("PreToolUse", says=says, code=code, stderr="stderr text\nmore" if code else "")
    await stage.run(WRITE, "Ok.")
    assert (stage.cwd / "made.txt").exists() == runs
    assert told in stage.told()
    assert notice in stage.person.notices
    assert bool(notice) == bool(stage.person.notices)


async def test_a_decision_in_the_wrong_place_is_nobodys_error_but_the_hooks_that_made_it(
    stage: Stage,
):
    said = specific("PostToolUse", decision="block", additionalContext="lost")
    stage.on("PostToolUse", says=said)
    stage.on("PostToolUse", says=specific("PostToolUse", additionalContext="heard"))
    await stage.run(*([WRITE] * 4), "Ok.")
    assert stage.person.notices.count("'decision' must stand beside") == 4
    assert "shell_hooks" not in stage.person.notices
    assert stage.told(4).count("heard") == 4


@pytest.mark.parametrize("says", [FAULTY, "{broken}", '{"decision": "blo'])
@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("wish", [None, "continue", "block"])
async def test_an_answer_that_cannot_be_read_is_no_answer_and_no_consent(
    stage: Stage, own: bool, says: Any, wish: str | None
):
    more: dict[str, Any] = {"onFailure": wish} if wish else {}
    stage.on("PreToolUse", says=says, own=own, **more)
    await stage.run(WRITE, "Ok.")
    assert (stage.cwd / "made.txt").exists() == (wish == "continue")
    assert ("could not decide" in stage.told()) == (wish != "continue")


@pytest.mark.parametrize("own", [True, False])
async def test_a_guard_that_fails_lets_pass_in_claudes_files_and_blocks_in_crows_own(
    stage: Stage, own: bool
):
    stage.on("PreToolUse", code=7, own=own)
    await stage.run(WRITE, "Ok.")
    assert (stage.cwd / "made.txt").exists() == (not own)
    assert ("could not decide" in stage.told()) == own


async def test_output_that_is_longer_than_what_is_kept_is_no_consent(stage: Stage):
    stage.on("PreToolUse", says=verdict("deny", "x" * 1_100_000))
    await stage.run(WRITE, "Ok.")
    assert not (stage.cwd / "made.txt").exists()
    assert "could not decide: no JSON" in stage.told()


async def test_bytes_that_are_no_text_do_not_hide_a_refusal(stage: Stage):
    stage.on("PreToolUse", r"""printf '{"decision": "block", "reason": "caf\351"}'""")
    await stage.run(WRITE, "Ok.")
    assert stage.told().endswith("caf\N{REPLACEMENT CHARACTER}")


@pytest.mark.parametrize(
    ("event", "script", "kept"),
    [
        ("UserPromptSubmit", ["Ok."], "could not decide"),
        ("Stop", ["Ok."], ""),
        ("SubagentStop", ["Ok."], ""),
        ("PostToolUse", [WRITE, "Ok."], ""),
        ("PreCompact", ["Ok."], ""),
    ],
)
async def test_only_a_gate_is_closed_by_an_answer_that_cannot_be_read(
    stage: Stage, event: str, script: list[Any], kept: str
):
    stage.on(event, says='{"decision": "block", "reason": ')
    reply = await (stage.agent(*script)).run("Go", cwd=stage.cwd, client=stage.person)
    assert (reply.stop_reason == "refusal") == bool(kept)
    assert kept in reply.detail


@pytest.mark.parametrize("says", [FAULTY, "{broken}"])
async def test_a_permission_hook_that_cannot_be_read_leaves_the_question_to_the_user(
    stage: Stage, says: Any
):
    allow = specific("PermissionRequest", decision={"behavior": "allow"})
    stage.on("PermissionRequest", says=allow)
    stage.on("PermissionRequest", says=says)
    stage.person.answer = "reject_once"
    await stage.run(WRITE, "Ok.", hooks=[PermissionsHook()])
    assert len(stage.person.asked) == 1
    assert not (stage.cwd / "made.txt").exists()


OBJECTS = st.dictionaries(
    st.sampled_from(["decision", "reason", "continue", "systemMessage", "other"]),
    st.sampled_from(["block", "approve", "alow", True, False, None, 3, {}, []]),
)


@over(OBJECTS, st.integers(min_value=1, max_value=200), st.sampled_from(["", " ", "\n", "x"]))
def test_a_refusal_is_read_or_it_is_seen_that_it_cannot_be(
    table: dict[str, Any], cut: int, behind: str
):
    whole = json.dumps(table)
    event = EVENTS["PreToolUse"]
    if table.get("decision") == "block":
        output = read(event, whole + behind.strip("x"))
        assert output.get("decision") == "block" or output.unread
        beginning = read(event, whole[:cut] if cut < len(whole) else whole)
        assert beginning.fields is not None or beginning.unread or cut < 2
    output = read(event, whole + behind)
    assert not (output.fields is not None and output.fault)


@pytest.mark.parametrize(
    "handler",
    [
        {"type": "command", "command": "sleep 60", "timeout": 0.1},
        {"type": "command", "command": "/no/such/program", "args": []},
        {"type": "command", "command": "exit 1"},
        {"type": "command", "command": "kill -9 $$"},
        {"type": "http", "url": "http://127.0.0.1:1/"},
        {"type": "http", "url": "no url"},
        {"type": "mcp_tool", "server": "none", "tool": "none"},
    ],
)
@pytest.mark.parametrize("wish", ["block", "continue", "nonsense"])
async def test_on_failure_decides_what_a_failure_means(
    stage: Stage, handler: dict[str, Any], wish: str
):
    stage.handle("PreToolUse", {**handler, "onFailure": wish})
    await stage.run(WRITE, "Ok.")
    assert (stage.cwd / "made.txt").exists() == (wish == "continue")
    assert "failed: " in stage.person.notices


async def test_on_failure_never_keeps_a_finished_run_going(stage: Stage):
    stage.on("Stop", code=1, onFailure="block", own=True)
    await stage.run("Ok.")


@pytest.mark.parametrize(
    ("several", "runs", "asked"),
    [
        (["allow", "ask"], False, 1),
        (["ask", "allow", "deny"], False, 0),
        (["defer", "allow"], False, 1),
        (["allow", "deny", "defer"], False, 0),
        (["allow", "allow"], True, 0),
    ],
)
async def test_the_strictest_of_several_verdicts_stands(
    stage: Stage, several: list[Any], runs: bool, asked: int
):
    stage.person.answer = "reject_once"
    for permission in several:
        stage.on("PreToolUse", says=verdict(permission))
    await stage.run(WRITE, "Ok.", hooks=[PermissionsHook()])
    assert (stage.cwd / "made.txt").exists() == runs
    assert len(stage.person.asked) == asked


async def test_a_hook_that_asks_beats_an_allow_rule_and_is_refused_where_nothing_is_asked(
    stage: Stage,
):
    stage.on("PreToolUse", says=verdict("ask", "sure?"))
    async with stage.agent(WRITE, "Ok.", WRITE, "Ok.", hooks=[PermissionsHook(["Write"])]) as agent:
        session = await agent.new_session(stage.cwd, client=stage.person)
        await agent.run("Go", session=session)
        assert [request.reason for request in stage.person.asked] == ["sure?"]
        session.mode = "dontAsk"
        await agent.run("Go", session=session)
    assert len(stage.person.asked) == 1
    assert "sure?" in stage.told()


async def test_continue_false_ends_the_run_whatever_others_decide(stage: Stage):
    stage.on("PreToolUse", says=verdict("allow"))
    stage.on("PreToolUse", says={"continue": False, "stopReason": "enough for today"})
    reply = await stage.run([WRITE, call("Bash", command="true")])
    assert (reply.stop_reason, "enough for today" in reply.detail) == ("hook_stopped", True)
    assert not (stage.cwd / "made.txt").exists()
    assert reply.session.unanswered() == []


@pytest.mark.parametrize("event", ["PostToolUse", "PostToolBatch"])
async def test_continue_false_after_a_tool_ends_the_run(stage: Stage, event: str):
    stage.on(event, says={"continue": False, "stopReason": "enough"})
    reply = await stage.run(WRITE)
    assert (reply.stop_reason, "enough" in reply.detail) == ("hook_stopped", True)
    assert (stage.cwd / "made.txt").exists()


async def test_continue_false_at_the_end_beats_a_block(stage: Stage):
    stage.on("Stop", says=BLOCK)
    stage.on("Stop", says={"continue": False, "stopReason": "enough"})
    reply = await stage.run("Ok.")
    assert reply.stop_reason == "hook_stopped"


async def test_all_contexts_and_all_reasons_are_handed_over(stage: Stage):
    for text in ("one", "two"):
        stage.on("PostToolUse", says=specific("PostToolUse", additionalContext=f"context {text}"))
        stage.on("PostToolUse", says={"decision": "block", "reason": f"reason {text}"})
    stage.on("PostToolUse", stderr="reason three", code=2)
    await stage.run(WRITE, "Ok.")
    for text in ("context one", "context two", "reason one", "reason two", "reason three"):
        assert text in stage.told()


async def test_stop_hooks_feed_back_all_their_reasons_and_their_context(stage: Stage):
    once = """grep -q '"stop_hook_active":true' && exit 0;"""
    for text in ("run the tests", "write the docs"):
        command = f"{once} echo '{text}' >&2; exit 2"
        stage.handle("Stop", {"type": "command", "command": command})
    said = json.dumps(specific("Stop", additionalContext="by the way"))
    stage.handle("Stop", {"type": "command", "command": f"{once} echo '{said}'"})
    await stage.run("Ok.", "Done.")
    assert "Stop hook feedback:\nrun the tests\nwrite the docs\nby the way" in stage.told()


async def test_rewrites_are_joined_in_the_configured_order_whoever_is_first(stage: Stage):
    path = str(stage.cwd / "made.txt")
    first = {"file_path": path, "content": "first"}
    stage.on("PreToolUse", "sleep 0.1", says=verdict("allow", updatedInput=first))
    moved = {"file_path": str(stage.cwd / "other.txt"), "content": "x"}
    stage.on("PreToolUse", says=verdict("allow", updatedInput=moved))
    seen = stage.on("PostToolUse")
    bash = call("Write", file_path="made.txt", content="x")
    await stage.run(bash, "Ok.")
    assert given(seen)[0]["tool_input"] == {**moved, "content": "first"}


async def test_the_output_of_a_tool_is_replaced_where_the_shape_fits(stage: Stage):
    shape = {"stdout": "replaced", "stderr": "", "interrupted": False, "isImage": False}
    stage.on("PostToolUse", says=specific("PostToolUse", updatedToolOutput=shape))
    await stage.run(call("Bash", command="echo secret"), "Ok.")
    assert stage.told().endswith("replaced")
    assert "secret" not in stage.told()


@pytest.mark.parametrize("value", ["text", {"stdout": 1}, {"other": "x"}])
async def test_an_output_of_another_shape_is_left_out_and_said_so(stage: Stage, value: Any):
    stage.on("PostToolUse", says=specific("PostToolUse", updatedToolOutput=value))
    await stage.run(call("Bash", command="echo plain"), "Ok.")
    assert "plain" in stage.told()
    assert "has not the shape" in stage.person.notices


async def test_messages_for_the_user_are_shown_and_not_told_to_the_model(stage: Stage):
    stage.on("PostToolUse", says={"systemMessage": "mind the gap", "suppressOutput": True})
    await stage.run(WRITE, "Ok.")
    [notice] = [event for event in stage.person.events if isinstance(event, Notice)]
    assert (notice.text, notice.severity) == ("PostToolUse hook: mind the gap", "warning")
    assert "mind the gap" not in stage.told()


async def test_exit_2_at_session_start_is_shown_and_blocks_nothing(stage: Stage):
    stage.on("SessionStart", stderr="only so you know", code=2)
    await stage.run("Ok.")
    assert "only so you know" in stage.person.notices


async def test_crows_own_hooks_see_more_and_may_rewrite_the_prompt(stage: Stage):
    says = specific("UserPromptSubmit", updatedPrompt="Rewritten")
    seen = stage.on("UserPromptSubmit", says=says, own=True)
    plain = stage.on("UserPromptSubmit", says=specific("UserPromptSubmit", updatedPrompt="Never"))
    reply = await stage.run("Ok.")
    assert reply.session.messages[0]["content"] == "Rewritten"
    assert given(seen)[0]["model"] == "scripted"
    assert given(seen)[0].keys() - given(plain)[0].keys() == {"model", "usage", "context_tokens"}


async def test_a_single_call_that_is_put_off_ends_the_run_where_nobody_can_be_asked(stage: Stage):
    stage.on("PreToolUse", says=verdict("defer", "somebody has to look"))
    reply = await stage.run(WRITE)
    assert reply.stop_reason == "hook_stopped"
    assert "tool_deferred: Write: somebody has to look" in reply.detail
    assert not (stage.cwd / "made.txt").exists()
    assert reply.session.unanswered() == []


async def test_one_of_several_calls_that_is_put_off_is_denied_and_somebody_may_allow_it(
    stage: Stage,
):
    stage.on("PreToolUse", says=verdict("defer", "sure?"), matcher="Write")
    await stage.run([WRITE, call("Bash", command="true")], "Ok.")
    assert "nobody can be asked: sure?" in stage.told()
    stage.person.answer = "allow_once"
    await stage.run(WRITE, "Ok.")
    assert (stage.cwd / "made.txt").exists()


async def test_skills_that_a_session_start_hook_installs_are_there_at_once(stage: Stage):
    folder = stage.cwd / ".claude" / "skills" / "greet"
    install = (
        f"mkdir -p {folder}; "
        f"printf -- '---\\nname: greet\\ndescription: Greets people\\n---\\nSay hello.' > {folder}/SKILL.md"
    )
    stage.on("SessionStart", install, says=specific("SessionStart", reloadSkills=True))
    await stage.run("Ok.", hooks=[SystemPromptHook(), SkillsHook()])
    assert "Greets people" in json.dumps(stage.model.asked[0]["messages"])
