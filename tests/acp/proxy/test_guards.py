"""Hooks and rules on the traffic of an agent that is not Crow."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from crow.testing import FakeEditor

DENY = 'cat >/dev/null; echo "not on a Friday" >&2; exit 2'


def questions(editor: FakeEditor) -> list[dict[str, Any]]:
    """The calls that the client was asked about."""
    return [each["toolCall"] for each in editor.asked if "toolCall" in each]


async def test_a_rule_denies_and_another_allows_before_the_client_is_asked(
    front: Any, play: Any
) -> None:
    front.settings(permissions={"deny": ["Bash(rm:*)"], "allow": ["Bash(make *)"]})
    editor = FakeEditor()
    await play(editor, "ask rm -rf build\nask make test")
    assert questions(editor) == []
    assert "Crow denied rm -rf build: the rule Bash(rm:*) denies it" in editor.text()
    assert '[ask rm -rf build: {"outcome": {"outcome": "selected", "optionId": "no"}}]' in (
        editor.text()
    )
    assert '[ask make test: {"outcome": {"outcome": "selected", "optionId": "yes"}}]' in (
        editor.text()
    )


@pytest.mark.slow
async def test_what_no_rule_speaks_of_is_asked_as_the_agent_asks_it(front: Any, play: Any) -> None:
    editor = FakeEditor(permissions=["always", "no"])
    await play(editor, "ask curl example.org\nask wget example.org")
    assert questions(editor) == [
        {"toolCallId": "call-curl example.org"},
        {"toolCallId": "call-wget example.org"},
    ]
    assert '[ask curl example.org: {"outcome": {"outcome": "selected", "optionId": "always"' in (
        editor.text()
    )
    assert '"optionId": "no"' in editor.text()


@pytest.mark.slow
async def test_a_mode_without_questions_refuses_what_no_rule_allows(front: Any, play: Any) -> None:
    editor = FakeEditor()
    await play(editor, "ask curl example.org", options=("--mode", "dontAsk"))
    assert questions(editor) == []
    assert '"optionId": "no"' in editor.text()


@pytest.mark.slow
async def test_a_hook_of_claude_code_denies_a_prompt_and_the_agent_never_sees_it(
    front: Any, play: Any
) -> None:
    front.hook("UserPromptSubmit", DENY)
    editor = FakeEditor()
    assert await play(editor, "say hello") == ["refusal"]
    assert "not on a Friday" in editor.text()
    assert front.reached("session/prompt") == []


@pytest.mark.slow
async def test_what_a_hook_adds_goes_to_the_agent_behind_the_prompt(front: Any, play: Any) -> None:
    front.hook("UserPromptSubmit", "cat >/dev/null; echo 'say the build is red'")
    editor = FakeEditor()
    assert await play(editor, "say hello") == ["end_turn"]
    (params,) = front.reached("session/prompt")
    first, second = params["prompt"]
    assert first == {"type": "text", "text": "say hello"}
    assert "say the build is red" in second["text"]


@pytest.mark.slow
async def test_a_hook_of_claude_code_denies_a_call(front: Any, play: Any) -> None:
    front.hook("PreToolUse", DENY, "Bash")
    editor = FakeEditor()
    await play(editor, "ask make test\nedit a.py")
    assert [each["toolCallId"] for each in questions(editor)] == ["call-a.py"]
    assert "Crow denied make test: not on a Friday" in editor.text()


@pytest.mark.slow
async def test_hooks_see_the_call_under_the_names_of_claude_code(front: Any, play: Any) -> None:
    seen = front.project.parent / "seen"
    front.hook("PreToolUse", f"cat >>{seen}")
    await play(FakeEditor(), "ask make test\nedit a.py")
    asked = [json.loads(each) for each in seen.read_text("utf-8").splitlines()]
    assert [(each["tool_name"], each["tool_input"]) for each in asked] == [
        ("Bash", {"command": "make test"}),
        ("Edit", {"file_path": "a.py"}),
    ]
    assert {each["session_id"] for each in asked} == {"s-project"}


@pytest.mark.slow
async def test_a_hook_that_hangs_or_breaks_denies(front: Any, play: Any) -> None:
    path = front.project.parent / "broken.py"
    path.write_text("def before_tool(call):\n    raise RuntimeError('I am broken')\n", "utf-8")
    editor = FakeEditor()
    await play(editor, "ask make test\nterminal make test", options=("--extension", str(path)))
    assert questions(editor) == []
    assert '"optionId": "no"' in editor.text()
    assert "[terminal: " in editor.text()
    assert "I am broken" in editor.text()


@pytest.mark.slow
async def test_a_hook_that_would_change_a_call_denies_it(front: Any, play: Any) -> None:
    path = front.project.parent / "tame.py"
    path.write_text("def before_tool(ctx):\n    ctx.args = {'command': 'true'}\n", "utf-8")
    editor = FakeEditor()
    await play(editor, "ask make test", options=("--extension", str(path)))
    assert questions(editor) == []
    assert "which cannot be done to a call of another agent" in editor.text()


async def test_a_prompt_that_a_hook_has_changed_is_what_the_agent_gets(
    front: Any, play: Any
) -> None:
    path = front.project.parent / "loud.py"
    path.write_text("def before_run(ctx):\n    ctx.prompt = ctx.prompt.upper()\n", "utf-8")
    await play(FakeEditor(), "hello", options=("--extension", str(path)))
    (params,) = front.reached("session/prompt")
    assert params["prompt"] == [{"type": "text", "text": "HELLO"}]


@pytest.mark.slow
async def test_files_and_terminals_are_really_refused(front: Any, play: Any) -> None:
    front.settings(permissions={"deny": ["Read(./secret)", "Edit(./locked)", "Bash(rm:*)"]})
    (front.project / "secret").write_text("s", "utf-8")
    here = front.project
    lines = (f"read {here}/secret", f"write {here}/locked x", "terminal rm -rf build")
    editor = FakeEditor(files={}, terminals=True)
    await play(editor, "\n".join(lines))
    assert questions(editor) == []
    assert editor.text().count('"message": "Crow denied this: ') == 3
    assert not (here / "locked").exists()


async def test_a_file_or_terminal_of_no_session_is_refused(front: Any, play: Any) -> None:
    """Nothing says whose rules would hold, and the client is not left to find out."""
    file = front.project / "a.txt"
    file.write_text("what it says", "utf-8")
    editor = FakeEditor(files={}, terminals=True)
    await play(editor, f"lost read {file}\nlost write {file} x\nlost terminal rm -rf build")
    assert editor.text().count("it names no session") == 3
    assert editor.files == {}
    assert questions(editor) == []


async def test_what_is_told_where_it_had_to_be_asked_reaches_nobody(front: Any, play: Any) -> None:
    """A client that does what a notification says would do it unjudged."""
    editor = FakeEditor(files={})
    async with front.proxied(editor):
        session = await editor.new_session(front.project)
        await editor.prompt(session, f"told {front.project}/a.txt x\nsay done")
        received = editor.wire.received
    assert editor.text() == "done"
    assert all(each.get("method") != "fs/write_text_file" for each in received)


async def test_files_that_may_be_read_are_read_without_a_question(front: Any, play: Any) -> None:
    (front.project / "a.txt").write_text("what it says", "utf-8")
    editor = FakeEditor(files={})
    await play(editor, f"read {front.project}/a.txt")
    assert questions(editor) == []
    assert "what it says" in editor.text()


@pytest.mark.slow
async def test_a_file_is_asked_about_once_in_a_turn(front: Any, play: Any) -> None:
    """The agent's own question about it counts; without one Crow asks."""
    path = front.project / "a.txt"
    editor = FakeEditor(files={})
    await play(editor, f"edit {path}\nwrite {path} one", f"write {path} two")
    assert [each.get("title") for each in questions(editor)] == [None, f"Write {path}"]
    assert editor.files == {str(path): "two"}


