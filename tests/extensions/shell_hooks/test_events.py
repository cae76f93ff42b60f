"""Every event whose moment exists fires, with its fields; the others say why they never do."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.extensions.shell_hooks.conftest import Stage, given, runs_of, specific

from crow import Agent, tool
from crow.core.agent import Agent as CoreAgent
from crow.core.catalog import Command
from crow.core.errors import ModelError
from crow.core.hooks.context import Context
from crow.core.hooks.contexts import NotificationContext
from crow.extensions import (
    CommandsHook,
    InstructionsHook,
    McpHook,
    PermissionsHook,
    PlanHook,
    SubagentsHook,
    SystemPromptHook,
)
from crow.extensions.mcp.elicitation import elicit
from crow.extensions.shell_hooks.event import EVENTS
from crow.testing import ScriptedModel, call, text

COMMON = {"session_id", "transcript_path", "cwd", "hook_event_name"}
WRITE = call("Write", file_path="made.txt", content="x")
ABSENT = {"TeammateIdle"}


def test_all_33_names_load_and_those_that_cannot_fire_say_why(stage: Stage):
    for name in EVENTS:
        stage.on(name)
    hooks = stage.hooks()
    assert len(hooks.entries) == len(EVENTS) == 33
    assert hooks.warnings == []
    silent = {entry.event.name: entry.inactive for entry in hooks.entries if entry.inactive}
    assert set(silent) == ABSENT
    assert all("never fires" in reason for reason in silent.values())
    agent = Agent(llm=ScriptedModel(), hooks=[PlanHook(), InstructionsHook(), hooks], tools=[])
    waiting = {event: extension for event, _, extension in agent.hooks.waiting}
    assert waiting == {
        "Elicitation": "mcp",
        "ElicitationResult": "mcp",
        "FileChanged": "file_watcher",
        "DirectoryAdded": "commands",
        "Setup": "setup",
    }


async def test_a_run_with_a_tool_call_fires_its_events_in_this_order_with_these_fields(
    stage: Stage,
):
    path = stage.scripts / "all"
    for name in EVENTS:
        stage.handle(name, {"type": "command", "command": f"cat >> {path}"})
    await stage.run(WRITE, "Ok.", prompt="Please")
    events = given(path)
    assert [event["hook_event_name"] for event in events] == [
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PostToolBatch",
        "MessageDisplay",
        "Stop",
        "SessionEnd",
    ]
    assert all(event.keys() >= COMMON for event in events)
    start, prompt, before, after, batch, shown, stop, end = (
        {key: value for key, value in event.items() if key not in COMMON} for event in events
    )
    assert start == {"source": "startup", "model": "scripted"}
    prompt_id = prompt.pop("prompt_id")
    assert prompt == {"permission_mode": "default", "prompt": "Please", "source": "user"}
    for event in (before, after, batch, shown, stop):
        assert event.pop("prompt_id") == prompt_id
    args = {"file_path": str(stage.cwd / "made.txt"), "content": "x"}
    tool_call = {"tool_name": "Write", "tool_input": args, "tool_use_id": "call_1"}
    assert before == {"permission_mode": "default", **tool_call}
    assert after.pop("duration_ms") >= 0
    assert after.pop("tool_response")["type"] == "create"
    assert after == {"permission_mode": "default", **tool_call}
    [done] = batch["tool_calls"]
    assert isinstance(done.pop("tool_response"), str)
    assert done == tool_call
    assert (shown["delta"], shown["index"], shown["final"]) == ("Ok.", 0, True)
    assert stop == {
        "permission_mode": "default",
        "stop_hook_active": False,
        "last_assistant_message": "Ok.",
        "background_tasks": [],
        "session_crons": [],
    }
    assert end["reason"] == "other"


async def test_a_failing_tool_fires_post_tool_use_failure_with_its_error(stage: Stage):
    seen = stage.on(
        "PostToolUseFailure", says=specific("PostToolUseFailure", additionalContext="hm")
    )
    other = stage.on("PostToolUse")
    await stage.run(call("Bash", command="echo no >&2; exit 3"), "Ok.")
    [event] = given(seen)
    assert event["error"].splitlines()[0] == "Exit code 3"
    assert event["is_interrupt"] is False
    assert given(other) == []
    assert "PostToolUseFailure:Bash hook additional context: hm" in stage.told()


async def test_a_call_that_cannot_run_at_all_is_no_failure_of_the_tool(stage: Stage):
    seen = stage.on("PostToolUseFailure")
    await stage.run(call("Write", nothing="fits"), call("NoSuchTool"), "Ok.")
    assert given(seen) == []


async def test_a_denied_call_fires_permission_denied_with_the_reason(stage: Stage):
    seen = stage.on("PermissionDenied", matcher="Write")
    await stage.run(WRITE, "Ok.", hooks=[PermissionsHook(deny=["Write"])])
    [event] = given(seen)
    assert "the rule Write denies it" in event["reason"]


@pytest.mark.parametrize(
    ("decision", "runs", "told"),
    [
        ({"behavior": "allow"}, True, ""),
        ({"behavior": "deny", "message": "never"}, False, "never"),
        ({"behavior": "allow", "updatedInput": {"file_path": "other"}}, False, "content: missing"),
    ],
)
async def test_permission_request_answers_in_the_users_place(
    stage: Stage, decision: Any, runs: bool, told: str
):
    seen = stage.on("PermissionRequest", says=specific("PermissionRequest", decision=decision))
    await stage.run(WRITE, "Ok.", hooks=[PermissionsHook()])
    [event] = given(seen)
    assert "tool_use_id" not in event
    assert (stage.cwd / "made.txt").exists() == runs
    assert told in stage.told()


async def test_deny_beats_allow_at_permission_request_and_interrupt_ends_the_run(stage: Stage):
    for behaviour in (
        {"behavior": "allow"},
        {"behavior": "deny", "message": "m", "interrupt": True},
    ):
        stage.on("PermissionRequest", says=specific("PermissionRequest", decision=behaviour))
    reply = await stage.run(WRITE, hooks=[PermissionsHook()])
    assert reply.stop_reason == "hook_stopped"
    assert not (stage.cwd / "made.txt").exists()


async def test_a_prompt_that_is_blocked_is_explained_to_the_user_and_not_to_the_model(
    stage: Stage,
):
    stage.on("UserPromptSubmit", says={"decision": "block", "reason": "no secrets"})
    reply = await stage.run(prompt="password: x")
    assert reply.stop_reason == "refusal"
    assert "no secrets" in stage.person.notices
    assert stage.model.asked == []
    assert reply.session.messages == []


async def test_session_start_and_prompt_hooks_give_context_as_text_or_json(stage: Stage):
    stage.on("SessionStart", says="from the start")
    stage.on("UserPromptSubmit", says="from the prompt")
    said = specific("UserPromptSubmit", additionalContext="as JSON", sessionTitle="A title")
    stage.on("UserPromptSubmit", says=said)
    reply = await stage.run("Ok.")
    for context in ("from the start", "from the prompt", "as JSON"):
        assert context in stage.told(0)
    assert reply.session.title == "A title"


async def test_a_session_start_matcher_looks_at_the_source(stage: Stage):
    started = stage.on("SessionStart", matcher="startup")
    resumed = stage.on("SessionStart", matcher="resume")
    await stage.run("Ok.")
    assert len(given(started)) == 1
    assert given(resumed) == []


async def test_clear_ends_and_starts_the_session_for_hooks(stage: Stage):
    ended, started = stage.on("SessionEnd"), stage.on("SessionStart")
    async with stage.agent("Ok.", hooks=[CommandsHook()]) as agent:
        reply = await agent.run("Hi", cwd=stage.cwd)
        await agent.run("/clear", session=reply.session)
    assert [event["reason"] for event in given(ended)] == ["clear", "other"]
    assert [event["source"] for event in given(started)] == ["startup", "clear"]


async def test_compaction_asks_before_and_tells_after(stage: Stage):
    before, after = stage.on("PreCompact"), stage.on("PostCompact")
    started = stage.on("SessionStart", matcher="compact", says="remember this")
    async with stage.agent("Ok.", "Ok.") as agent:
        agent.add_command(Command("shorten", "", shorten))
        reply = await agent.run("Hi", cwd=stage.cwd)
        await agent.run("/shorten", session=reply.session)
        await agent.run("And?", session=reply.session)
    assert given(before)[0]["trigger"] == "manual"
    assert given(after)[0]["compact_summary"] == "What was said."
    assert len(given(started)) == 1
    assert "remember this" in json.dumps(stage.model.asked[1]["messages"])


async def shorten(ctx: Any) -> None:
    await ctx.compact([], "What was said.")


async def test_a_sub_agent_that_compacts_tells_both_and_starts_no_session(stage: Stage):
    before, after = stage.on("PreCompact"), stage.on("PostCompact")
    started = stage.on("SessionStart", matcher="compact")

    class Short:
        async def after_turn(self, ctx: Any) -> None:
            if ctx.session.parent is not None:
                await ctx.compact([], "What was said.")

    short = SubagentsHook((), inherit=["short", "shell_hooks"])
    task = call("Agent", description="Look", prompt="Look")
    await stage.run(task, "Done.", "Ok.", hooks=[Short(), short])
    assert [event["trigger"] for event in given(before)] == ["manual"]
    assert [event["agent_type"] for event in given(after)] == ["general-purpose"]
    assert given(started) == []


async def test_an_added_directory_is_told_of_before_a_session_ends(stage: Stage):
    seen = stage.on("DirectoryAdded", "sleep 0.1; touch told")
    async with stage.agent(hooks=[CommandsHook()]) as agent:
        reply = await agent.run(f"/add-dir {stage.scripts}", cwd=stage.cwd)
        assert await agent.extensions["shell_hooks"].settle(reply.session) == []
        assert (stage.cwd / "told").exists()
    assert given(seen)[0]["directory"] == str(stage.scripts)


async def test_a_pre_compact_hook_can_keep_the_history(stage: Stage):
    stage.on("PreCompact", stderr="not now", code=2)
    async with stage.agent("Ok.") as agent:
        agent.add_command(Command("shorten", "", shorten))
        reply = await agent.run("Hi", cwd=stage.cwd, client=stage.person)
        await agent.run("/shorten", session=reply.session)
        assert reply.session.segment == 0
    assert stage.person.notices == "PreCompact hook: not now"


async def test_a_command_can_be_refused_before_it_expands(stage: Stage):
    seen = stage.on("UserPromptExpansion", matcher="shorten", stderr="no", code=2)
    async with stage.agent() as agent:
        agent.add_command(Command("shorten", "", shorten))
        reply = await agent.run("/shorten it now", cwd=stage.cwd)
    assert reply.stop_reason == "refusal"
    [event] = given(seen)
    assert event["command_name"] == "shorten"
    assert event["command_args"] == "it now"
    assert event["prompt"] == "/shorten it now"


async def test_a_model_switch_can_be_refused_asked_about_and_watched(stage: Stage):
    before = stage.on("PreModelSwitch", matcher="big", stderr="too dear", code=2)
    stage.on(
        "PreModelSwitch",
        matcher="middle",
        says=specific("PreModelSwitch", permissionDecision="ask"),
    )
    after = stage.on("PostModelSwitch", says="the model is new")
    async with stage.agent("Ok.") as agent:
        session = await agent.new_session(stage.cwd, client=stage.person)
        assert await agent.configure(session, model="big") == "too dear"
        assert await agent.configure(session, model="middle") == "the user said no"
        assert await agent.configure(session, model="small") is None
        await agent.run("Hi", session=session)
    assert given(before)[0]["from_model"] == "scripted"
    [event] = given(after)
    assert (event["from_model"], event["to_model"]) == ("scripted", "small")
    assert "the model is new" in stage.told(0)


async def test_a_model_switch_is_refused_where_its_hook_takes_too_long(stage: Stage):
    stage.on("PreModelSwitch", "sleep 60", timeout=0.1)
    async with stage.agent() as agent:
        session = await agent.new_session(stage.cwd)
        assert "took longer" in str(await agent.configure(session, model="big"))


async def test_a_run_that_fails_fires_stop_failure_with_the_kind_of_error(stage: Stage):
    seen, stop = stage.on("StopFailure", matcher="rate_limit"), stage.on("Stop")
    with pytest.raises(ModelError):
        await stage.run(ModelError("slow down", kind="rate_limit"))
    [event] = given(seen)
    assert (event["error"], event["error_details"]) == ("rate_limit", "slow down")
    assert given(stop) == []


async def test_an_answer_that_was_cut_off_fires_stop_failure_and_not_stop(stage: Stage):
    seen, stop = stage.on("StopFailure", matcher="max_output_tokens"), stage.on("Stop", code=2)
    reply = await stage.run(text("Once upon a", finish="length"))
    assert reply.stop_reason == "max_tokens"
    assert given(seen)[0]["error_details"].startswith("the answer is longer")
    assert given(stop) == []


async def test_a_question_to_the_user_fires_a_notification(stage: Stage):
    seen = stage.on("Notification", matcher="permission_prompt")
    other = stage.on("Notification", matcher="idle_prompt")
    async with stage.agent(WRITE, "Ok.", hooks=[PermissionsHook()]) as agent:
        await agent.run("Go", cwd=stage.cwd, client=stage.person)
        await runs_of(seen, 1)
    [told] = given(seen)
    assert told["message"] == "Claude needs your permission to use Write"
    assert given(other) == []


async def test_where_nobody_can_answer_a_question_nobody_is_called_to_it(stage: Stage):
    asked = stage.on("PermissionRequest")
    seen: list[str] = []

    def on_notification(ctx: NotificationContext) -> None:
        seen.append(ctx.kind)

    hooks = [PermissionsHook(), on_notification]
    async with stage.agent(WRITE, "Ok.", WRITE, "Ok.", hooks=hooks) as agent:
        await agent.run("Go", cwd=stage.cwd)
        assert len(given(asked)) == 1
        assert "permission_prompt" not in seen
        await agent.run("Go", cwd=stage.cwd, client=stage.person)
        assert "permission_prompt" in seen


async def test_a_question_does_not_wait_for_the_hooks_that_tell_of_it(stage: Stage):
    gate = stage.scripts / "gate"
    os.mkfifo(gate)
    seen = stage.on("Notification", f"cat {gate}; echo '{{}}' >> {gate}.seen")
    stage.person.answer = "allow_once"
    async with stage.agent(WRITE, "Ok.", hooks=[PermissionsHook()]) as agent:
        await agent.run("Go", cwd=stage.cwd, client=stage.person)
        assert (stage.cwd / "made.txt").exists()
        assert not gate.with_suffix(".seen").exists()
        await asyncio.to_thread(gate.write_text, "")
        await runs_of(gate.with_suffix(".seen"), 1)
    assert len(given(seen)) == 1


async def test_steps_of_the_plan_can_be_refused(stage: Stage):
    stage.on("TaskCreated", says={"decision": "block", "reason": "no tests planned"})
    plan = call("TodoWrite", todos=[{"content": "Work", "status": "pending"}])
    await stage.run(plan, "Ok.", hooks=[PlanHook()])
    assert "no tests planned" in stage.told()


async def test_instruction_files_are_told_of(stage: Stage):
    (stage.cwd / "CLAUDE.md").write_text("Be kind.")
    seen = stage.on("InstructionsLoaded", matcher="session_start")
    await stage.run("Ok.", hooks=[SystemPromptHook(), InstructionsHook()])
    assert [event["file_path"] for event in given(seen)] == [str(stage.cwd / "CLAUDE.md")]


async def test_a_sub_agent_fires_the_hooks_with_its_id_and_type(stage: Stage):
    path = stage.scripts / "all"
    for name in EVENTS:
        stage.handle(name, {"type": "command", "command": f"cat >> {path}"})
    stage.on("SubagentStart", says=specific("SubagentStart", additionalContext="be brief"))
    task = call("Agent", description="A task", prompt="Do it")
    lines = (task, call("Read", file_path="a.txt"), "Done.", "Ok.")
    (stage.cwd / "a.txt").write_text("a")
    await stage.run(*lines, hooks=[SubagentsHook(())])
    events = given(path)
    inner = [event for event in events if "agent_id" in event]
    assert [event["hook_event_name"] for event in inner] == [
        "SubagentStart",
        "PreToolUse",
        "PostToolUse",
        "PostToolBatch",
        "MessageDisplay",
        "SubagentStop",
    ]
    assert {event["agent_type"] for event in inner} == {"general-purpose"}
    assert len({event["session_id"] for event in events}) == 1
    assert "be brief" in stage.told(1)
    stop = inner[-1]
    assert stop["last_assistant_message"] == "Done."
    transcript = stop["agent_transcript_path"]
    assert transcript.endswith(f"/{stop['session_id']}/subagents/agent-{stop['agent_id']}.jsonl")
    lines_of = [json.loads(line) for line in Path(transcript).read_text().splitlines()]
    assert all(line["isSidechain"] for line in lines_of)
    assert lines_of[-1]["message"]["content"][0]["text"] == "Done."
    outer = [event["hook_event_name"] for event in events if "agent_id" not in event]
    assert outer.count("PreToolUse") == outer.count("PostToolUse") == outer.count("Stop") == 1


async def test_a_sub_agents_call_can_be_denied_and_its_end_kept_off(stage: Stage):
    stage.on("PreToolUse", matcher="Write", stderr="not you", code=2)
    command = """grep -q '"stop_hook_active":true' || { echo 'say more' >&2; exit 2; }"""
    stage.handle("SubagentStop", {"type": "command", "command": command})
    task = call("Agent", description="A task", prompt="Do it")
    await stage.run(task, WRITE, "Done.", "Really done.", "Ok.", hooks=[SubagentsHook(())])
    assert not (stage.cwd / "made.txt").exists()
    assert "SubagentStop hook feedback:\nsay more" in stage.told(3)
    assert stage.told(4).endswith("Really done.")


def test_nothing_hangs_where_no_entry_is_for_it(stage: Stage):
    stage.on("PreToolUse")
    agent = CoreAgent(llm=ScriptedModel(), hooks=[stage.hooks()], tools=[])
    hung = {hook.event for hook in agent.hooks}
    assert hung == {"before_run", "before_tool", "after_llm_response", "after_tool"}


async def test_a_step_of_the_plan_can_be_kept_from_being_completed(stage: Stage):
    seen = stage.on("TaskCompleted", stderr="the tests fail", code=2)
    todo = {"content": "Work", "status": "completed", "activeForm": "Working"}
    await stage.run(call("TodoWrite", todos=[todo]), "Ok.", hooks=[PlanHook()])
    assert "the tests fail" in stage.told()
    assert given(seen)[0]["task_subject"] == "Work"
    assert given(seen)[0]["task_description"] == "Working"


QUESTION = {"message": "Who?", "mode": "form", "requested_schema": {"type": "object"}}
YES = {"action": "accept", "content": {"name": "Ann"}}


@pytest.mark.parametrize(
    ("event", "says", "code", "expected"),
    [
        ("Elicitation", specific("Elicitation", **YES), 0, ("accept", {"name": "Ann"})),
        ("Elicitation", None, 2, ("decline", None)),
        ("ElicitationResult", specific("ElicitationResult", **YES), 0, ("accept", {"name": "Ann"})),
        ("ElicitationResult", None, 2, ("decline", None)),
        ("Elicitation", {}, 0, ("cancel", None)),
    ],
)
async def test_a_servers_question_can_be_answered_or_declined(
    stage: Stage, event: str, says: Any, code: int, expected: Any
):
    seen = stage.on(event, says=says, code=code, matcher="the-server")
    async with stage.agent(hooks=[McpHook({})]) as agent:
        session = await agent.new_session(stage.cwd)
        assert await elicit(Context(agent, session), "the-server", QUESTION) == expected
    [asked] = given(seen)
    assert asked["mcp_server_name"] == "the-server"
    assert asked.get("message", asked.get("action")) in ("Who?", "cancel")


@pytest.mark.parametrize("field", ["updatedToolOutput", "updatedMCPToolOutput"])
async def test_the_output_of_a_servers_tool_is_replaced_whatever_its_shape(
    stage: Stage, field: str
):
    @tool(name="mcp__memory__get")
    def get() -> str:
        """Get."""
        return "secret"

    value = [{"type": "text", "text": "public"}, {"type": "text", "text": "indeed"}]
    seen = stage.on("PostToolUse", says=specific("PostToolUse", **{field: value}))
    await stage.run(call("mcp__memory__get"), "Ok.", tools=[get])
    assert stage.told().endswith("public\nindeed")
    assert given(seen)[0]["mcp_server"]["name"] == "memory"
    assert given(seen)[0]["tool_response"] == "secret"
