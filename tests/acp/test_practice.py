"""The rules that practice taught: which they are, that each has a test, and what had none."""

from __future__ import annotations

import ast
import asyncio
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from crow import Agent, Ask, tool
from crow.app import build
from crow.core.hooks.contexts import ToolContext
from crow.core.ports.client import Option
from crow.extensions.persistence import PersistenceHook
from crow.testing import FakeEditor, ScriptedModel, call, delay
from crow.tools import builtin

TESTS = Path(__file__).resolve().parents[1]
CROW = str(Path(sys.executable).with_name("crow"))
FOREVER = 3600
PERMISSION = "session/request_permission"

BREAKS = {
    "no update before the session is known": "commands and options follow the answer",
    "no update after the prompt's answer": "one queue is drained, then the prompt is answered",
    "a cancel always works": "in milliseconds, from everywhere, and the session goes on",
    "a prompt during a turn waits or steers": "it is never refused",
    "nothing but JSON on stdout": "what prints, prints to stderr",
    "no orphans": "the end of input, or of the parent, ends all that was started",
    "the whole history after a reload": "thoughts, calls, diffs, plan, usage",
    "no terminal of another connection": "text stands in its place",
    "a model picker": "a select of the category model, in a complete list",
    "command and diff on the card": "as title, as raw input, as diff, as terminal or fenced",
    "no stale buffer": "the client's files only as a pair, and compared with the disk",
    "permission is heard": "by option id, several at once, of sub-agents too",
    "the client's MCP servers are used": "their tools reach the model, their failures are notices",
    "a provider's failure is seen": "text or notice with data; -32000 for missing keys alone",
    "any path, any PATH, a login that ends": "absolute commands, nothing looked up, status 0",
    "a quick start": "no network, database or heavy import before initialize",
    "links of every kind": "files are resolved, and what cannot be read is named",
}
MUSTS = {
    "all of stable version 1": "each method, on the command",
    "a pure stdout, an exit in time": "within a second, in the middle of a turn too",
    "one ordered queue": "updates before the answer they belong to",
    "cancel that always works": "every open call is settled, the history is whole",
    "prompts wait or steer": "and none is lost",
    "durable from the first moment": "whenever the process is killed",
    "the flow of permission": "once and always, by mode, in sub-agents, without a client that can",
    "cards that people can read": "title, kind, lines, diff, output, raw input and output",
    "the client's MCP servers": "of a session, beside the rest",
    "options: mode, model, thought level": "modes for older clients beside them",
    "errors that say what is wrong": "with structured data",
    "start-up": "initialize is answered by what is imported anyway",
    "ready for the registry": "a method for agents always, the icon, the command",
    "conformance with others' clients": "the kit, the libraries, a client from npm",
    "version 2": "the same events in other words",
}
LESSONS = {
    "a session that is still empty is resumed": "acpx ends the process right after session/new",
    "a failing provider is no error of the request": "Toad shows one as a failure of the agent",
    "a client that cannot ask": "policy decides, asked once a session",
    "modes and options in step": "Zed knows the options, Toad the modes",
    "Zed's buffers go stale": "the disk is the judge",
    "a call's raw output is an object": "Toad takes no update with another, and shows the call as open",
}
RULES = {**BREAKS, **MUSTS, **LESSONS}


def held() -> dict[str, list[str]]:
    """The tests that say which rules they hold, by rule."""
    found: dict[str, list[str]] = defaultdict(list)
    for file in sorted(TESTS.rglob("test_*.py")):
        source = file.read_text("utf-8")
        if ".mark.rule(" not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for rule in rules_of(node):
                    found[rule].append(node.name)
    return found


