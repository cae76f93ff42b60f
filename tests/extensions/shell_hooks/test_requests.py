"""Crow's own events about the model, and what hooks may show in place of its text."""

from __future__ import annotations

from typing import Any

import pytest
from tests.extensions.shell_hooks.conftest import Stage, given, records, specific

from crow.core.events import TextDelta
from crow.extensions import PermissionsHook, PersistenceHook
from crow.extensions.shell_hooks import ShellHooks
from crow.project import HookFile
from crow.testing import call, text

WRITE = call("Write", file_path="made.txt", content="x")
USAGE: Any = {"input_tokens": 9, "output_tokens": 2, "total_tokens": 11}


async def test_the_model_is_watched_before_and_after_every_request(stage: Stage):
    before = stage.on("BeforeModel", own=True)
    after = stage.on("AfterModel", matcher="scripted", own=True)
    never = stage.on("AfterModel", matcher="another", own=True)
    await stage.run([WRITE], text("Ok.", usage=USAGE))
    first, second = given(before)
    assert (first["model"], first["message_count"], first["tool_count"] > 5) == (
        "scripted",
        1,
        True,
    )
    assert first["last_message"] == {"role": "user", "content": "Go"}
    assert second["last_message"]["role"] == "tool"
    assert {"usage", "context_tokens", "permission_mode", "prompt_id"} <= first.keys()
    called, said = given(after)
    assert [each["tool_name"] for each in called["tool_calls"]] == ["Write"]
    assert (said["last_assistant_message"], said["finish_reason"]) == ("Ok.", "stop")
    assert said["request_usage"] == USAGE
    assert said["duration_ms"] >= 0
    assert given(never) == []


async def test_a_hook_before_the_model_tells_it_something_in_this_very_request(stage: Stage):
    said = specific("BeforeModel", additionalContext="It is Saturday.")
    stage.on("BeforeModel", says=said, own=True)
    reply = await stage.run("Ok.")
    assert "It is Saturday." in stage.told(0)
    assert "It is Saturday." in str(reply.session.messages[1]["content"])
    assert reply.session.messages[-1]["content"] == "Ok."


@pytest.mark.parametrize(
    "says",
    [
        {"decision": "block", "reason": "out of budget"},
        {"continue": False, "stopReason": "out of budget"},
    ],
)
async def test_a_hook_before_the_model_can_end_the_run(stage: Stage, says: Any):
    stage.on("BeforeModel", says=says, own=True)
    reply = await stage.run()
    assert (reply.stop_reason, "out of budget" in reply.detail) == ("hook_stopped", True)
    assert stage.model.asked == []


async def test_a_hook_after_the_model_ends_the_run_before_its_calls_run(stage: Stage):
    stage.on("AfterModel", stderr="not that", code=2, own=True)
    reply = await stage.run([WRITE])
    assert (reply.stop_reason, "not that" in reply.detail) == ("hook_stopped", True)
    assert not (stage.cwd / "made.txt").exists()
    assert reply.session.unanswered() == []


async def test_a_hook_before_the_model_that_fails_ends_the_run(stage: Stage):
    stage.on("BeforeModel", code=1, own=True)
    reply = await stage.run()
    assert "could not decide" in reply.detail


def test_in_files_for_claude_code_these_are_no_events_and_do_no_harm():
    table: Any = {"BeforeModel": [{"hooks": [{"type": "command", "command": "true"}]}]}
    table["Stop"] = table["BeforeModel"]
    hooks = ShellHooks([HookFile(".claude/settings.json", table)])
    assert [entry.event.name for entry in hooks.entries] == ["Stop"]
    assert ["there is no hook event 'BeforeModel'" in line for line in hooks.warnings] == [True]


def deltas(stage: Stage) -> list[str]:
    return [event.text for event in stage.person.events if isinstance(event, TextDelta)]


