"""Handlers that are no programs: servers, models, and tools of MCP servers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.extensions.shell_hooks.conftest import Stage, verdict

from crow.extensions import ShellHooks
from crow.project import HookFile
from crow.testing import call

WRITE = call("Write", file_path="made.txt", content="x")


class Server:
    """Answers every request with the same bytes, and keeps what it was asked."""

    def __init__(self) -> None:
        self.answer = b"{}"
        self.status = "200 OK"
        self.asked: list[str] = []
        self.hangs = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.lower().partition("content-length: ")[2].split()[0])
        self.asked.append(head + (await reader.readexactly(length)).decode())
        if self.hangs:
            await reader.read()  # until the client has had enough
            writer.close()
            return
        size = len(self.answer)
        top = f"HTTP/1.1 {self.status}\r\ncontent-length: {size}\r\nconnection: close\r\n\r\n"
        writer.write(top.encode() + self.answer)
        await writer.drain()
        writer.close()


@pytest.fixture
async def server() -> Any:
    server = Server()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/hook"  # type: ignore[attr-defined]
    async with listening:
        yield server


async def test_a_server_is_asked_with_the_input_and_only_the_allowed_variables(
    stage: Stage, server: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOOK_TOKEN", "t0ken")
    monkeypatch.setenv("OTHER", "secret")
    server.answer = json.dumps(verdict("deny", "says the server")).encode()
    headers = {"Authorization": "Bearer ${HOOK_TOKEN}", "X-Other": "[$OTHER]"}
    handler = {"type": "http", "url": server.url, "headers": headers}
    stage.handle("PreToolUse", {**handler, "allowedEnvVars": ["HOOK_TOKEN"]})
    await stage.run(WRITE, "Ok.")
    assert stage.told().endswith("says the server")
    head, _, body = server.asked[0].partition("\r\n\r\n")
    assert "authorization: Bearer t0ken" in head.replace("Authorization", "authorization")
    assert "[]" in head
    assert "secret" not in head
    assert json.loads(body)["tool_name"] == "Write"


async def test_a_header_whose_variable_is_not_there_keeps_nobody_from_asking(
    stage: Stage, server: Any
):
    server.answer = json.dumps(verdict("deny", "says the server")).encode()
    headers = {"Authorization": "Bearer $NOT_THERE", "X-Empty": "$NOT_THERE"}
    stage.handle("PreToolUse", {"type": "http", "url": server.url, "headers": headers})
    await stage.run(WRITE, "Ok.")
    assert stage.told().endswith("says the server")
    assert "authorization: bearer\r\n" in server.asked[0].lower()


async def test_headers_have_only_variables_that_both_lists_allow(
    stage: Stage, server: Any, monkeypatch: pytest.MonkeyPatch
):
    for name in ("ONE", "TWO", "THREE"):
        monkeypatch.setenv(name, f"value-{name}")
    handler = {"type": "http", "url": server.url, "headers": {"X-All": "[$ONE][$TWO][$THREE]"}}
    handler["allowedEnvVars"] = ["ONE", "TWO"]
    files = [HookFile("f", {"PreToolUse": [{"hooks": [handler]}]})]
    hooks = ShellHooks(files, directory=stage.state, variables=["TWO", "THREE"])
    await stage.run(WRITE, "Ok.", hooks=[hooks])
    [asked] = server.asked
    assert "value-TWO" in asked
    assert "value-ONE" not in asked
    assert "value-THREE" not in asked


@pytest.mark.parametrize(
    ("status", "answer", "notice"),
    [
        ("200 OK", b"", ""),
        ("204 No Content", b"", ""),
        ("200 OK", b"plain", "no JSON object"),
        ("200 OK", b'["deny"]', "no JSON object"),
        ("403 Forbidden", b'{"decision": "block"}', "HTTP status 403"),
        ("200 OK", b"{} and more", "no JSON object"),
    ],
)
async def test_no_status_of_a_server_blocks(
    stage: Stage, server: Any, status: str, answer: bytes, notice: str
):
    server.status, server.answer = status, answer
    stage.handle("PreToolUse", {"type": "http", "url": server.url})
    await stage.run(WRITE, "Ok.")
    assert (stage.cwd / "made.txt").exists()
    assert notice in stage.person.notices
    assert bool(notice) == bool(stage.person.notices)


@pytest.mark.parametrize(
    "answer", [b"{broken}", b'{"decision": "blo', b'{"a": "' + b"x" * 1_100_000]
)
async def test_an_answer_of_a_server_that_cannot_be_read_is_no_consent(
    stage: Stage, server: Any, answer: bytes
):
    server.answer = answer
    stage.handle("PreToolUse", {"type": "http", "url": server.url})
    await stage.run(WRITE, "Ok.")
    assert not (stage.cwd / "made.txt").exists()
    assert "could not decide: no JSON" in stage.told()


async def test_a_server_that_hangs_is_given_up(stage: Stage, server: Any):
    server.hangs = True
    stage.handle("PreToolUse", {"type": "http", "url": server.url, "timeout": 0.2})
    await stage.run(WRITE, "Ok.")
    assert "took longer than 0.2 s" in stage.person.notices


@pytest.mark.parametrize(
    ("event", "verdict_of_model", "script", "expected"),
    [
        ("PreToolUse", {"ok": True}, [WRITE], "end_turn"),
        ("PreToolUse", {"ok": False, "reason": "bad idea"}, [WRITE], "hook_stopped"),
        ("Stop", {"ok": False, "reason": "tests are missing"}, ["Ok."], "end_turn"),
        ("Stop", {"ok": False, "reason": "never", "impossible": True}, ["Ok."], "end_turn"),
        ("UserPromptSubmit", {"ok": False, "reason": "no"}, [], "refusal"),
    ],
)
async def test_a_prompt_hook_lets_a_model_judge(
    stage: Stage, event: str, verdict_of_model: Any, script: list[Any], expected: str
):
    stage.handle(event, {"type": "prompt", "prompt": "Is it fine? $ARGUMENTS costs \\$1"})
    goes_on = event == "Stop" and "impossible" not in verdict_of_model
    more = ["Done.", '{"ok": true}'] if goes_on else []
    more += ["Ok."] if verdict_of_model["ok"] else []
    before, after = ([], script) if event == "UserPromptSubmit" else (script, [])
    reply = await stage.run(*before, json.dumps(verdict_of_model), *after, *more)
    assert reply.stop_reason == expected
    asked = [m for a in stage.model.asked for m in a["messages"] if "Is it fine?" in str(m)]
    assert f'"hook_event_name":"{event}"' in str(asked[0])
    assert "costs $1" in str(asked[0])
    if goes_on:
        assert "tests are missing" in stage.told(2)


async def test_continue_on_block_lets_a_prompt_hook_deny_without_ending_the_turn(stage: Stage):
    handler = {"type": "prompt", "prompt": "Fine?", "continueOnBlock": True}
    stage.handle("PreToolUse", handler)
    await stage.run(WRITE, 'No: {"ok": false, "reason": "bad idea"}', "Ok.")
    assert stage.told().endswith("bad idea")


@pytest.mark.parametrize("wish", ["block", "continue"])
async def test_a_model_that_answers_no_verdict_does_not_consent(stage: Stage, wish: str):
    stage.handle("PreToolUse", {"type": "prompt", "prompt": "Fine?", "onFailure": wish})
    await stage.run(WRITE, "I think so.", "Ok.")
    assert (stage.cwd / "made.txt").exists() == (wish == "continue")
    assert "no verdict" in stage.person.notices


@pytest.mark.parametrize(
    ("answer", "runs", "told"),
    [
        ({"decision": "approve", "reason": "fine"}, True, ""),
        ({"decision": "block", "reason": "bad idea"}, False, "bad idea"),
        ({"hookSpecificOutput": {"permissionDecision": "allow"}}, True, ""),
        (
            {
                "hookSpecificOutput": {
                    "permissionDecision": "deny",
                    "permissionDecisionReason": "no",
                }
            },
            False,
            "no",
        ),
        ({"ok": True, "decision": "block", "reason": "after all"}, False, "after all"),
        ({"hookSpecificOutput": {"permissionDecision": "ask"}}, False, "gave no verdict"),
        ({"ok": True, "decision": "perhaps"}, False, "gave no verdict"),
        ({"decision": ["approve"]}, False, "gave no verdict"),
    ],
)
@pytest.mark.parametrize("kind", ["prompt", "agent"])
async def test_a_verdict_may_have_the_shape_that_the_authors_prompt_asks_for(
    stage: Stage, kind: str, answer: Any, runs: bool, told: str
):
    prompt = 'Judge $ARGUMENTS. Respond with JSON: {"decision": "approve" or "block"}'
    handler = {"type": kind, "prompt": prompt, "continueOnBlock": True}
    stage.handle("PreToolUse", handler)
    again = [json.dumps(answer)] * 2 if kind == "agent" and "no verdict" in told else []
    await stage.run(WRITE, json.dumps(answer), *again, "Ok.")
    assert (stage.cwd / "made.txt").exists() == runs
    assert told.removeprefix("gave ") in stage.told()


async def test_a_tool_of_a_server_is_called_with_values_of_the_input(stage: Stage):
    from crow import tool

    asked: list[Any] = []

    @tool(name="mcp__guard__check")
    def check(path: str, n: int) -> str:
        """Check."""
        asked.append((path, n))
        return json.dumps(verdict("deny", "says the guard"))

    given_input = {"path": "at ${tool_input.text}!", "n": 1}
    handler = {"type": "mcp_tool", "server": "guard", "tool": "check", "input": given_input}
    stage.handle("PreToolUse", handler, matcher="echo")

    @tool(name="echo")
    def echo(text: str) -> str:
        """Echo."""
        return text

    await stage.run(call("echo", text="home"), "Ok.", tools=[check, echo])
    assert asked == [("at home!", 1)]
    assert stage.told().endswith("says the guard")


@pytest.mark.parametrize(
    ("answer", "wish", "runs"),
    [
        ("fine by me", {}, True),
        ("fine by me", {"onFailure": "block"}, False),
        ("fine by me", {"onFailure": "continue"}, True),
        ("{}", {"onFailure": "block"}, True),
    ],
)
async def test_an_answer_of_a_tool_in_plain_text_is_a_failure_where_failures_count(
    stage: Stage, answer: str, wish: Any, runs: bool
):
    from crow import tool

    @tool(name="mcp__guard__check")
    def check() -> str:
        """Check."""
        return answer

    @tool(name="echo")
    def echo() -> str:
        """Echo."""
        return "echoed"

    stage.handle("PreToolUse", {"type": "mcp_tool", "server": "guard", "tool": "check", **wish})
    await stage.run(call("echo"), "Ok.", tools=[check, echo])
    assert ("echoed" in stage.told()) == runs


async def test_a_tool_of_a_server_is_not_missed_when_the_session_begins(stage: Stage):
    handler = {"type": "mcp_tool", "server": "guard", "tool": "check"}
    stage.handle("SessionStart", handler)
    await stage.run("Ok.")
    assert stage.person.notices == ""
    stage.handle("Stop", handler)
    await stage.run("Ok.")
    assert "'guard': it is not connected" in stage.person.notices
