"""What is stored comes back: sessions, their list, copies, names and records."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path

import apsw
import pytest
from tests.extensions.tools import shout
from tests.watching import Watching

from crow.core.agent import Agent
from crow.core.catalog import Command
from crow.core.errors import SessionError
from crow.core.events import (
    PlanChanged,
    PlanEntry,
    TextDelta,
    ThoughtDelta,
    ToolEnded,
    ToolPending,
    ToolStarted,
    UserMessage,
)
from crow.core.messages import tool_answer, user
from crow.core.session import Session
from crow.core.verdicts import Answer, Deny
from crow.extensions import PersistenceHook
from crow.ports.stores import ForkStore
from crow.testing import ScriptedModel, call, text
from crow.tools import tool


async def talk(db: Path | str, *script: object, prompt: str = "hello", cwd: str = ".") -> Session:
    """One prompt in a session of its own, which is closed again."""
    model = ScriptedModel(*script)  # type: ignore[arg-type]
    async with Agent(model, hooks=[PersistenceHook(db)], tools=[shout]) as agent:
        return (await agent.run(prompt, cwd=cwd)).session


async def test_a_session_comes_back_as_it_was(db: Path | str) -> None:
    usage = {"input_tokens": 90, "output_tokens": 10, "total_tokens": 100}
    old = await talk(db, call("shout", word="hi"), text("done", usage=usage))  # type: ignore[arg-type]
    async with Agent(ScriptedModel(), hooks=[PersistenceHook(db)], tools=[shout]) as agent:
        new = await agent.load_session(old.id)
        assert new.messages == old.messages
        assert (new.title, new.cwd, new.segment) == (old.title, old.cwd, old.segment)
        assert new.usage == old.usage == usage
        assert new.tokens() == old.tokens()
        assert new.next_message_id == old.next_message_id


async def test_a_long_prompt_comes_back_letter_by_letter(db: Path | str) -> None:
    """It is made JSON of in slices: no letter may be lost at an end of one."""
    long = 'a "quoted" line, äöü \\ 😀 \x00 \udc80\n' * 9_000
    old = await talk(db, text("done"), prompt=long)
    new = await PersistenceHook(db).store.load(old.id)
    assert new.messages == old.messages
    told = [event async for event in PersistenceHook(db).store.replay(old.id)]
    assert isinstance(told[0], UserMessage)
    assert told[0].content == long


async def test_an_empty_session_is_stored_at_its_birth(db: Path | str) -> None:
    agent = Agent(ScriptedModel(), hooks=[PersistenceHook(db)], tools=[])
    session = await agent.new_session("/", mode="plan", model="small")
    assert (await PersistenceHook(db).store.sessions())[0][0].id == session.id
    await agent.close()
    again = await PersistenceHook(db).store.load(session.id)
    assert (again.cwd, again.mode, again.model) == ("/", "plan", "small")


async def test_nothing_is_opened_before_the_first_session(file: Path) -> None:
    hook = PersistenceHook(file)
    Agent(ScriptedModel(), hooks=[hook], tools=[])
    assert await hook.store.sessions() == ([], None)
    assert not await hook.store.delete("x")
    with pytest.raises(SessionError, match=r"there is no session 'x' in .*crow\.db"):
        await hook.store.load("x")
    assert not file.parent.exists()


async def test_only_the_owner_can_read_what_is_stored(file: Path) -> None:
    agent = Agent(ScriptedModel(), hooks=[PersistenceHook(file)], tools=[])
    await agent.new_session()
    for path in [file.parent, *file.parent.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    await agent.close()


async def test_the_title_is_the_first_line_of_the_first_prompt(db: Path | str) -> None:
    client = Watching()
    async with Agent(ScriptedModel("a", "b"), hooks=[PersistenceHook(db)], tools=[]) as agent:
        session = await agent.new_session(client=client)
        await agent.prompt(session, "\n  Mend " + "the pipe " * 20 + "\nnow")
        await agent.prompt(session, "another")
    assert session.title == "Mend the pipe the pipe the pipe the pipe the pipe the pipe…"
    assert len(session.title) <= 60
    assert [e.title for e in client.events if hasattr(e, "title")] == [session.title]  # type: ignore[union-attr]


async def test_the_list_has_pages_and_knows_directories(db: Path | str, tmp_path: Path) -> None:
    ids = [(await talk(db, "x", cwd=str(tmp_path))).id for _ in range(5)]
    other = await talk(db, "x", cwd="/")
    hook = PersistenceHook(db)
    first, cursor = await hook.store.sessions(limit=4)
    rest, end = await hook.store.sessions(limit=4, cursor=cursor)
    assert [info.id for info in first + rest] == [other.id, *reversed(ids)]
    assert end is None
    for cursor in ("no such page", "-1", "¹"):
        with pytest.raises(ValueError, match="there is no page"):
            await hook.store.sessions(cursor=cursor)
    here, _ = await hook.store.sessions(cwd="/")
    assert [(info.id, info.title, info.messages) for info in here] == [(other.id, "hello", 2)]


async def test_the_session_used_last_is_first_whatever_the_clock_says(db: Path | str) -> None:
    one, two = await talk(db, "x"), await talk(db, "x")
    async with Agent(ScriptedModel("y"), hooks=[PersistenceHook(db)], tools=[]) as agent:
        await agent.prompt(await agent.load_session(one.id), "again")
    infos, _ = await PersistenceHook(db).store.sessions()
    assert [info.id for info in infos] == [one.id, two.id]


async def test_a_copy_goes_its_own_way(db: Path | str) -> None:
    old = await talk(db, "first")
    hook = PersistenceHook(db)
    async with Agent(ScriptedModel("second"), hooks=[hook], tools=[]) as agent:
        copy = await agent.load_session(await hook.store.fork(old.id), source="fork")
        await agent.prompt(copy, "more")
        assert copy.messages[:2] == old.messages
    assert (await hook.store.segments(old.id))[-1] == old.messages
    assert len((await hook.store.segments(copy.id))[-1]) == 4
    with pytest.raises(SessionError, match="there is no session"):
        await hook.store.fork("nothing")


async def test_a_session_in_use_can_be_copied(db: Path | str) -> None:
    store = PersistenceHook(db)
    async with Agent(ScriptedModel("x"), hooks=[store], tools=[]) as agent:
        session = (await agent.run("hello")).session
        copy = await PersistenceHook(db).store.fork(session.id)
        assert (await agent.load_session(copy)).messages == session.messages


async def test_a_session_can_be_renamed_while_it_is_open(db: Path | str) -> None:
    hook = PersistenceHook(db)
    async with Agent(ScriptedModel("x", "y"), hooks=[hook], tools=[]) as agent:
        session = (await agent.run("hello")).session
        await hook.store.rename(session.id, "Greetings")
        await agent.prompt(session, "again")
        assert session.title == "Greetings"
    assert (await hook.store.sessions())[0][0].title == "Greetings"
    with pytest.raises(SessionError, match="there is no session"):
        await hook.store.rename("nothing", "x")


async def test_a_deleted_session_is_gone_for_good(db: Path | str) -> None:
    hook = PersistenceHook(db)
    async with Agent(ScriptedModel("x", "y"), hooks=[hook], tools=[]) as agent:
        session = (await agent.run("hello")).session
        with pytest.raises(SessionError, match="in use"):
            await PersistenceHook(db).store.delete(session.id)
        assert await hook.store.delete(session.id)
        assert not await hook.store.delete(session.id)
        await agent.prompt(session, "still there?")
    assert await hook.store.sessions() == ([], None)
    with pytest.raises(SessionError, match="there is no session"):
        await hook.store.load(session.id)


async def test_what_is_asked_about_one_session_at_once_is_done_in_turn(db: Path | str) -> None:
    session = await talk(db, "Hi.")
    hook = PersistenceHook(db)
    async with Agent(ScriptedModel(), hooks=[hook]):
        states = [True, False] * 6
        await asyncio.gather(*(hook.store.archive(session.id, archived=each) for each in states))
        assert [each.id for each in (await hook.store.sessions(archived=False))[0]] == [session.id]
        assert sorted(await asyncio.gather(*(hook.store.delete(session.id) for _ in range(4)))) == [
            *([False] * 3),
            True,
        ]


async def test_an_export_is_json_lines(db: Path | str) -> None:
    session = await talk(db, call("shout", word="hi"), "done")
    head, *rows = map(json.loads, (await PersistenceHook(db).store.export(session.id)).splitlines())
    assert (head["kind"], head["id"], head["title"]) == ("session", session.id, "hello")
    kinds = ["message", "sent", "message", "started", "result", "answer", "message"]
    assert [row["kind"] for row in rows if row["kind"] != "opened"] == kinds
    assert [row["seq"] for row in rows] == list(range(len(rows)))


async def test_a_replay_tells_what_the_client_saw(db: Path | str) -> None:
    client = Watching()

    @tool
    async def plan(ctx: object) -> str:
        """Make a plan."""
        await ctx.emit(PlanChanged((PlanEntry("dig"),)))  # type: ignore[attr-defined]
        return "planned"

    script = (text("", reasoning="hm"), call("plan"), text("done", reasoning="so"))
    async with Agent(
        ScriptedModel(*script[1:]), hooks=[PersistenceHook(db)], tools=[plan]
    ) as agent:
        session = await agent.new_session(client=client)
        await agent.prompt(session, "go")
    kinds = (TextDelta, ThoughtDelta, ToolPending, ToolStarted, ToolEnded, PlanChanged)
    events = [event async for event in PersistenceHook(db).store.replay(session.id)]
    assert events[0] == UserMessage("go", f"{session.id}.0.0")
    assert events[1:] == [event for event in client.events if isinstance(event, kinds)]


async def test_state_options_and_model_are_stored(db: Path | str) -> None:
    class Counter:
        async def after_turn(self, state: dict[str, int]) -> None:
            state["turns"] = state.get("turns", 0) + 1

    hook = PersistenceHook(db)
    async with Agent(ScriptedModel("x", "y"), hooks=[hook, Counter()], tools=[]) as agent:
        session = (await agent.run("hello")).session
        await agent.configure(session, model="large", mode="plan", depth=3)
    again = await hook.store.load(session.id)
    assert again.state == {"counter": {"turns": 1}}
    assert (again.model, again.mode, again.options) == ("large", "plan", {"depth": 3})


async def test_a_new_segment_leaves_the_old_one_readable(db: Path | str) -> None:
    class Compact:
        async def after_turn(self, ctx: object, session: Session) -> None:
            if len(session.messages) == 4:
                await ctx.compact(session.messages[2:], "they greeted")  # type: ignore[attr-defined]

    hook = PersistenceHook(db)
    async with Agent(ScriptedModel("a", "b", "c"), hooks=[hook, Compact()], tools=[]) as agent:
        session = await agent.new_session()
        for prompt in ("one", "two", "three"):
            await agent.prompt(session, prompt)
    again = await hook.store.load(session.id)
    assert again.segment == 1
    assert again.messages == session.messages
    old, new = await hook.store.segments(session.id)
    assert [message.get("content") for message in old] == ["one", "a", "two", "b"]
    assert new == session.messages
    told = [
        e async for e in hook.store.replay(session.id) if isinstance(e, UserMessage | TextDelta)
    ]
    assert [getattr(e, "text", getattr(e, "content", "")) for e in told] == [
        "one", "a", "two", "b", "three", "c",
    ]  # fmt: skip


async def test_what_a_hook_answered_is_shown_again_and_no_part_of_the_history(
    db: Path | str,
) -> None:
    class Shortcut:
        def before_run(self, prompt: str) -> Answer | None:
            return Answer("42") if prompt == "the answer?" else None

    hook = PersistenceHook(db)
    async with Agent(ScriptedModel("sure"), hooks=[hook, Shortcut()], tools=[]) as agent:
        session = (await agent.run("the answer?")).session
        await agent.prompt(session, "sure?")
    assert [m.get("content") for m in (await hook.store.load(session.id)).messages] == [
        "sure?",
        "sure",
    ]
    told = [e.text async for e in hook.store.replay(session.id) if isinstance(e, TextDelta)]
    assert told == ["42", "sure"]
    assert len(await hook.store.search("42")) == 1


async def test_commands_and_their_answers_are_told_again_one_by_one(db: Path | str) -> None:
    class Clock:
        def init_agent(self, agent: Agent) -> None:
            async def tell(ctx: object) -> Answer:
                return Answer("It is noon.")

            async def forget(ctx: object) -> None:
                return None

            agent.add_command(Command("time", "Tell the time", tell))
            agent.add_command(Command("forget", "Say nothing", forget))

        def before_run(self, prompt: str) -> Deny | None:
            return Deny("a secret") if prompt == "hunter2" else None

    hook = PersistenceHook(db)
    async with Agent(ScriptedModel("sure"), hooks=[hook, Clock()], tools=[]) as agent:
        session = await agent.new_session()
        for prompt in ("/time", "/time", "/forget", "hunter2", "sure?"):
            await agent.prompt(session, prompt)
    told = [
        e async for e in hook.store.replay(session.id) if isinstance(e, UserMessage | TextDelta)
    ]
    assert [getattr(e, "text", getattr(e, "content", "")) for e in told] == [
        "/time", "It is noon.", "/time", "It is noon.", "/forget", "sure?", "sure",
    ]  # fmt: skip
    ids = [event.message_id for event in told]
    assert len(set(ids)) == len(ids)
    assert "hunter2" not in await hook.store.export(session.id), "what was refused may be a secret"


async def test_a_history_written_by_hand_is_shown_as_well_as_that_is_possible(
    db: Path | str,
) -> None:
    hook = PersistenceHook(db)
    async with Agent(ScriptedModel(), hooks=[hook], tools=[]) as agent:
        session = await agent.new_session()
        parts = [
            {"id": id_, "type": "function", "function": {"name": "x", "arguments": text}}
            for id_, text in (("a", '{"n": 1}'), ("b", "broken"), ("c", "{}"))
        ]
        session.messages += [
            {"role": "assistant", "content": None, "tool_calls": parts},  # type: ignore[typeddict-item]
            tool_answer("a", "did it"),
            tool_answer("nobody", "asked"),
            user("well?"),
        ]
    ended = [e async for e in hook.store.replay(session.id) if isinstance(e, ToolEnded)]
    assert [(e.call.id, e.call.args, e.outcome) for e in ended] == [
        ("a", {"n": 1}, "ok"),
        ("b", {}, "cancelled"),
        ("c", {}, "cancelled"),
    ]


async def test_every_write_can_wait_for_the_disk(db: Path | str) -> None:
    store = PersistenceHook(db, synchronous="full")
    script = (call("shout", word="hi"), "done")
    async with Agent(ScriptedModel(*script), hooks=[store], tools=[shout]) as agent:
        session = (await agent.run("hello")).session
    assert (await PersistenceHook(db).store.load(session.id)).messages == session.messages


async def test_one_extension_serves_several_agents(db: Path | str) -> None:
    hook = PersistenceHook(db)
    async with Agent(ScriptedModel("a"), hooks=[hook], tools=[]) as one:
        async with Agent(ScriptedModel("b"), hooks=[hook], tools=[]) as two:
            second = (await two.run("hello")).session
            parent = (await one.run("hello")).session
            child = await two.new_session(parent=parent, agent_type="explorer")
        assert len((await hook.store.sessions())[0]) == 2
        with pytest.raises(SessionError, match="in use"):
            await hook.store.load(parent.id)
        assert (await one.load_session(second.id)).messages == second.messages
        assert (await hook.store.load(child.id)).agent_type == "explorer"


async def test_a_sub_agent_is_stored_only_where_it_uses_the_extension(db: Path | str) -> None:
    hook = PersistenceHook(db)
    async with Agent(ScriptedModel(), hooks=[hook], tools=[]) as agent:
        session = await agent.new_session()
        async with agent.child(ScriptedModel("a")) as child:
            forgotten = await child.new_session(parent=session)
            await child.prompt(forgotten, "go")
        async with agent.child(ScriptedModel("a"), hooks=[hook]) as child:
            stored = await child.new_session(parent=session)
            await child.prompt(stored, "go")
        assert [info.id for info in (await hook.store.sessions())[0]] == [session.id]
        assert (await hook.store.load(stored.id)).messages == stored.messages
        with pytest.raises(SessionError, match="there is no session"):
            await hook.store.load(forgotten.id)


async def test_the_writer_tidies_up_when_nothing_happens(file: Path) -> None:
    async with Agent(ScriptedModel("a needle"), hooks=[PersistenceHook(file)], tools=[]) as agent:
        await agent.run("hello")
        look = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
        async with asyncio.timeout(50):
            while not look.execute("SELECT 1 FROM words WHERE words MATCH 'needle'").get:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        look.close()


async def test_two_sessions_cannot_have_one_id(db: Path | str) -> None:
    await talk(db, "x")
    client = Watching()
    async with Agent(ScriptedModel("a", "b"), hooks=[PersistenceHook(db)], tools=[]) as agent:
        first = await agent.new_session(id="same")
        await agent.prompt(first, "hello")
        await agent.close_session(first)
        second = await agent.new_session(id="same", client=client)
        await agent.prompt(second, "hello")
    assert "already: load it" in str(client.events[0])
    assert (await PersistenceHook(db).store.segments("same"))[-1] == first.messages


async def test_words_that_no_database_can_hold_are_stored_all_the_same(db: Path | str) -> None:
    session = await talk(db, "\ud83d \x00 ü", prompt="lone \udc80 surrogate")
    assert (await PersistenceHook(db).store.load(session.id)).messages == session.messages


async def test_an_agent_without_the_extension_says_what_is_missing() -> None:
    with pytest.raises(SessionError, match="use an extension such as PersistenceHook"):
        await Agent(ScriptedModel(), tools=[]).load_session("x")
    agent = Agent(ScriptedModel(), hooks=[PersistenceHook()], tools=[])
    agent.remove("persistence")
    assert agent.store is None


async def test_a_session_that_was_just_opened_is_read_once_to_be_told_again(tmp_path: Path) -> None:
    """Its rows are changed meanwhile, which shows where they come from."""
    db = tmp_path / "crow.db"
    async with Agent(ScriptedModel("One.", "Two."), hooks=[PersistenceHook(db)]) as agent:
        session = (await agent.run("Go")).session
        await agent.run("Go on", session=session)
    hook = PersistenceHook(db)

    async def told() -> list[str]:
        return [e.text async for e in hook.store.replay(session.id) if isinstance(e, TextDelta)]

    async with Agent(ScriptedModel("Three."), hooks=[hook]) as agent:
        session = await agent.load_session(session.id)
        changing = apsw.Connection(str(db))
        changing.execute("UPDATE log SET data = replace(data, 'Two.', '2.')")
        changing.close()
        assert await told() == ["One.", "Two."]
        assert await told() == ["One.", "2."]
        await agent.run("And now", session=session)
        assert await told() == ["One.", "2.", "Three."]


async def test_the_hook_gives_the_agent_its_store(tmp_path: Path) -> None:
    hook = PersistenceHook(tmp_path / "crow.db")
    async with Agent(ScriptedModel("hi"), hooks=[hook]) as agent:
        session = (await agent.run("hello")).session
        assert agent.store is hook.store
        assert isinstance(agent.store, ForkStore)
        found, _ = await hook.store.sessions()
        assert [each.id for each in found] == [session.id]
        assert hook.store.path == tmp_path / "crow.db"
