"""Whatever happens to a session, and in whatever order, it loads as it was."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.postgres import Server

from crow.core.agent import Agent
from crow.core.hooks.context import Context
from crow.core.messages import Message, context_block, tool_answer, user
from crow.core.session import Session
from crow.extensions import PersistenceHook
from crow.testing import ScriptedModel

UNCHECKED = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow)
words = st.text(max_size=20)
prompts = st.builds(user, words)
blocks = st.builds(context_block, words, st.just("test"))
answers: st.SearchStrategy[Message] = words.map(lambda text: {"role": "assistant", "content": text})


def calling(ids: list[str]) -> list[Message]:
    """A message with calls, and an answer to each."""
    parts: Any = [
        {"id": id_, "type": "function", "function": {"name": "x", "arguments": "{}"}} for id_ in ids
    ]
    said: Message = {"role": "assistant", "content": None, "tool_calls": parts}
    return [said, *(tool_answer(id_, f"did {id_}") for id_ in ids)]


calls = st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True).map(calling)
appended = st.one_of(
    prompts.map(lambda m: [m]), blocks.map(lambda m: [m]), answers.map(lambda m: [m]), calls
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), appended),
        st.tuples(st.just("compact"), st.integers(0, 4)),
        st.tuples(st.just("restart"), st.just(0)),
        st.tuples(st.just("fork"), st.just(0)),
        st.tuples(st.just("reload"), st.just(0)),
        st.tuples(st.just("save"), appended),
        st.tuples(st.just("state"), st.integers()),
    ),
    max_size=25,
)


@settings(max_examples=25, deadline=None, suppress_health_check=UNCHECKED)
@given(steps)
def test_any_course_of_events_loads_as_it_was(course: list[tuple[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(follow(Path(folder) / "crow.db", course))


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=UNCHECKED)
@given(steps)
def test_any_course_of_events_loads_as_it_was_from_postgresql(
    postgres: Server, course: list[tuple[str, Any]]
) -> None:
    asyncio.run(follow(postgres.database(), course))


async def follow(db: Path | str, course: list[tuple[str, Any]]) -> None:
    hook = PersistenceHook(db)
    async with Agent(ScriptedModel(), hooks=[hook], tools=[]) as agent:
        session = await agent.new_session()
        forks: dict[str, list[Message]] = {}
        past: list[list[Message]] = []
        for step, value in course:
            session, old = await take(agent, hook, session, step, value, forks)
            past += old
        await agent.close_session(session)
        again = await hook.store.load(session.id)
        assert again.messages == session.messages
        assert (again.state, again.segment) == (session.state, session.segment)
        assert await hook.store.segments(session.id) == [*past, session.messages]
        for fork, messages in forks.items():
            assert (await hook.store.load(fork)).messages == messages


async def take(
    agent: Agent,
    persistence: PersistenceHook,
    session: Session,
    step: str,
    value: Any,
    forks: dict[str, Any],
) -> tuple[Session, list[list[Message]]]:
    """Take one step; the session, and the segment that it left behind."""
    ctx = Context(agent, session)
    before = list(session.messages)
    match step:
        case "append":
            for message in value:
                await ctx.append(message)
        case "save":
            session.messages += value
            session.save()
        case "compact":
            await ctx.compact(before[len(before) - value :], "summed up")
            return session, [before]
        case "restart":
            await ctx.restart_with_new_session()
            return session, [before]
        case "fork":
            session.save()
            forks[await persistence.store.fork(session.id)] = before
        case "reload":
            await agent.close_session(session)
            return await agent.load_session(session.id), []
        case _:
            session.state["test"] = {"value": value}
    return session, []


async def store_many(db: Path | str, number: int) -> Session:
    """A stored session of so many messages."""
    async with Agent(ScriptedModel(), hooks=[PersistenceHook(db)], tools=[]) as agent:
        session = await agent.new_session()
        for index in range(number // 4):
            session.messages += [user(f"{index} " + "x" * 300), *calling(["a"]), user("and " * 50)]
        return session


async def test_thousands_of_messages_are_loaded_as_they_were(db: Path | str) -> None:
    session = await store_many(db, 4000)
    async with Agent(ScriptedModel(), hooks=[PersistenceHook(db)], tools=[]) as agent:
        again = await agent.load_session(session.id)
        assert again.messages == session.messages


async def test_what_a_turn_writes_does_not_grow_with_the_session(tmp_path: Path) -> None:
    db, log = tmp_path / "crow.db", tmp_path / "crow.db-wal"
    agent = Agent(ScriptedModel(), hooks=[PersistenceHook(db)], tools=[])
    session = await agent.new_session()
    session.state["test"] = {"much": "x" * 100_000}

    async def written(turns: int) -> int:
        before = log.stat().st_size
        for _ in range(turns):
            await Context(agent, session).append(user("hello"))
        return log.stat().st_size - before

    early = await written(50)
    session.messages += [user("x" * 200)] * 5000
    session.save()
    await written(1)
    assert await written(50) < 1.5 * early
    await agent.close()