@pytest.mark.slow
async def test_a_question_of_crows_own_can_be_answered_with_no(front: Any, play: Any) -> None:
    editor = FakeEditor(files={}, permissions=["reject_once"])
    await play(editor, f"write {front.project}/a.txt one")
    assert len(questions(editor)) == 1
    assert editor.files == {}


@pytest.mark.slow
async def test_a_call_that_nobody_asked_about_is_told_of_where_a_rule_denies_it(
    front: Any, play: Any
) -> None:
    front.settings(permissions={"deny": ["Bash(rm:*)"]})
    editor = FakeEditor()
    await play(editor, "run rm -rf build\nrun make test")
    told = (
        "ran rm -rf build without asking, and the rule Bash(rm:*) denies it. Crow saw it too late"
    )
    assert told in editor.text()
    assert "ran make test without" not in editor.text()


async def test_hooks_hear_what_came_of_calls(front: Any, play: Any) -> None:
    seen = front.project.parent / "seen"
    front.hook("PostToolUse", f"cat >>{seen}")
    await play(FakeEditor(), "ask make test\nrun make clean")
    told = [json.loads(each) for each in seen.read_text("utf-8").splitlines()]
    assert [each["tool_input"]["command"] for each in told] == ["make test", "make clean"]
    assert [each["tool_response"] for each in told] == ["ran make test", "ran make clean"]


@pytest.mark.slow
async def test_a_stop_hook_keeps_the_agent_going(front: Any, play: Any) -> None:
    once = front.project.parent / "once"
    script = f"cat >/dev/null; [ -e {once} ] && exit 0; touch {once}; echo 'say more' >&2; exit 2"
    front.hook("Stop", script)
    editor = FakeEditor()
    assert await play(editor, "say one") == ["end_turn"]
    assert len(front.reached("session/prompt")) == 2
    assert "more" in editor.text()


async def test_a_cancellation_reaches_the_agent(front: Any) -> None:
    editor = FakeEditor()
    async with front.proxied(editor):
        session = await editor.new_session(front.project)
        prompting = asyncio.create_task(editor.prompt(session, "wait"))
        await editor.saw("agent_message_chunk")
        await editor.cancel(session)
        assert (await prompting).stop_reason == "cancelled"


async def test_a_prompt_is_cancelled_while_a_hook_thinks(front: Any) -> None:
    begun = front.project.parent / "begun"
    front.hook("UserPromptSubmit", f"cat >/dev/null; touch {begun}; sleep 4")
    editor = FakeEditor()
    async with front.proxied(editor):
        session = await editor.new_session(front.project)
        prompting = asyncio.create_task(editor.prompt(session, "hello"))
        while not begun.exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.01)
        await editor.cancel(session)
        assert (await prompting).stop_reason == "cancelled"
    assert front.reached("session/prompt") == []
