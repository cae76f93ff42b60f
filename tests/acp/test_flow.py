"""What goes out: in order, bounded, and never faster than the client reads (C08)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from crow import Agent
from crow.acp.jsonrpc import Message
from crow.acp.send_queue import SendQueue
from crow.core.events import TextDelta
from crow.core.ports.llm import Completion, Request
from crow.testing import FakeEditor, ScriptedModel, call


class Fountain:
    """A model that says a lot, one piece after another, and counts the pieces."""

    model = "fountain"
    context_window = None

    def __init__(self, pieces: int, size: int) -> None:
        self.pieces = pieces
        self.size = size
        self.said = 0
        self.ended = asyncio.Event()

    async def stream(self, request: Request) -> AsyncGenerator[Any, None]:
        try:
            for number in range(self.pieces):
                self.said += 1
                yield TextDelta(f"{number:0{self.size}}", request.message_id)
                await asyncio.sleep(0)
            yield Completion("done")
        finally:
            self.ended.set()


async def settled(model: Fountain) -> int:
    """How much was said when it says nothing more; on a slow machine, somewhat less than that."""
    said = -1
    while said != model.said:
        said = model.said
        await asyncio.sleep(0.05)
    return said


@pytest.mark.slow
@pytest.mark.rule("one ordered queue")
async def test_a_client_that_does_not_read_stops_the_model_and_gets_everything_later(
    tmp_path: Path,
) -> None:
    model = Fountain(pieces=4000, size=1000)
    editor = FakeEditor()
    async with editor.connected(Agent(llm=model)):
        session = await editor.new_session(tmp_path)
        editor.wire.pause()
        turn = asyncio.create_task(editor.prompt(session, "Talk"))
        said = await settled(model)
        assert 0 < said < 2500
        editor.wire.resume()
        assert (await turn).stop_reason == "end_turn"
        assert editor.text() == "".join(f"{number:01000}" for number in range(4000))


async def test_a_client_that_does_not_read_can_still_cancel(tmp_path: Path) -> None:
    model = Fountain(pieces=4000, size=1000)
    editor = FakeEditor()
    async with editor.connected(Agent(llm=model)):
        session = await editor.new_session(tmp_path)
        editor.wire.pause()
        turn = asyncio.create_task(editor.prompt(session, "Talk"))
        await settled(model)
        await editor.cancel(session)
        await model.ended.wait()
        assert model.said < model.pieces
        editor.wire.resume()
        assert (await turn).stop_reason == "cancelled"


async def test_a_huge_piece_comes_in_lines_that_any_client_can_read(tmp_path: Path) -> None:
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel("x" * 2_000_000))):
        await editor.prompt(await editor.new_session(tmp_path), "Talk")
        assert editor.text() == "x" * 2_000_000
        sizes = [len(update["content"]["text"]) for update in editor.updates("agent_message_chunk")]
    assert max(sizes) <= 16 * 1024


async def test_pieces_grow_together_while_the_client_is_slow() -> None:
    written: list[bytes] = []
    waiting: list[Any] = []

    def send(data: bytes, done: Any) -> None:
        written.append(data)
        waiting.append(done)

    outbox = SendQueue(send)

    def build(text: str) -> Message:
        return {"text": text}

    outbox.post({"first": True})
    await asyncio.sleep(0)
    for letter in "abc":
        outbox.post_text(build, letter, "one")
    outbox.post_text(build, "d", "two")
    outbox.post({"progress": 1}, "p")
    outbox.post({"progress": 2}, "p")
    outbox.post_text(build, "e", "two")
    waiting.pop()()
    assert written == [
        b'{"first":true}\n',
        b'{"text":"abc"}\n{"text":"d"}\n{"progress":2}\n{"text":"e"}\n',
    ]
    waiting.pop()()
    await outbox.drained()


async def test_senders_wait_for_room_and_are_let_go_when_it_closes() -> None:
    waiting: list[Any] = []
    outbox = SendQueue(lambda data, done: waiting.append(done), limit=100)
    outbox.post({"a": "x" * 60})
    await asyncio.sleep(0)
    await outbox.room()
    outbox.post({"b": "x" * 200})
    sender = asyncio.create_task(outbox.room())
    await asyncio.sleep(0)
    assert not sender.done()
    waiting.pop(0)()
    waiting.pop(0)()
    await sender
    outbox.post({"c": "x" * 200})
    sender = asyncio.create_task(outbox.room())
    await asyncio.sleep(0)
    outbox.close()
    await sender


@pytest.mark.rule("one ordered queue")
async def test_updates_of_many_calls_at_once_stay_in_order(tmp_path: Path) -> None:
    commands = [call("Bash", command=f"for i in 1 2 3; do echo {n}; done") for n in range(5)]
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel(commands, "done"))):
        await editor.prompt(await editor.new_session(tmp_path), "Go")
        for card in editor.cards():
            states = [
                update["status"]
                for update in editor.updates()
                if update.get("toolCallId") == card["toolCallId"] and "status" in update
            ]
            assert states == ["pending", "in_progress", "completed"]
