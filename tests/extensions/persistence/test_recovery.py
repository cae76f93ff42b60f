"""What a session is like when its process was killed in the middle of something."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from crow.core.agent import Agent
from crow.core.errors import SessionInUse
from crow.core.events import ThoughtDelta, ToolEnded
from crow.extensions import PersistenceHook
from crow.testing import ScriptedModel

PROGRAM = Path(__file__).with_name("hanging.py")


@asynccontextmanager
async def hanging(db: Path | str, where: str) -> AsyncIterator[str]:
    """A process that has come to a point and waits there; the id of its session."""
    program = await asyncio.create_subprocess_exec(
        sys.executable, PROGRAM, db, where, stdout=asyncio.subprocess.PIPE
    )
    assert program.stdout is not None
    try:
        session_id = (await program.stdout.readline()).decode().strip()
        assert await program.stdout.readline() == b"here\n"
        yield session_id
    finally:
        if program.returncode is None:
            program.kill()
        await program.wait()


async def killed(db: Path | str, where: str) -> str:
    async with hanging(db, where) as session_id:
        if isinstance(db, str) and where in ("tool", "text", "thought"):
            await arrived(db)
        return session_id


async def arrived(db: str) -> None:
    """Wait until what streams is on no machine of its own any more."""
    import psycopg

    async with await psycopg.AsyncConnection.connect(db, autocommit=True) as look:
        while not await (await look.execute("SELECT 1 FROM pieces")).fetchall():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_a_quick_tools_result_survives_while_its_slow_sibling_is_interrupted(
    db: Path | str,
) -> None:
    session_id = await killed(db, "tool")
    hook = PersistenceHook(db)
    session = await hook.store.load(session_id)
    _, _, slow, quick = session.messages
    assert quick.get("content") == '{"found": [1, 2]}'
    unknown = "interrupted, outcome unknown; its output until then:\nhalf of the work"
    assert slow.get("content") == unknown
    ended = [e async for e in hook.store.replay(session_id) if isinstance(e, ToolEnded)]
    assert [(e.call.name, e.outcome, e.result.data) for e in ended] == [
        ("quick", "ok", {"found": [1, 2]}),
        ("slow", "cancelled", None),
    ]


async def test_a_call_that_waited_for_permission_was_not_executed(db: Path | str) -> None:
    session_id = await killed(db, "permission")
    session = await PersistenceHook(db).store.load(session_id)
    assert session.messages[-1] == {
        "role": "tool",
        "tool_call_id": "call_1",
        "content": "not executed: interrupted before it was started",
    }


async def test_half_an_answer_is_part_of_the_history(db: Path | str) -> None:
    session_id = await killed(db, "text")
    hook = PersistenceHook(db)
    async with Agent(ScriptedModel("really"), hooks=[hook], tools=[]) as agent:
        session = await agent.load_session(session_id)
        assert session.messages[1:] == [
            {"role": "assistant", "content": "It is.", "reasoning_content": "Is it?"}
        ]
        await agent.prompt(session, "is it?")
    assert (await hook.store.load(session_id)).messages == session.messages


async def test_what_a_locked_database_could_not_take_survives(tmp_path: Path) -> None:
    session_id = await killed(tmp_path / "crow.db", "locked")
    hook = PersistenceHook(tmp_path / "crow.db")
    told = [type(event).__name__ async for event in hook.store.replay(session_id)]
    assert told == ["UserMessage", "ToolPending", "ToolStarted", "ToolEnded"]
    session = await hook.store.load(session_id)
    assert [m.get("content") for m in session.messages] == ["do it", None, "locked", "It is."]
    assert await kinds(hook, session_id) == [
        "message", "sent", "message", "started", "result", "message", "message",
    ]  # fmt: skip


async def kinds(store: PersistenceHook, session_id: str) -> list[str]:
    rows = (await store.store.export(session_id)).splitlines()[1:]
    return [json.loads(row)["kind"] for row in rows]


async def test_a_thought_that_led_nowhere_is_still_shown(db: Path | str) -> None:
    session_id = await killed(db, "thought")
    hook = PersistenceHook(db)
    assert len((await hook.store.load(session_id)).messages) == 1
    thoughts = [e async for e in hook.store.replay(session_id) if isinstance(e, ThoughtDelta)]
    assert thoughts == [ThoughtDelta("Let me see.", f"{session_id}.0.1")]


async def test_a_tail_that_was_cut_off_counts_as_far_as_it_is_whole(tmp_path: Path) -> None:
    hook = PersistenceHook(tmp_path / "crow.db")
    async with Agent(ScriptedModel("a"), hooks=[hook], tools=[]) as agent:
        session = (await agent.run("one")).session
    whole = [
        '3 0 message 1.5 {"role":"user","content":"two"}',
        '2 0 message 1.5 {"role":"user","content":"known already"}',
        '[0, 3, "text", "It is"]',
        '[0, 1, "text", "known already"]',
        '[7, 3, "text", "of another segment"]',
    ]
    torn = [
        '[0, 3, "text", "nev',
        "[0]",
        "[]",
        "nonsense",
        "4 0 message 1.5",
        '4 0 message 1.5 {"ro',
    ]
    tail = tmp_path / "crow.db.locks" / session.id
    tail.write_text("\n".join([*whole, *torn]))
    assert len([event async for event in hook.store.replay(session.id)]) == 3
    again = await hook.store.load(session.id)
    assert [m.get("content") for m in again.messages] == ["one", "a", "two", "It is"]
    assert tail.read_bytes() == b""


async def test_a_second_process_is_told_that_the_session_is_in_use(db: Path | str) -> None:
    hook = PersistenceHook(db)
    async with hanging(db, "idle") as session_id:
        with pytest.raises(SessionInUse, match="in use by"):
            await hook.store.load(session_id)
        with pytest.raises(SessionInUse, match="in use by") as refused:
            await hook.store.load(session_id)
        with pytest.raises(SessionInUse, match="in use by"):
            await hook.store.delete(session_id)
        if Path("/proc/locks").exists():
            assert re.search(r"\S+, process \d+", str(refused.value))
        assert len([event async for event in hook.store.replay(session_id)]) == 2
        assert len((await hook.store.segments(session_id))[0]) == 2
    assert len((await hook.store.load(session_id)).messages) == 2


@pytest.mark.slow
async def test_two_processes_write_to_one_database(db: Path | str) -> None:
    async with hanging(db, "idle") as one, hanging(db, "idle") as two:
        infos, _ = await PersistenceHook(db).store.sessions()
        assert {info.id for info in infos} == {one, two}
        assert [info.messages for info in infos] == [2, 2]