async def test_what_the_user_sees_is_what_the_hook_shows_and_nothing_else_changes(stage: Stage):
    said = specific("MessageDisplay", displayContent="[hidden]")
    seen = stage.on("MessageDisplay", says=said)
    reply = await stage.run(["The key is ", "1234."])
    assert deltas(stage) == ["[hidden]"]
    assert reply.text == "The key is 1234."
    assert reply.session.messages[-1]["content"] == "The key is 1234."
    [event] = given(seen)
    assert (event["index"], event["final"], event["delta"]) == (0, True, "The key is 1234.")
    assert event["turn_id"] == event["prompt_id"]
    assert "permission_mode" not in event


async def test_whole_lines_go_to_the_hook_as_they_come(stage: Stage):
    seen = stage.on("MessageDisplay", matcher="matchers mean nothing here")
    written = "One\nTwo\nThree"
    await stage.run(["One\nT", "wo\nTh", "ree"])
    events = given(seen)
    assert events[0]["delta"] == "One\n"
    assert [event["index"] for event in events] == list(range(len(events)))
    assert [event["final"] for event in events] == [*[False] * (len(events) - 1), True]
    assert "".join(event["delta"] for event in events) == written
    assert "".join(deltas(stage)) == written
    assert len({event["message_id"] for event in events}) == 1


async def test_each_message_begins_anew_and_what_a_command_says_is_no_message(stage: Stage):
    seen = stage.on("MessageDisplay")
    await stage.run(["Let me see.\n", call("Bash", command="true")], "Ok.")
    assert [(event["index"], event["delta"]) for event in given(seen) if event["final"]] in (
        [(1, ""), (0, "Ok.")],
        [(0, "Let me see.\n"), (0, "Ok.")],
    )
    assert "".join(deltas(stage)) == "Let me see.\nOk."


async def test_what_was_held_back_of_an_answer_that_is_cut_off_is_shown_all_the_same(stage: Stage):
    seen = stage.on("MessageDisplay")

    def interrupt(ctx: Any) -> None:
        if "half" in getattr(ctx.update, "text", ""):
            ctx.run.cancel()

    async with stage.agent(["half an answer", " more"], hooks=[]) as agent:
        agent.hooks.register("on_update", interrupt, order=-1)
        reply = await agent.run("Go", cwd=stage.cwd, client=stage.person)
    assert reply.stop_reason == "cancelled"
    assert deltas(stage) == ["half an answer"]
    assert given(seen) == []


async def test_a_call_that_was_denied_may_be_tried_again_where_a_hook_says_so(stage: Stage):
    stage.on("PermissionDenied", says=specific("PermissionDenied", retry=True))
    reply = await stage.run(WRITE, "Ok.", hooks=[PermissionsHook(deny=["Write"])])
    assert "may be tried again" in stage.told()
    assert len(records(reply.session, "PermissionDenied")) == 1


@pytest.mark.parametrize(
    ("sequence", "obeyed"),
    [
        ("\x1b]0;A title\x07", True),
        ("\x1b]777;notify;Crow;done\x1b\\\x07", True),
        ("\x07", True),
        ("\x1b[2J", False),
        ("\x1b]52;c;aGk=\x07", False),
        ("\x1b]0;a\x1b[31m\x07", False),
        ("text", False),
    ],
)
async def test_a_terminal_gets_titles_and_bells_and_no_other_sequence(
    stage: Stage, sequence: str, obeyed: bool
):
    heard: list[str] = []
    stage.person.obey = heard.append  # type: ignore[attr-defined]
    stage.on("Stop", says={"terminalSequence": sequence})
    await stage.run("Ok.")
    assert heard == ([sequence] if obeyed else [])
    assert stage.person.notices == ""


async def test_pieces_that_wait_for_their_line_leave_nothing_in_the_store(stage: Stage):
    stage.on("MessageDisplay")
    hook = PersistenceHook(db_path=str(stage.scripts / "crow.db"))
    pieces: Any = ["a "] * 50
    async with stage.agent(pieces, hooks=[hook]) as agent:
        reply = await agent.run("Go", cwd=stage.cwd, client=stage.person)
        exported = await hook.store.export(reply.session.id)
    assert deltas(stage) == ["a " * 50]
    assert "MessageDisplay" in exported
    assert "on_update" not in exported
