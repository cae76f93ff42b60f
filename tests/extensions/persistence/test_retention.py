"""Sessions go with all that is kept of them: by hand, and those that nobody has used for long."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from crow import Agent
from crow.core.errors import SessionError
from crow.extensions import CompactionHook, PersistenceHook, TruncationHook
from crow.project import state_directory
from crow.testing import ScriptedModel


class Keeper:
    """An extension that keeps something of sessions, and is told of those that go."""

    name = "keeper"

    def __init__(self) -> None:
        self.forgotten: list[str] = []
        self.told = asyncio.Event()

    def init_agent(self, agent: Agent) -> None: ...

    async def forget_session(self, session_id: str) -> None:
        self.forgotten.append(session_id)
        self.told.set()


class Broken:
    """One that fails in that."""

    name = "broken"

    def init_agent(self, agent: Agent) -> None: ...

    async def forget_session(self, session_id: str) -> None:
        raise OSError("no")


@pytest.fixture
async def sessions(home: Path, db: Path | str) -> list[str]:
    """Two old sessions and a new one."""
    del home
    agent = Agent(ScriptedModel(*"123"), hooks=[PersistenceHook(db)], tools=[])
    async with agent:
        ids = [(await agent.run("Go")).session.id for _ in range(3)]
    make_old(db, ids[:2])
    return ids


def make_old(db: Path | str, ids: list[str]) -> None:
    """Let sessions have been used long ago."""
    old = "2026-01-01T00:00:00.000Z"
    if isinstance(db, str):
        import psycopg

        with psycopg.connect(db, autocommit=True) as connection:
            connection.execute("UPDATE sessions SET updated = %s WHERE id = ANY(%s)", (old, ids))
        return
    # Closed before the store opens the file again: two SQLite libraries in one process share locks.
    with closing(sqlite3.connect(db)) as database, database:
        database.executemany(
            "UPDATE sessions SET updated = ? WHERE id = ?", [(old, i) for i in ids]
        )


async def left(persistence: PersistenceHook) -> set[str]:
    return {info.id for info in (await persistence.store.sessions())[0]}


async def test_what_is_kept_of_a_session_goes_with_it(
    sessions: list[str], db: Path | str, tmp_path: Path, caplog: Any
):
    persistence, keeper = PersistenceHook(db), Keeper()
    outputs = tmp_path / "outputs"
    for each in sessions[:2]:
        (outputs / each).mkdir(parents=True)
        (outputs / each / "Bash.txt").write_text("much")
    hooks = [
        persistence,
        Broken(),
        keeper,
        TruncationHook(directory=outputs),
        CompactionHook(directory=outputs),
    ]
    async with Agent(ScriptedModel(), hooks=hooks, tools=[]) as agent:
        assert await agent.delete_session(sessions[0]) is True
        assert await agent.delete_session("f" * 32) is False
        assert await left(persistence) == {*sessions[1:]}
    assert keeper.forgotten == [sessions[0]]
    assert [each.name for each in outputs.iterdir()] == [sessions[1]]
    assert "the extension broken has not forgotten session" in caplog.text


async def test_without_a_store_there_is_nothing_to_delete():
    with pytest.raises(SessionError, match="not stored"):
        await Agent(ScriptedModel(), tools=[]).delete_session("x")


async def test_old_sessions_go_once_a_day_and_those_in_use_stay(
    sessions: list[str], db: Path | str
):
    path, keeper = db, Keeper()
    async with Agent(ScriptedModel(), hooks=[PersistenceHook(path)], tools=[]) as other:
        await other.load_session(sessions[1])
        persistence = PersistenceHook(path, keep_days=30)
        async with Agent(ScriptedModel(), hooks=[persistence, keeper], tools=[]) as agent:
            await agent.start()
            async with asyncio.timeout(20):
                await keeper.told.wait()
    assert await left(PersistenceHook(path)) == {*sessions[1:]}
    assert keeper.forgotten == [sessions[0]]
    async with Agent(ScriptedModel(), hooks=[persistence, keeper], tools=[]) as agent:
        await agent.start()
        await asyncio.sleep(0.05)
    assert await left(PersistenceHook(path)) == {*sessions[1:]}  # it was done today


async def test_without_a_number_of_days_nothing_goes(sessions: list[str], db: Path | str):
    persistence = PersistenceHook(db)
    async with Agent(ScriptedModel(), hooks=[persistence], tools=[]) as agent:
        await agent.start()
        await asyncio.sleep(0.05)
        assert await left(persistence) == {*sessions}
    assert not (state_directory() / "cleaned-up").exists()


async def test_an_old_session_that_somebody_goes_on_with_stays(sessions: list[str], db: Path | str):
    persistence, keeper = PersistenceHook(db, keep_days=30), Keeper()
    agent = Agent(ScriptedModel("On."), hooks=[persistence, keeper], tools=[])
    async with agent:
        session = await agent.load_session(sessions[0])
        async with asyncio.timeout(20):
            await keeper.told.wait()
        with pytest.raises(SessionError, match="is open here"):
            await agent.delete_session(sessions[0])
        assert (await agent.run("Go on", session=session)).text == "On."
    assert keeper.forgotten == [sessions[1]]
    assert await left(PersistenceHook(db)) == {sessions[0], sessions[2]}
