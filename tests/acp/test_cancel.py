"""Cancelling a turn, in every phase that it can be in (C03, C04)."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from crow import Agent, tool
from crow.core.events import CallDelta, Retrying
from crow.core.hooks.contexts import TurnContext
from crow.core.ports.llm import Completion, Request
from crow.core.ports.tool import ToolEnvironment
from crow.llm import ChatCompletions
from crow.testing import Endpoint, FakeEditor, ScriptedModel, call, delay, text
from crow.testing.endpoint import END, begin, delta, event, piece

FOREVER = 3600
PATIENCE = 30


async def cancelled(editor: FakeEditor, session: str, turn: asyncio.Task[Any]) -> None:
    """Cancel a turn: it must be answered once, soon, and leave the session usable."""
    before = len(editor.wire.received)
    async with asyncio.timeout(PATIENCE):
        await editor.cancel(session)
        reply = await turn
    assert reply.stop_reason == "cancelled"
    answered = [m for m in editor.wire.received[before:] if "result" in m]
    assert len(answered) == 1
    assert editor.wire.received[-1] is answered[0]
    assert all(card["status"] in ("completed", "failed") for card in editor.cards())
    assert (await editor.prompt(session, "And now?")).stop_reason == "end_turn"


@pytest.mark.rule("a cancel always works", "cancel that always works")
async def test_before_the_first_byte(tmp_path: Path) -> None:
    begun = asyncio.Event()

    def before_llm_request(ctx: TurnContext) -> None:
        begun.set()

    model = ScriptedModel([delay(FOREVER), "never"], "again")
    editor = FakeEditor()
    async with editor.connected(Agent(llm=model, hooks=[before_llm_request])):
        session = await editor.new_session(tmp_path)
        turn = asyncio.create_task(editor.prompt(session, "Go"))
        await begun.wait()
        await cancelled(editor, session, turn)


@pytest.mark.rule("a cancel always works", "cancel that always works")
async def test_in_the_middle_of_a_text(tmp_path: Path) -> None:
    model = ScriptedModel(["half a ", delay(FOREVER), "sentence"], "again")
    editor = FakeEditor()
    async with editor.connected(Agent(llm=model)):
        session = await editor.new_session(tmp_path)
        turn = asyncio.create_task(editor.prompt(session, "Go"))
        await editor.saw("agent_message_chunk")
        await cancelled(editor, session, turn)
    kept = [m["content"] for m in model.asked[-1]["messages"] if m["role"] == "assistant"]
    assert kept == ["half a "]


@pytest.mark.rule("a cancel always works", "cancel that always works")
async def test_while_more_is_said_at_once_than_can_be_shown(tmp_path: Path) -> None:
    """All of it is there when the first piece is seen, and the rest is not worked on any more."""
    said, many = event(delta(content="w ")), 6000
    editor = FakeEditor()
    async with Endpoint() as endpoint:
        endpoint.play([begin(), piece(said * many + event(delta(finish="stop"))), END])
        endpoint.play([begin(), piece(event(delta(content="ok", finish="stop"))), END])
        llm = ChatCompletions("m-1", endpoint.url, "k")
        async with editor.connected(Agent(llm=llm)):
            session = await editor.new_session(tmp_path)
            turn = asyncio.create_task(editor.prompt(session, "Go"))
            await editor.saw("agent_message_chunk")
            await cancelled(editor, session, turn)
            assert len(editor.text()) < len("w ") * many
        await llm.aclose()


class Stalling:
    """A model that yields something and then nothing more, until it is asked again."""

    model = "stalling"
    context_window = None

    def __init__(self, *deltas: Any) -> None:
        self.deltas = deltas
        self.stalled = asyncio.Event()

    async def stream(self, request: Request) -> AsyncGenerator[Any, None]:
        if not self.stalled.is_set():
            for delta in self.deltas:
                yield delta
            self.stalled.set()
            await asyncio.Event().wait()
        yield Completion("again")


@pytest.mark.parametrize(
    "deltas",
    [
        [CallDelta("c1", "Write", '{"file_path": "/a'), CallDelta("c1", "Write", "bc")],
        [Retrying(1, 60.0, "rate limited")],
    ],
    ids=["in the middle of a tool's arguments", "while a retry waits"],
)
@pytest.mark.rule("a cancel always works", "cancel that always works")
async def test_while_the_model_is(tmp_path: Path, deltas: list[Any]) -> None:
    model = Stalling(*deltas)
    editor = FakeEditor()
    async with editor.connected(Agent(llm=model)):
        session = await editor.new_session(tmp_path)
        turn = asyncio.create_task(editor.prompt(session, "Go"))
        await model.stalled.wait()
        await cancelled(editor, session, turn)


@pytest.mark.rule("a cancel always works", "cancel that always works")
async def test_while_tools_run(tmp_path: Path) -> None:
    both = asyncio.Barrier(3)

    @tool
    async def hang(ctx: ToolEnvironment) -> str:
        """Wait for ever."""
        await both.wait()
        await asyncio.Event().wait()
        return ""

    model = ScriptedModel([call("hang"), call("hang")], "again")
    editor = FakeEditor()
    async with editor.connected(Agent(llm=model, tools=[hang])):
        session = await editor.new_session(tmp_path)
        turn = asyncio.create_task(editor.prompt(session, "Go"))
        await both.wait()
        await cancelled(editor, session, turn)
    answers = [m for m in model.asked[-1]["messages"] if m["role"] == "tool"]
    assert len(answers) == 2


@pytest.mark.rule("a cancel always works", "cancel that always works")
async def test_while_a_command_runs(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    running = call("Bash", command=f"trap 'touch {gone}; exit' TERM; echo on; sleep 60 & wait")
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel(running, "again"))):
        session = await editor.new_session(tmp_path)
        turn = asyncio.create_task(editor.prompt(session, "Go"))
        shown = [{"type": "content", "content": {"type": "text", "text": "```\non\n```"}}]
        await editor.saw("tool_call_update", content=shown)
        await cancelled(editor, session, turn)
        said = [each["content"]["text"] for each in editor.cards()[0]["content"]]
        assert said == ["```\non\n```", "cancelled by the user"]
    assert gone.exists()


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.rule("a cancel always works", "cancel that always works")
async def test_a_command_that_ignores_it_holds_up_the_next_prompt_and_not_the_answer(
    tmp_path: Path,
) -> None:
    seen: list[tuple[str, bool]] = []
    stubborn = "trap '' TERM; echo $$ > pid; echo on; while :; do sleep 60; done"

    class Witness:
        def look(self, when: str) -> None:
            pid = tmp_path / "pid"
            seen.append((when, pid.exists() and is_alive(int(pid.read_text()))))

        def before_llm_request(self) -> None:
            self.look("asked")

        def after_tool(self) -> None:
            self.look("settled")

        def after_run(self) -> None:
            self.look("over")

    editor, model = FakeEditor(), ScriptedModel(call("Bash", command=stubborn), "again")
    async with editor.connected(Agent(llm=model, hooks=[Witness()])):
        session = await editor.new_session(tmp_path)
        turn = asyncio.create_task(editor.prompt(session, "Go"))
        shown = [{"type": "content", "content": {"type": "text", "text": "```\non\n```"}}]
        await editor.saw("tool_call_update", content=shown)
        await cancelled(editor, session, turn)
    asked = ("asked", False)
    assert seen == [asked, ("settled", True), ("over", False), asked, ("over", False)]


async def test_while_a_hook_runs(tmp_path: Path) -> None:
    entered = asyncio.Event()

    async def before_llm_request(ctx: TurnContext) -> None:
        if not entered.is_set():
            entered.set()
            await asyncio.Event().wait()

    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel("again"), hooks=[before_llm_request])):
        session = await editor.new_session(tmp_path)
        turn = asyncio.create_task(editor.prompt(session, "Go"))
        await entered.wait()
        await cancelled(editor, session, turn)


class Reluctant:
    """A model that never answers "Go", so that no cancellation is too late for it."""

    model = "reluctant"
    context_window = None

    async def stream(self, request: Request) -> AsyncGenerator[Any, None]:
        if request.messages[-1]["content"] == "Go":
            await asyncio.Event().wait()
        yield Completion("again")


@pytest.mark.rule("a cancel always works", "cancel that always works")
async def test_right_behind_the_prompt_in_one_write(tmp_path: Path) -> None:
    editor = FakeEditor()
    async with editor.connected(Agent(llm=Reluctant())):
        session = await editor.new_session(tmp_path)
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "Go"}]}
        both = (
            {"jsonrpc": "2.0", "id": "go", "method": "session/prompt", "params": prompt},
            {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}},
        )
        await editor.wire.write(b"".join(json.dumps(each).encode() + b"\n" for each in both))
        async with asyncio.timeout(PATIENCE):
            await editor.wire.until(lambda: editor.wire.received[-1].get("id") == "go")
        assert editor.wire.received[-1]["result"]["stopReason"] == "cancelled"
        assert (await editor.prompt(session, "And now?")).stop_reason == "end_turn"


async def test_prompts_that_wait_are_cancelled_with_the_one_that_runs(tmp_path: Path) -> None:
    model = ScriptedModel(["on", delay(FOREVER), "it"], "again")
    editor = FakeEditor()
    async with editor.connected(Agent(llm=model)):
        session = await editor.new_session(tmp_path)
        first = asyncio.create_task(editor.prompt(session, "1"))
        await editor.saw("agent_message_chunk")
        second = asyncio.create_task(editor.prompt(session, "2"))
        await asyncio.sleep(0)
        await editor.cancel(session)
        async with asyncio.timeout(PATIENCE):
            assert (await first).stop_reason == "cancelled"
            assert (await second).stop_reason == "cancelled"
        assert (await editor.prompt(session, "3")).stop_reason == "end_turn"


async def test_after_the_end_twice_and_for_nobody(tmp_path: Path) -> None:
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel("one", "two"))):
        session = await editor.new_session(tmp_path)
        await editor.cancel(session)
        assert (await editor.prompt(session, "1")).stop_reason == "end_turn"
        await editor.cancel(session)
        await editor.cancel(session)
        await editor.cancel("nobody")
        assert (await editor.prompt(session, "2")).stop_reason == "end_turn"


async def test_a_hook_that_swallows_its_cancellation_cannot_hold_the_answer(
    tmp_path: Path,
) -> None:
    entered = asyncio.Event()
    free = asyncio.Event()

    async def before_llm_request(ctx: TurnContext) -> None:
        entered.set()
        while not free.is_set():
            try:
                await free.wait()
            except asyncio.CancelledError:
                continue

    editor = FakeEditor()
    async with editor.connected(
        Agent(llm=ScriptedModel(text("x"), leftover="allow"), hooks=[before_llm_request])
    ):
        session = await editor.new_session(tmp_path)
        turn = asyncio.create_task(editor.prompt(session, "Go"))
        await entered.wait()
        await editor.cancel(session)
        async with asyncio.timeout(PATIENCE):
            assert (await turn).stop_reason == "cancelled"
        free.set()


async def test_a_request_is_cancelled_by_its_id(tmp_path: Path) -> None:
    model = ScriptedModel(["on", delay(FOREVER), "it"], "again")
    editor = FakeEditor()
    async with editor.connected(Agent(llm=model)):
        session = await editor.new_session(tmp_path)
        turn = asyncio.create_task(editor.prompt(session, "Go"))
        await editor.saw("agent_message_chunk")
        turn.cancel()
        await editor.wire.until(
            lambda: any(m.get("error", {}).get("code") == -32800 for m in editor.wire.received)
        )
        assert (await editor.prompt(session, "And now?")).stop_reason == "end_turn"
