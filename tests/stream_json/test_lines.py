"""``crow -p`` by its lines: what no library sends, and what a shell script reads."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.cli.conftest import Crow, calls, crow, endpoint, forks, project

from crow.testing.endpoint import Endpoint, answer

__all__ = ["crow", "endpoint", "forks", "project"]

STREAM = ("-p", "--output-format", "stream-json", "--input-format", "stream-json", "--verbose")
HELLO = {"type": "user", "message": {"role": "user", "content": "Hello"}}


def lines(*messages: Any) -> str:
    """Messages as a program sends them."""
    return "".join(f"{json.dumps(each)}\n" for each in messages)


async def test_the_result_alone_is_one_object(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(calls(("Read", {"file_path": "README.md"})), answer("Things."))
    ended = await crow("-p", "What?", "--output-format", "json")
    (told,) = ended.events
    assert (told["type"], told["subtype"], told["result"]) == ("result", "success", "Things.")
    assert (told["num_turns"], told["is_error"], ended.status, ended.err) == (2, False, 0, "")
    assert {"total_cost_usd", "usage", "modelUsage", "session_id", "uuid"} <= told.keys()


@pytest.mark.parametrize("form", ["json", "stream-json"])
async def test_a_run_that_cannot_begin_is_a_result(crow: Crow, form: str) -> None:
    ended = await crow("-p", "--output-format", form, "--model", "openai/gpt-5", "hello")
    assert ended.status == 1
    *_, last = ended.events
    assert (last["type"], last["is_error"]) == ("result", True)
    assert "OPENAI_API_KEY" in last["errors"][0]


async def test_messages_come_a_line_each(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(calls(("Read", {"file_path": "README.md"}), text="I look."), answer("Things."))
    ended = await crow("-p", "What?", "--output-format", "stream-json", "--verbose")
    kinds = [each["type"] for each in ended.events if each.get("subtype") != "notice"]
    assert kinds == ["system", "assistant", "assistant", "user", "assistant", "result"]
    first, *_, last = ended.events
    assert {each["session_id"] for each in ended.events} == {first["session_id"]}
    assert len({each["uuid"] for each in ended.events}) == len(ended.events)
    assert last["permission_denials"] == []


async def test_unknown_requests_are_refused_by_name(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(answer("Hello."))
    asked = {"type": "control_request", "request_id": "1", "request": {"subtype": "fly"}}
    stray = {"type": "control_response", "response": {"subtype": "success", "request_id": "9"}}
    ended = await crow(*STREAM, stdin=lines(asked, {"type": "keep_alive"}, stray, HELLO))
    (told,) = [each for each in ended.events if each["type"] == "control_response"]
    assert told["response"] == {
        "subtype": "error",
        "error": "the control request 'fly' is not supported",
        "request_id": "1",
    }
    assert (ended.events[-1]["result"], ended.status) == ("Hello.", 0)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("nonsense", "a line of standard input is no JSON"),
        ("[1]", "a line of standard input is no JSON object"),
        ('{"type": "shout"}', "has the type 'shout'"),
        ('{"type": "user"}', "needs a message with content"),
        ('{"type": "user", "message": {"content": [{"type": "tape"}]}}', "type 'tape'"),
    ],
)
async def test_what_nobody_can_read_is_named(crow: Crow, line: str, why: str) -> None:
    ended = await crow(*STREAM, stdin=f"{line}\n")
    assert ended.status == 1
    assert why in ended.err
    assert why in ended.events[-1]["errors"][0]


async def test_hooks_that_cannot_run_are_refused_and_questions_still_reach_the_program(
    crow: Crow, endpoint: Endpoint
) -> None:
    endpoint.play(calls(("Bash", {"command": "touch made"})), answer("No."))
    off = json.dumps({"disableAllHooks": True, "permissions": {"ask": ["Bash"]}})
    hooks = {"PreToolUse": [{"matcher": None, "hookCallbackIds": ["hook_0"]}]}
    request = {"subtype": "initialize", "hooks": hooks}
    first = {"type": "control_request", "request_id": "1", "request": request}
    words = (*STREAM, "--settings", off, "--permission-prompt-tool", "stdio")
    ended = await crow(*words, stdin=lines(first, HELLO))
    (told,) = [each for each in ended.events if each["type"] == "control_response"]
    assert "hooks are switched off here" in told["response"]["error"]
    asked = [each for each in ended.events if each["type"] == "control_request"]
    assert [each["request"]["subtype"] for each in asked] in ([], ["can_use_tool"])
    assert not (crow.cwd / "made").exists()


async def test_no_prompt_is_no_session(crow: Crow) -> None:
    ended = await crow(*STREAM, stdin="\n")
    assert (ended.status, ended.out, ended.err) == (0, "", "")


async def test_forms_that_do_not_go_together(crow: Crow) -> None:
    alone = await crow("run", "--input-format", "stream-json", "hello")
    assert (alone.status, "needs --output-format stream-json" in alone.err) == (2, True)
    both = await crow(*STREAM, "hello", stdin="")
    assert (both.status, "on standard input alone" in both.err) == (2, True)
    other = await crow("run", "--output-format", "xml", "What?")
    assert (other.status, "invalid choice: 'xml'" in other.complaint) == (2, True)


async def test_a_rewind_says_what_it_would_do_and_did(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(calls(("Bash", {"command": "echo one > one; echo two > two"})), answer("Done."))
    ended = await crow(*STREAM, "--allow", "Bash", stdin=lines({**HELLO, "uuid": "u1"}))
    (crow.cwd / "two").write_text("by hand", "utf-8")
    requests = [rewind("u1", is_dry=True), rewind("x", is_dry=True), rewind("u1")]
    session = ended.events[-1]["session_id"]
    told = [await crow(*STREAM, "--resume", session, stdin=lines(each)) for each in requests]
    would, cannot, did = (answer_in(each.events) for each in told)
    two = {"path": str(crow.cwd / "two"), "reason": "somebody else changed it since"}
    same = {"canRewind": True, "filesChanged": [str(crow.cwd / "one")], "left": [two]}
    assert (would, did) == (same, same)
    assert (cannot["canRewind"], "'x'" in cannot["error"]) == (False, True)
    notices = [e["text"] for e in told[2].events if e.get("subtype") == "notice"]
    assert notices == [f"{two['path']} is left alone: {two['reason']}"]
    assert (crow.cwd / "two").read_text("utf-8") == "by hand"
    assert not (crow.cwd / "one").exists()


def rewind(prompt: str, *, is_dry: bool = False) -> dict[str, Any]:
    """A request."""
    dry = {"dry_run": True} if is_dry else {}
    request = {"subtype": "rewind_files", "user_message_id": prompt, **dry}
    return {"type": "control_request", "request_id": "1", "request": request}


def answer_in(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The answer to the one request."""
    (told,) = [each["response"] for each in events if each["type"] == "control_response"]
    return told["response"]
