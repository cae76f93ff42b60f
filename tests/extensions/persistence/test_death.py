"""A process is killed at any moment: what its client had heard is there, and the history is whole."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.postgres import Server

from crow.core.agent import Agent
from crow.core.events import Event, TextDelta, ToolEnded
from crow.core.messages import Message
from crow.extensions import PersistenceHook
from crow.testing import ScriptedModel

PROGRAM = Path(__file__).with_name("dying.py")


async def die(folder: Path, how: str, count: int, address: str = "") -> list[Path]:
    """The folders of processes that died; the store is in them, or at an address."""
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, PROGRAM, folder, how, str(count), "7"),
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "DYING_STORE": address},
    )
    _, said = await program.communicate()
    assert program.returncode == 0, said.decode()
    return sorted(folder.iterdir())


async def check(folder: Path, address: str = "") -> None:
    heard: list[list[Any]] = [
        json.loads(line) for line in (folder / "heard.jsonl").read_text().splitlines()
    ]
    hook = PersistenceHook(address or folder / "crow.db")
    check_integrity(folder / "crow.db")
    if not heard:
        if address:
            return
        infos, _ = await hook.store.sessions()
        assert len(infos) <= 1
        return
    session_id = heard[0][1]
    model = ScriptedModel("still here", leftover="allow")
    async with Agent(model, hooks=[hook], tools=[]) as agent:
        before = (await hook.store.export(session_id)).count('"kind":"started"')
        session = await agent.load_session(session_id)
        check_whole(session.messages)
        check_heard(
            heard, [event async for event in hook.store.replay(session_id)], is_late=bool(address)
        )
        loaded = list(session.messages)
        reply = await agent.prompt(session, "are you there?")
        assert reply.text == "still here"
        assert model.asked[0]["messages"] == session.messages[:-1]
        assert session.messages[: len(loaded)] == loaded
        assert (await hook.store.export(session_id)).count('"kind":"started"') == before
    again = await hook.store.load(session_id)
    assert again.messages == session.messages


def check_integrity(db: Path) -> None:
    if db.exists() and db.stat().st_size:
        connection = apsw.Connection(str(db))
        assert connection.execute("PRAGMA integrity_check").get == "ok"
        connection.close()


def check_whole(messages: list[Message]) -> None:
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])  # type: ignore[typeddict-item]
        else:
            assert not waiting
            waiting = [call["id"] for call in message.get("tool_calls", ())]
    assert not waiting


def check_heard(heard: list[list[Any]], events: list[Event], *, is_late: bool) -> None:
    """Every text is there with its message, every result with its data.

    ``is_late``: of a text that a process was at a part may have gone with it.
    """
    said: dict[str, str] = defaultdict(str)
    told: dict[str, str] = defaultdict(str)
    for kind, *words in heard:
        if kind == "text":
            said[words[0]] += words[1]
    for event in events:
        if isinstance(event, TextDelta):
            told[event.message_id] += event.text
    for message_id, text in said.items():
        assert told[message_id].startswith(text) or (is_late and text.startswith(told[message_id]))
    results = {
        (e.call.id, e.outcome, e.result.text, json.dumps(e.result.data))
        for e in events
        if isinstance(e, ToolEnded)
    }
    for kind, *words in heard:
        if kind == "result":
            assert (*words[:3], json.dumps(words[3])) in results


@pytest.mark.slow
async def test_a_kill_at_any_write_loses_nothing_that_was_heard(tmp_path: Path) -> None:
    folders = await die(tmp_path, "some-writes", 400)
    assert len(folders) > 60
    for folder in folders:
        await check(folder)


@pytest.mark.slow
async def test_a_kill_at_any_moment_loses_nothing_that_was_heard(tmp_path: Path) -> None:
    for folder in await die(tmp_path, "moments", 20):
        await check(folder)


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_a_kill_at_each_write_loses_nothing_that_was_heard(tmp_path: Path) -> None:
    for folder in await die(tmp_path, "writes", 1000):
        await check(folder)


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_a_hundred_kills_at_any_moment_lose_nothing_that_was_heard(tmp_path: Path) -> None:
    for folder in await die(tmp_path, "moments", 100):
        await check(folder)


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_a_kill_at_any_moment_loses_no_result_where_machines_share_the_store(
    tmp_path: Path, postgres: Server
) -> None:
    address = postgres.database()
    for folder in await die(tmp_path, "moments", 40, address):
        await check(folder, address)