def rules_of(test: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """The rules that a test names in its decorators."""
    marks = [each for each in test.decorator_list if isinstance(each, ast.Call)]
    return [
        str(argument.value)
        for mark in marks
        if isinstance(mark.func, ast.Attribute) and mark.func.attr == "rule"
        for argument in mark.args
        if isinstance(argument, ast.Constant)
    ]


def test_every_rule_has_a_test_and_every_test_a_rule_that_there_is() -> None:
    tests = held()
    assert set(RULES) - set(tests) == set()
    assert set(tests) - set(RULES) == set()
    assert (len(BREAKS), len(MUSTS), len(LESSONS)) == (17, 15, 6)


@pytest.mark.rule("a cancel always works")
async def test_a_cancel_works_after_the_session_was_loaded_meanwhile(tmp_path: Path) -> None:
    model = ScriptedModel(["on", delay(FOREVER), "it"], "again")
    store = PersistenceHook(tmp_path / "crow.db")
    editor = FakeEditor()
    async with editor.connected(Agent(llm=model, hooks=[store])):
        session = await editor.new_session(tmp_path)
        turn = asyncio.create_task(editor.prompt(session, "Go"))
        await editor.saw("agent_message_chunk")
        await editor.connection.load_session(str(tmp_path), session)
        await editor.cancel(session)
        assert (await turn).stop_reason == "cancelled"
        assert (await editor.prompt(session, "And now?")).stop_reason == "end_turn"


@pytest.mark.rule("a prompt during a turn waits or steers")
async def test_a_prompt_right_behind_the_cancellation_is_answered(tmp_path: Path) -> None:
    """Zed lets its user type as soon as Stop is clicked."""
    model = ScriptedModel(["on", delay(FOREVER), "it"], "again")
    editor = FakeEditor()
    async with editor.connected(Agent(llm=model)):
        session = await editor.new_session(tmp_path)
        turn = asyncio.create_task(editor.prompt(session, "Go"))
        await editor.saw("agent_message_chunk")
        await editor.cancel(session)
        again = await editor.prompt(session, "And now?")
        assert (await turn).stop_reason == "cancelled"
    assert again.stop_reason == "end_turn"


ONCE = Option("once", "Once", "allow_once")
NEVER = Option("never", "Never", "reject_once")


def asking(call: Any) -> Ask:
    return Ask("sure?", options=(ONCE, NEVER))


asking.__name__ = "before_tool"


@pytest.mark.rule("permission is heard", "the flow of permission")
async def test_two_open_questions_are_answered_each_by_its_own_answer(tmp_path: Path) -> None:
    """The later one first, and with the other answer."""
    both = asyncio.Barrier(2)
    rejected = asyncio.Event()

    async def answer(request: dict[str, Any]) -> str:
        await both.wait()
        if request["toolCall"]["rawInput"]["pattern"] == "second":
            rejected.set()
            return "never"
        await rejected.wait()
        return "once"

    model = ScriptedModel(call("Glob", pattern="first"), call("Glob", pattern="second"), "a", "b")
    editor = FakeEditor(permissions=[answer])
    async with editor.connected(Agent(llm=model, hooks=[asking])):
        sessions = [await editor.new_session(tmp_path) for _ in range(2)]
        await asyncio.gather(*(editor.prompt(session, "Look") for session in sessions))
        statuses = {card["rawInput"]["pattern"]: card["status"] for card in editor.cards()}
    assert statuses == {"first": "completed", "second": "failed"}


@pytest.mark.rule("permission is heard", "the flow of permission")
@pytest.mark.parametrize("answer, status", [("once", "completed"), ("never", "failed")])
async def test_the_call_of_a_sub_agent_is_permitted_by_the_user(
    tmp_path: Path, answer: str, status: str
) -> None:
    @tool
    async def delegate(ctx: ToolContext) -> str:
        """Let another one do it."""
        child = ctx.agent.child(
            llm=ScriptedModel(call("Glob", pattern="*"), "seen"), hooks=[asking]
        )
        session = await child.new_session(ctx.cwd, client=ctx.client, parent=ctx.session)
        return (await child.prompt(session, "Look")).text

    agent = Agent(llm=ScriptedModel(call("delegate"), "done"), tools=[delegate, *builtin()])
    editor = FakeEditor(permissions=[answer])
    async with editor.connected(agent):
        session = await editor.new_session(tmp_path)
        await editor.prompt(session, "Go")
        (request,) = editor.asked
        (card,) = [card for card in editor.cards() if card["name"] == "Glob"]
    assert request["sessionId"] == session
    assert request["toolCall"]["toolCallId"] == card["toolCallId"]
    assert card["status"] == status


@pytest.mark.rule("the flow of permission")
@pytest.mark.parametrize("mode, asked, written", [("acceptEdits", 0, True), ("dontAsk", 0, False)])
async def test_the_mode_decides_who_is_asked(
    tmp_path: Path, mode: str, asked: int, *, written: bool
) -> None:
    agent = build(cwd=tmp_path)
    agent.llm = ScriptedModel(call("Write", file_path="a.txt", content="x"), "done")
    editor = FakeEditor()
    async with editor.connected(agent):
        session = await editor.new_session(tmp_path)
        await editor.connection.set_session_mode(session, mode)
        await editor.prompt(session, "Write")
    assert len(editor.asked) == asked
    assert (tmp_path / "a.txt").exists() == written


SERVER = """
import json, os, sys
from pathlib import Path
Path("pid").write_text(str(os.getpid()))
TOOL = {"name": "add", "description": "Add.", "inputSchema": {"type": "object"}}
for line in sys.stdin:
    message = json.loads(line)
    match message["method"]:
        case "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                      "serverInfo": {"name": "sums", "version": "1"}}
        case "tools/list":
            result = {"tools": [TOOL]}
        case "tools/call":
            arguments = message["params"]["arguments"]
            text = str(arguments["a"] + arguments["b"])
            result = {"content": [{"type": "text", "text": text}]}
        case _:
            result = {}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


@pytest.mark.slow
@pytest.mark.rule("the client's MCP servers are used", "the client's MCP servers")
async def test_a_tool_of_the_clients_server_is_called_and_a_broken_one_is_told(
    tmp_path: Path,
) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    servers = [
        {"name": "sums", "command": sys.executable, "args": ["server.py"], "env": []},
        {"name": "broken", "command": "/no/such/program", "args": [], "env": []},
    ]
    agent = build(cwd=tmp_path, allow=["mcp__sums"])
    agent.llm = model = ScriptedModel(call("mcp__sums__add", a=1, b=2), "3.")
    editor = FakeEditor(notices=True)
    async with editor.connected(agent):
        params = {"cwd": str(tmp_path), "mcpServers": servers}
        opened = await editor.wire.request("session/new", params)
        (told,) = [await editor.saw("notice")]
        await editor.prompt(opened["result"]["sessionId"], "1 + 2?")
        (card,) = editor.cards()
        other = await editor.new_session(tmp_path)
    assert "broken" in told["title"]
    assert "mcp__sums__add" in [each["function"]["name"] for each in model.asked[0]["tools"]]
    assert "3" in json.dumps(card["content"])
    assert other


@pytest.mark.slow
@pytest.mark.rule("no orphans")
async def test_a_clients_server_ends_with_the_process(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    server = {"name": "sums", "command": sys.executable, "args": ["server.py"], "env": []}
    editor = FakeEditor()
    async with editor.spawned(CROW, "acp", cwd=tmp_path):
        params = {"cwd": str(tmp_path), "mcpServers": [server]}
        await editor.wire.request("session/new", params)
        await appeared(tmp_path / "pid")
    await gone(int((tmp_path / "pid").read_text()))


async def appeared(file: Path) -> None:
    """Wait for what another process writes."""
    async with asyncio.timeout(40):
        while not file.exists() or not file.read_text():  # noqa: ASYNC110 - no event tells of it
            await asyncio.sleep(0.01)


async def gone(pid: int) -> None:
    """Wait for the end of a process that is nobody's child here."""
    async with asyncio.timeout(40):
        while Path(f"/proc/{pid}").exists():  # noqa: ASYNC110 - no event tells of it
            await asyncio.sleep(0.01)


@pytest.mark.slow
@pytest.mark.rule("durable from the first moment", "no orphans")
async def test_a_session_survives_a_kill_in_a_tool_and_the_command_does_not(tmp_path: Path) -> None:
    first = FakeEditor()
    async with first.spawned(CROW, "acp", "--allow", "Bash", cwd=tmp_path):
        session = await first.new_session(tmp_path)
        turn = asyncio.create_task(first.prompt(session, "Run `echo $$; sleep 600`"))
        await first.wire.until(lambda: bool(shown(first)))
        pid = int(shown(first))
        await killed(first)
        with pytest.raises(ConnectionError):
            await turn
    await gone(pid)
    await taken_up(session, tmp_path, ["failed"])


def shown(editor: FakeEditor) -> str:
    """What the card of a command shows, without its fence."""
    contents = [card["content"] for card in editor.cards() if "content" in card]
    return contents[0][0]["content"]["text"].strip("`\n") if contents else ""


@pytest.mark.slow
@pytest.mark.rule("durable from the first moment")
async def test_a_session_survives_a_kill_in_a_question(tmp_path: Path) -> None:
    first = FakeEditor(silent=[PERMISSION])
    async with first.spawned(CROW, "acp", cwd=tmp_path):
        session = await first.new_session(tmp_path)
        turn = asyncio.create_task(first.prompt(session, "Run `touch a`"))
        await first.wire.until(lambda: first.wire.received[-1].get("method") == PERMISSION)
        await killed(first)
        with pytest.raises(ConnectionError):
            await turn
    await taken_up(session, tmp_path, ["failed"])
    assert not (tmp_path / "a").exists()


@pytest.mark.slow
@pytest.mark.rule("durable from the first moment")
async def test_a_session_survives_a_kill_right_after_it_was_opened(tmp_path: Path) -> None:
    first = FakeEditor()
    async with first.spawned(CROW, "acp", cwd=tmp_path):
        session = await first.new_session(tmp_path)
        await killed(first)
    await taken_up(session, tmp_path, None)


async def killed(editor: FakeEditor) -> None:
    """End the agent's process as nothing but the system can."""
    assert editor.process is not None
    editor.process.kill()
    await editor.process.wait()


async def taken_up(session: str, cwd: Path, statuses: list[str] | None) -> None:
    """Another process lists the session, shows its calls in these states, and goes on.

    With None nothing was said in it: then it is not listed.
    """
    editor = FakeEditor()
    async with editor.spawned(CROW, "acp", cwd=cwd):
        listed = (await editor.connection.list_sessions(str(cwd))).sessions
        assert [each.session_id for each in listed] == ([] if statuses is None else [session])
        await editor.connection.load_session(str(cwd), session)
        assert [card["status"] for card in editor.cards()] == (statuses or [])
        assert (await editor.prompt(session, "Hello?")).stop_reason == "end_turn"


@tool
def answer(what: str) -> object:
    """Answer with something."""
    return {"words": "yes", "list": [1, 2], "object": {"n": 1}}[what]


@pytest.mark.rule("a call's raw output is an object")
async def test_what_is_no_object_becomes_one_in_what_a_client_is_sent(tmp_path: Path) -> None:
    asked = [call("answer", what=each) for each in ("words", "list", "object", "nothing")]
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel(asked, "done"), tools=[answer])):
        await editor.prompt(await editor.new_session(tmp_path), "Go")
        words, several, one, failed = (card["rawOutput"] for card in editor.cards())
    assert (words, several, one) == ({"output": "yes"}, {"output": [1, 2]}, {"n": 1})
    assert failed["output"].startswith("KeyError: ")
