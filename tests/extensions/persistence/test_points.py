"""A conversation is taken up again at any point of it; the sessions that are chosen from."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from crow.core.agent import Agent
from crow.core.errors import ModelError, SessionError
from crow.core.session import Session
from crow.extensions import PersistenceHook
from crow.testing import ScriptedModel, call
from crow.tools import tool


@tool
async def look() -> str:
    """Look."""
    return "seen"


@pytest.fixture
def persistence(db: Path | str) -> PersistenceHook:
    """An empty store."""
    return PersistenceHook(db)


async def said(persistence: PersistenceHook, session_id: str) -> list[str]:
    """What people and models said in a session, as it is loaded."""
    session = await Agent(hooks=[persistence], tools=[]).load_session(session_id)
    return [str(m.get("content") or "") for m in session.messages if m["role"] != "tool"]


async def talked(persistence: PersistenceHook, *prompts: str, compacts: bool = False) -> Session:
    """A session in which each prompt was answered by its letters backwards, after a call."""
    answers = [each for prompt in prompts for each in (call("look"), prompt[::-1])]
    async with Agent(ScriptedModel(*answers), hooks=[persistence], tools=[look]) as agent:
        session = await agent.new_session("/")
        for prompt in prompts:
            await agent.prompt(session, prompt)
            if compacts and prompt == prompts[0]:
                session.restart(list(session.messages))
                persistence.store.save(session)
    return session


async def test_a_fork_before_a_prompt_ends_there_and_leaves_the_original(
    persistence: PersistenceHook,
) -> None:
    session = await talked(persistence, "ab", "cd", "ef")
    before = await persistence.store.export(session.id)
    prompts = [each for each in await persistence.store.tree(session.id) if each.kind == "prompt"]
    assert [each.text for each in prompts] == ["ab", "cd", "ef"]
    fork = await persistence.store.fork(session.id, before=prompts[1].before)
    assert await said(persistence, fork) == ["ab", "", "ba"]
    empty = await persistence.store.fork(session.id, before=prompts[0].before)
    assert await said(persistence, empty) == []
    assert await persistence.store.export(session.id) == before
    infos, _ = await persistence.store.sessions()
    assert {info.id: info.messages for info in infos} == {session.id: 12, fork: 4, empty: 0}
    with pytest.raises(SessionError, match="has no point 999"):
        await persistence.store.fork(session.id, before=999)
    assert len((await persistence.store.sessions())[0]) == 3


async def test_a_fork_into_an_older_segment_has_the_history_of_that(
    persistence: PersistenceHook,
) -> None:
    session = await talked(persistence, "ab", "cd", "ef", compacts=True)
    first, second, _ = (
        each for each in await persistence.store.tree(session.id) if each.kind == "answer"
    )
    assert len(await persistence.store.segments(session.id)) == 2
    fork = await persistence.store.fork(session.id, before=first.before)
    assert await said(persistence, fork) == ["ab", "", "ba"]
    fork = await persistence.store.fork(session.id, before=second.before)
    assert await said(persistence, fork) == ["ab", "", "ba", "cd", "", "dc"]


async def test_forks_stand_in_a_tree_with_what_they_share_once(
    persistence: PersistenceHook,
) -> None:
    session = await talked(persistence, "ab", "cd")
    points = await persistence.store.tree(session.id)
    fork = await persistence.store.fork(session.id, before=points[2].before)
    async with Agent(ScriptedModel("fe", "hg"), hooks=[persistence], tools=[]) as agent:
        other = await agent.load_session(fork)
        await agent.prompt(other, "ef")
        await agent.prompt(other, "gh")
    told = [(p.depth, p.text, p.is_here) for p in await persistence.store.tree(session.id)]
    assert told == [
        (0, "ab", True),
        (0, "ba", True),
        (1, "ef", False),
        (1, "fe", False),
        (1, "gh", False),
        (1, "hg", False),
        (0, "cd", True),
        (0, "dc", True),
    ]
    assert {p.text for p in await persistence.store.tree(fork) if p.is_here} == {
        *("ab", "ba"),
        *("ef", "fe", "gh", "hg"),
    }
    further = next(p for p in await persistence.store.tree(session.id) if p.text == "fe")
    again = await persistence.store.fork(further.session_id, before=further.before)
    assert await said(persistence, again) == ["ab", "", "ba", "ef", "fe"]


async def test_a_session_is_listed_with_what_helps_to_choose_it(
    persistence: PersistenceHook,
) -> None:
    session = await talked(persistence, "a pipe\nto mend", "cd")
    (found,) = await persistence.store.overview()
    assert (found.session.id, found.prompt, found.turns) == (session.id, "a pipe\nto mend", 2)
    assert found.used_by == ""
    (found,) = await persistence.store.overview("epip")
    assert found.snippet == "dnem ot epip a"
    assert await persistence.store.overview("nowhere") == []
    async with Agent(ScriptedModel(), hooks=[persistence], tools=[]) as agent:
        await agent.load_session(session.id)
        (used,) = await PersistenceHook(persistence.db_path).store.overview()
        assert "process" in used.used_by


async def test_a_session_is_listed_with_how_it_ended(persistence: PersistenceHook) -> None:
    @tool
    async def wait() -> str:
        """Wait for somebody to end it."""
        await asyncio.Event().wait()
        return ""

    async def outcomes() -> list[str]:
        return [
            each.outcome for each in await PersistenceHook(persistence.db_path).store.overview()
        ]

    model = ScriptedModel("Done.", ModelError("no answer"), call("wait"), "Late.", leftover="allow")
    begun = asyncio.Event()
    async with Agent(model, hooks=[persistence], tools=[wait]) as agent:
        agent.hooks.register("around_tool", waiting(begun))
        session = (await agent.run("Go")).session
        assert await outcomes() == ["answered"]
        await agent.prompt(session, "Fail")
        assert await outcomes() == ["unanswered"]
        run = asyncio.create_task(agent.prompt(session, "Wait"))
        await begun.wait()
        agent.cancel(session)
        await run
    assert await outcomes() == ["interrupted"]


def waiting(begun: asyncio.Event) -> Any:
    async def around_tool(call_next: Any) -> Any:
        begun.set()
        return await call_next()

    return around_tool
