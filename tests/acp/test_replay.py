"""What a loaded session shows of what the store does not know."""

from __future__ import annotations

import asyncio
import copy
import shutil
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from crow import Agent, Answer, Ask, Command
from crow.core.errors import SessionError
from crow.core.events import Event, TextDelta
from crow.core.messages import Message
from crow.core.session import Session
from crow.core.store import SessionInfo
from crow.core.tools import ToolKind
from crow.errors import ModelError
from crow.extensions.persistence import PersistenceHook
from crow.testing import FakeEditor, ScriptedModel, call, text

SHOWN = ("user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "notice")


class Shelf:
    """A store in memory that keeps histories."""

    def __init__(self) -> None:
        self.histories: dict[str, list[Message]] = {}

    def init_agent(self, agent: Agent) -> None:
        agent.store = self

    def save(self, session: Session) -> None:
        self.histories[session.id] = copy.deepcopy(session.messages)

    def after_turn(self, session: Session) -> None:
        self.save(session)

    async def load(self, session_id: str) -> Session:
        if session_id not in self.histories:
            raise SessionError(f"there is no session {session_id}")
        return Session(id=session_id, messages=copy.deepcopy(self.histories[session_id]))

    async def sessions(self, **_: Any) -> tuple[list[SessionInfo], str | None]:
        raise ValueError("the cursor is not one of mine")

    async def delete(self, session_id: str) -> bool:
        return self.histories.pop(session_id, None) is not None


class SlowShelf(Shelf):
    """A store that makes the rest of what it tells once somebody has seen the first of it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = asyncio.Event()

    async def replay(self, session_id: str, *, asked: bool = False) -> AsyncIterator[Event]:
        yield TextDelta("first ", f"{session_id}.0.0")
        await self.seen.wait()
        yield TextDelta("last", f"{session_id}.0.1")


async def test_the_first_is_told_while_the_rest_is_read(tmp_path: Path) -> None:
    shelf, editor = SlowShelf(), FakeEditor()
    shelf.histories["s"] = []
    async with editor.connected(Agent(llm=ScriptedModel(), hooks=[shelf])):
        loading = asyncio.create_task(editor.connection.load_session(str(tmp_path), "s"))
        await editor.saw("agent_message_chunk")
        assert (editor.text(), loading.done()) == ("first ", False)
        shelf.seen.set()
        await loading
        assert editor.text() == "first last"


async def test_the_history_is_told_with_its_calls_and_without_injected_context(
    tmp_path: Path,
) -> None:
    async def before_run(ctx: Any) -> str:
        return "it is Monday"

    file = tmp_path / "a.txt"
    file.write_text("one\n")
    shelf = Shelf()
    script = ["Reading.", call("Read", file_path=str(file)), call("Gone", x=1)], "Done."
    first, later = FakeEditor(), FakeEditor()
    thought = text("Bye.", reasoning="So be it.")
    agent = Agent(llm=ScriptedModel(*script, thought), hooks=[shelf, before_run])
    picture = {"type": "image", "mimeType": "image/png", "data": "aGk="}
    async with first.connected(agent):
        session = await first.new_session(tmp_path)
        await first.prompt(session, "Read it", picture)
        await first.prompt(session, "Thanks")
    async with later.connected(Agent(llm=ScriptedModel(), hooks=[shelf])):
        await later.connection.load_session(str(tmp_path), session)
        said = [update["content"] for update in later.updates("user_message_chunk")]
        assert said == [
            {"type": "text", "text": "Read it"},
            picture,
            {"type": "text", "text": "Thanks"},
        ]
        assert later.text() == "Reading.Done.Bye."
        assert later.text(kind="agent_thought_chunk") == "So be it."
        read, gone = later.cards()
    assert read["title"] == first.cards()[0]["title"]
    assert read["locations"][0]["path"] == str(file)
    assert "one" in read["content"][0]["content"]["text"]
    assert gone["title"] == "Gone"


async def test_a_call_that_was_lost_before_it_began_is_told_like_any_other(tmp_path: Path) -> None:
    def before_tool(ctx: Any) -> Ask:
        return Ask("who knows")

    asking = "session/request_permission"
    first, later = FakeEditor(silent=[asking]), FakeEditor()
    store = PersistenceHook(tmp_path / "store" / "crow.db")
    model = ScriptedModel(call("Bash", command="touch a"))
    async with first.connected(Agent(llm=model, hooks=[store, before_tool])):
        session = await first.new_session(tmp_path)
        turn = asyncio.create_task(first.prompt(session, "Do it"))
        await first.wire.until(lambda: first.wire.received[-1].get("method") == asking)
        shutil.copytree(tmp_path / "store", tmp_path / "left")
    await asyncio.wait([turn])
    store = PersistenceHook(tmp_path / "left" / "crow.db")
    async with later.connected(Agent(llm=ScriptedModel(), hooks=[store])):
        await later.connection.load_session(str(tmp_path), session)
        (card,) = later.cards()
    assert (card["title"], card["kind"]) == ("touch a", "execute")
    assert card["status"] == "failed"


class Described:
    """A tool that knows in which turn of the loop somebody wanted to know what a call is."""

    name = description = "described"
    kind: ToolKind = "other"

    def __init__(self) -> None:
        self.parameters = {"type": "object"}
        self.turn = 0
        self.asked: list[int] = []

    async def tick(self) -> None:
        while True:
            self.turn += 1
            await asyncio.sleep(0)

    def title(self, args: dict[str, Any]) -> str:
        self.asked.append(self.turn)
        return self.name

    def locations(self, args: dict[str, Any], cwd: str) -> tuple[()]:
        return ()

    async def run(self, args: dict[str, Any], ctx: Any) -> str:
        return ""


async def test_a_long_conversation_is_told_in_many_turns_of_the_loop(tmp_path: Path) -> None:
    """Others have something to say, too."""
    shelf, described, many = Shelf(), Described(), 200
    function = {"name": described.name, "arguments": "{}"}
    calls: Any = [{"id": f"c{n}", "type": "function", "function": function} for n in range(many)]
    asked: Message = {"role": "assistant", "content": "", "tool_calls": calls}
    answers: list[Any] = [
        {"role": "tool", "tool_call_id": each["id"], "content": "x"} for each in calls
    ]
    shelf.histories["long"] = [{"role": "user", "content": "Go"}, asked, *answers]
    editor = FakeEditor()
    agent = Agent(llm=ScriptedModel(), hooks=[shelf], tools=[described])
    async with editor.connected(agent):
        ticking = asyncio.create_task(described.tick())
        await editor.connection.load_session(str(tmp_path), "long")
        ticking.cancel()
        assert len(editor.cards()) == many
    told = Counter(described.asked[-many:])
    assert max(told.values()) <= 32


async def test_a_store_that_refuses_is_heard(tmp_path: Path) -> None:
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel(), hooks=[Shelf()])):
        listed = await editor.wire.request("session/list", {"cursor": "x"})
        loaded = await editor.wire.request("session/load", {"cwd": "/", "sessionId": "x"})
        forked = await editor.wire.request("session/fork", {"cwd": "/", "sessionId": "x"})
    assert listed["error"]["code"] == -32602
    assert loaded["error"]["code"] == -32002
    assert loaded["error"]["data"]["details"] == "there is no session x"
    assert forked["error"]["code"] == -32002


async def test_commands_are_told_again_as_messages_of_their_own(tmp_path: Path) -> None:
    def telling(agent: Agent) -> None:
        async def run(ctx: Any) -> Answer:
            return Answer("It is noon.")

        agent.add_command(Command("time", "Tell the time", run))

    first, later = FakeEditor(), FakeEditor()
    db = tmp_path / "crow.db"
    agent = Agent(llm=ScriptedModel("Hello."), hooks=[PersistenceHook(db)])
    telling(agent)
    async with first.connected(agent):
        session = await first.new_session(tmp_path)
        for prompt in ("/time", "/time", "Hi"):
            await first.prompt(session, prompt)
    async with later.connected(Agent(llm=ScriptedModel(), hooks=[PersistenceHook(db)])):
        await later.connection.load_session(str(tmp_path), session)
        said = [
            (update["content"]["text"], update["messageId"])
            for update in later.updates()
            if update["sessionUpdate"] in ("user_message_chunk", "agent_message_chunk")
        ]
    texts, ids = zip(*said, strict=True)
    assert texts == ("/time", "It is noon.", "/time", "It is noon.", "Hi", "Hello.")
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("notices", [True, False])
async def test_why_a_run_failed_is_shown_again_where_it_was(
    tmp_path: Path, *, notices: bool
) -> None:
    error = ModelError("the quota is used up", kind="rate_limit")
    first, later = FakeEditor(notices=notices), FakeEditor(notices=notices)
    hooks = [PersistenceHook(tmp_path / "db")]
    async with first.connected(Agent(llm=ScriptedModel(error, "Better."), hooks=hooks)):
        session = await first.new_session(tmp_path)
        await first.prompt(session, "Hi")
        await first.prompt(session, "And now?")
    async with later.connected(Agent(llm=ScriptedModel(), hooks=hooks)):
        await later.connection.load_session(str(tmp_path), session)
        told = [kind for each in later.updates() if (kind := each["sessionUpdate"]) in SHOWN]
        failed = "notice" if notices else "agent_message_chunk"
        user, said = "user_message_chunk", "agent_message_chunk"
        assert told == [user, failed, user, said]
        assert later.updates(failed)[0] == first.updates(failed)[0]


async def test_what_a_cancelled_command_had_printed_is_shown_again(tmp_path: Path) -> None:
    first, later = FakeEditor(), FakeEditor()
    hooks = [PersistenceHook(tmp_path / "db")]
    script = ScriptedModel(call("Bash", command="echo begun; sleep 60"))
    async with first.connected(Agent(llm=script, hooks=hooks)):
        session = await first.new_session(tmp_path)
        running = asyncio.create_task(first.prompt(session, "Wait"))
        await first.wire.until(lambda: "```\\nbegun" in str(first.cards()))
        await first.connection.cancel(session)
        assert (await running).stop_reason == "cancelled"
    async with later.connected(Agent(llm=ScriptedModel(), hooks=hooks)):
        await later.connection.load_session(str(tmp_path), session)
        assert len(later.updates("tool_call")) == 1
        assert later.updates("tool_call_update") == []
        assert later.cards()[0]["content"] == first.cards()[0]["content"]
        assert "begun" in str(later.cards()[0]["content"])
