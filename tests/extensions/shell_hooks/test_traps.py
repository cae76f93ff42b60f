"""The traps that a compatible implementation must get right, each with real scripts in the loop."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.extensions.shell_hooks.conftest import Stage, given, records, runs_of, specific, verdict
from tests.processes import is_alive, until

from crow import tool
from crow.extensions import PermissionsHook
from crow.testing import call

WRITE = call("Write", file_path="made.txt", content="x")


def made(stage: Stage) -> bool:
    return (stage.cwd / "made.txt").exists()


async def test_exit_1_with_a_valid_deny_on_standard_output_does_deny(stage: Stage):
    stage.on("PreToolUse", says=verdict("deny", "not today"), code=1)
    await stage.run(WRITE, "Ok.")
    assert stage.told().endswith("not today")
    assert not made(stage)


async def test_exit_1_with_an_object_that_has_no_decision_does_not_deny(stage: Stage):
    stage.on("PreToolUse", says={"result": "block"}, code=1)
    await stage.run(WRITE, "Ok.")
    assert made(stage)


async def test_exit_2_denies_even_with_an_allow_in_json(stage: Stage):
    stage.on("PreToolUse", says=verdict("allow"), stderr="no way", code=2)
    await stage.run(WRITE, "Ok.")
    assert stage.told().endswith("no way")
    assert not made(stage)


async def test_exit_2_of_one_hook_beats_the_allow_of_another(stage: Stage):
    stage.on("PreToolUse", stderr="no way", code=2)
    stage.on("PreToolUse", says=verdict("allow"))
    await stage.run(WRITE, "Ok.")
    assert not made(stage)


async def test_exit_2_on_permission_request_does_nothing(stage: Stage):
    seen = stage.on("PermissionRequest", stderr="no way", code=2)
    stage.person.answer = "allow_once"
    await stage.run(WRITE, "Ok.", hooks=[PermissionsHook()])
    assert len(given(seen)) == len(stage.person.asked) == 1
    assert made(stage)


async def test_json_on_standard_error_is_only_text(stage: Stage):
    said = json.dumps(verdict("ask", "really?"))
    stage.on("PreToolUse", stderr=said, code=2)
    await stage.run(WRITE, "Ok.")
    assert stage.told().endswith(said)
    assert not stage.person.asked


async def test_an_empty_object_is_a_no_op(stage: Stage):
    for event in ("UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"):
        stage.on(event, says={})
    await stage.run(WRITE, "Ok.")
    assert made(stage)
    assert stage.person.notices == ""


async def test_text_behind_an_object_makes_all_of_it_plain_text(stage: Stage):
    stage.on("PreToolUse", says=json.dumps(verdict("deny")) + "\ndone")
    stage.on("UserPromptSubmit", says='{"decision": "block"} and more')
    await stage.run(WRITE, "Ok.")
    assert made(stage)
    assert '{"decision": "block"} and more' in stage.told(0)


async def test_two_lines_of_json_that_say_nothing_to_crow_are_plain_text(stage: Stage):
    stage.on("UserPromptSubmit", says='{"level": "info"}\n{"level": "debug"}')
    await stage.run("Ok.")
    assert '{"level": "debug"}' in stage.told(0)
    assert stage.person.notices == ""


async def test_two_lines_of_json_of_which_one_decides_are_an_error_and_no_consent(
    stage: Stage,
):
    stage.on("PreToolUse", says=f'{{"level": "info"}}\n{json.dumps(verdict("deny"))}')
    await stage.run(WRITE, "Ok.")
    assert not made(stage)
    assert "several JSON objects" in stage.person.notices


async def test_a_first_line_that_says_async_lets_the_hook_go_on_behind_and_its_text_is_read(
    stage: Stage, tmp_path: Path
):
    done = tmp_path / "go"
    os.mkfifo(done)
    stage.on(
        "UserPromptSubmit",
        f"echo '{{\"async\": true}}'\ncat {done} > /dev/null\necho 'it is late'",
    )
    async with stage.agent("Ok.", "Ok.") as agent:
        reply = await agent.run("Go", cwd=stage.cwd)  # does not wait for the hook
        assert "it is late" not in stage.told(0)
        await asyncio.to_thread(done.write_text, "go")
        await until(lambda: bool(reply.session.pending))
        await agent.run("And?", session=reply.session)
    assert "it is late" in stage.told(1)


async def test_a_system_message_inside_the_specific_output_is_ignored(stage: Stage):
    stage.on("PreToolUse", says=specific("PreToolUse", systemMessage="inside"))
    stage.on("PreToolUse", says={"systemMessage": "outside"})
    await stage.run(WRITE, "Ok.")
    assert "outside" in stage.person.notices
    assert "inside" not in stage.person.notices


async def test_unknown_keys_on_groups_and_handlers_are_tolerated(stage: Stage):
    seen = stage.on("PreToolUse", description="x", rewakeMessage="y", rewakeSummary="z")
    group = stage.tables[False]["PreToolUse"][0]
    group.update(id="7", description="a group")
    await stage.run(WRITE, "Ok.")
    assert stage.hooks().warnings == []
    assert len(given(seen)) == 1


async def test_a_denial_needs_no_reason(stage: Stage):
    stage.on("PreToolUse", says=verdict("deny"))
    await stage.run(WRITE, "Ok.")
    assert not made(stage)
    assert stage.told().endswith("denied by a hook")


async def test_a_matcher_for_a_tool_that_is_not_there_never_matches(stage: Stage):
    seen = stage.on("PreToolUse", matcher="MultiEdit")
    await stage.run(WRITE, "Ok.")
    assert not seen.exists()


async def test_a_matcher_on_stop_is_ignored(stage: Stage):
    seen = stage.on("Stop", matcher="Bash")
    await stage.run("Ok.")
    assert len(given(seen)) == 1


async def test_if_on_an_event_without_a_tool_means_that_the_handler_never_runs(stage: Stage):
    handler = {"type": "command", "command": f"touch {stage.cwd}/ran", "if": "Bash(git *)"}
    stage.handle("Stop", handler)
    await stage.run("Ok.")
    assert not (stage.cwd / "ran").exists()
    [entry] = stage.hooks().entries
    assert "'if' is for events about tools" in entry.inactive


async def test_empty_args_mean_that_no_shell_reads_the_command(stage: Stage):
    path = stage.scripts / "with space;true.sh"
    path.write_text(f"#!/bin/sh\ncat > {stage.scripts}/args.in\n")
    path.chmod(0o755)
    stage.handle("PreToolUse", {"type": "command", "command": str(path), "args": []})
    await stage.run(WRITE, "Ok.")
    assert given(stage.scripts / "args.in")[0]["tool_name"] == "Write"


async def test_arguments_are_handed_over_as_they_are_with_the_project_put_in(stage: Stage):
    seen = stage.scripts / "argv"
    script = stage.scripts / "args.sh"
    script.write_text(f'#!/bin/sh\nfor each in "$@"; do echo "$each" >> {seen}; done\n')
    script.chmod(0o755)
    args = ["$HOME `x` *", "${CLAUDE_PROJECT_DIR}/a"]
    stage.handle("PreToolUse", {"type": "command", "command": str(script), "args": args})
    await stage.run(WRITE, "Ok.")
    assert seen.read_text() == f"$HOME `x` *\n{stage.cwd}/a\n"


@pytest.mark.parametrize(
    ("matcher", "tool", "expected"),
    [
        ("Edit.*", "NotebookEdit", True),
        ("Edit", "NotebookEdit", False),
        ("^(Edit|Write)$", "Write", True),
        ("Edit|Write", "Write", True),
        ("Edit, Write", "Write", True),
        ("Write|", "Write", True),
        ("write", "Write", False),
        ("*", "Write", True),
        ("", "Write", True),
        ("Task", "Agent", True),
        ("mcp__memory", "mcp__memory__get", False),
        ("mcp__memory__.*", "mcp__memory__get", True),
        ("(?<kind>Wri)te", "Write", True),
        (r"^\w+(?<!Notebook)Edit$|^Edit$", "NotebookEdit", False),
        (r"(?<!Notebook)Edit", "Edit", True),
    ],
)
async def test_a_matcher_is_a_list_of_names_or_an_unanchored_javascript_expression(
    stage: Stage, matcher: str, tool: str, expected: bool
):
    seen = stage.on("PreToolUse", matcher=matcher)
    await stage.run(call(tool), "Ok.", tools=[named(tool)])
    assert seen.exists() == expected


def named(name: str) -> Any:
    @tool(name=name)
    def does_nothing() -> str:
        """Nothing."""
        return "done"

    return does_nothing


async def test_context_of_more_than_ten_thousand_characters_is_a_file_and_a_preview(
    stage: Stage,
):
    long = "word " * 3000
    stage.on("UserPromptSubmit", says=specific("UserPromptSubmit", additionalContext=long))
    await stage.run("Ok.")
    told = stage.told(0)
    assert len(told) < 3000
    path = Path(told.partition("saved to ")[2].partition(";")[0])
    assert path.read_text() == long
    assert path.stat().st_mode & 0o077 == 0
    assert "word word" in told


@pytest.mark.parametrize("of", ["plain text", "systemMessage"])
async def test_plain_text_and_messages_have_the_same_limit(stage: Stage, of: str):
    long = "word " * 3000
    stage.on("UserPromptSubmit", says=long if of == "plain text" else {"systemMessage": long})
    await stage.run("Ok.")
    told = stage.told(0) if of == "plain text" else stage.person.notices
    assert len(told) < 3000
    path = Path(told.partition("saved to ")[2].partition(";")[0])
    assert path.read_text().strip() == long.strip()


async def test_exactly_ten_thousand_characters_are_handed_over_whole(stage: Stage):
    stage.on("UserPromptSubmit", says="x" * 10_000)
    await stage.run("Ok.")
    assert "x" * 10_000 in stage.told(0)


async def test_a_missing_script_blocks_nothing_and_is_shown(stage: Stage):
    stage.handle("PreToolUse", {"type": "command", "command": "/no/such/script.sh"})
    reply = await stage.run(WRITE, "Ok.")
    assert made(stage)
    assert "failed: exit status 127: " in stage.person.notices
    [record] = records(reply.session, "PreToolUse")
    assert isinstance(record.answer, dict)
    assert record.answer["outcome"] == "non_blocking_error"


async def test_a_missing_script_blocks_where_on_failure_says_so(stage: Stage):
    handler = {"type": "command", "command": "/no/such/script.sh", "onFailure": "block"}
    stage.handle("PreToolUse", handler)
    await stage.run(WRITE, "Ok.")
    assert not made(stage)
    assert "could not decide" in stage.told()


@pytest.mark.parametrize("rules", [{"deny": ["Write"]}, {"ask": ["Write"]}])
@pytest.mark.parametrize("hook_first", [True, False])
async def test_a_hooks_allow_passes_no_deny_and_no_ask_rule(
    stage: Stage, rules: Any, hook_first: bool
):
    stage.on("PreToolUse", says=verdict("allow"))
    stage.on("PermissionRequest", says=specific("PermissionRequest", decision=ALLOWED))
    async with stage.agent(WRITE, "Ok.") as agent:
        agent.use(PermissionsHook(allow=["Write"], **rules))
        if not hook_first:
            hooks = agent.extensions["shell_hooks"]
            agent.remove("shell_hooks")
            agent.use(hooks)
        await agent.run("Go", cwd=stage.cwd, client=stage.person)
    assert not made(stage)
    assert len(stage.person.asked) == len(rules.get("ask", ()))


ALLOWED = {"behavior": "allow"}


async def test_a_hooks_allow_spares_the_question_where_no_rule_speaks(stage: Stage):
    stage.on("PreToolUse", says=verdict("allow"))
    await stage.run(WRITE, "Ok.", hooks=[PermissionsHook()])
    assert made(stage)
    assert not stage.person.asked


async def test_rules_judge_the_rewritten_input(stage: Stage):
    evil = {"file_path": "evil.txt", "content": "x"}
    stage.on("PreToolUse", says=verdict("allow", updatedInput=evil))
    await stage.run(WRITE, "Ok.", hooks=[PermissionsHook(deny=["Edit(evil.txt)"])])
    assert list(stage.cwd.iterdir()) == []
    assert "Edit(evil.txt)" in stage.told()


async def test_the_ninth_continuation_in_a_row_is_overridden_and_said_so(stage: Stage):
    seen = stage.on("Stop", says={"decision": "block", "reason": "more"})
    said = stage.on("Notification", matcher="stop_cap")
    async with stage.agent(*["Ok."] * 9) as agent:
        await agent.run("Go", cwd=stage.cwd)
        [event] = await runs_of(said, 1)
    stage.model.verify()
    assert [each["stop_hook_active"] for each in given(seen)] == [False, *[True] * 8]
    assert "ended all the same" in event["message"]


async def test_all_handlers_that_match_start_in_parallel(stage: Stage, tmp_path: Path):
    one, other = tmp_path / "one", tmp_path / "other"
    os.mkfifo(one)
    os.mkfifo(other)
    stage.on("PreToolUse", f"echo a > {one}\ncat {other}", timeout=50)  # each waits for the other
    stage.on("PreToolUse", f"cat {one}\necho b > {other}", timeout=50)
    await stage.run(WRITE, "Ok.")
    assert stage.person.notices == ""
    assert made(stage)


async def test_on_a_time_out_the_whole_process_group_is_killed(stage: Stage, tmp_path: Path):
    pids = tmp_path / "pids"
    named = f"echo $! > {pids}.new; mv {pids}.new {pids}"
    script = f"trap '' TERM\nsleep 1000 &\n{named}\nwait\nsleep 1000"
    stage.on("PreToolUse", script, timeout=1)
    await stage.run(WRITE, "Ok.")
    assert made(stage)
    assert "took longer than 1 s" in stage.person.notices
    if pids.exists():  # a very slow machine had not begun yet
        await until(lambda: not is_alive(int(pids.read_text())))


async def test_a_script_that_does_not_read_its_input_is_no_error(stage: Stage):
    stage.handle("PreToolUse", {"type": "command", "command": "exec <&-; exit 0"})
    await stage.run(call("Write", file_path="made.txt", content="x" * 1_000_000), "Ok.")
    assert made(stage)
    assert stage.person.notices == ""


async def test_the_transcript_is_compact_and_has_the_last_answer_when_the_run_stops(
    stage: Stage, tmp_path: Path
):
    copy = tmp_path / "copy"
    find = """sed -n 's/.*"transcript_path":"\\([^"]*\\)".*/\\1/p' """
    path = stage.on("Stop", "")
    script = Path(stage.tables[False]["Stop"][0]["hooks"][0]["command"])
    script.write_text(
        f'#!/bin/sh\ncat > "{path}"\nfile=$({find} "{path}")\n'
        f'grep \'"role":"assistant"\' "$file" | tail -n 1 > {copy}\n'
    )
    await stage.run(WRITE, "It is done.")
    last = json.loads(copy.read_text())
    assert last["type"] == "assistant"
    assert last["message"]["content"] == [{"type": "text", "text": "It is done."}]
