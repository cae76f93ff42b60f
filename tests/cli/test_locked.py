"""Sessions that cannot be stored, because another program keeps the database locked."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.cli.conftest import Crow

from crow.testing import FakeEditor
from crow.testing.endpoint import Endpoint, answer

WHY = "another program keeps it locked: close that"


@pytest.fixture(params=["immediate", "exclusive"])
def locked(request: pytest.FixtureRequest, home: Path) -> Iterator[Path]:
    """A database that somebody else writes to, and goes on to."""
    path = home / ".crow/crow.db"
    path.parent.mkdir(exist_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        if request.param == "exclusive":
            connection.execute("PRAGMA locking_mode = exclusive")
        connection.execute(f"BEGIN {request.param}")
        connection.execute("CREATE TABLE theirs (a)")
        yield path


@pytest.mark.variants(1)
async def test_a_prompt_is_answered_and_says_once_that_nothing_is_stored(
    crow: Crow, endpoint: Endpoint, locked: Path
) -> None:
    endpoint.play(answer("Hello."))
    async with asyncio.timeout(30):
        ended = await crow("run", "hi")
    assert (ended.status, ended.out.strip()) == (0, "Hello.")
    assert ended.err.count(f"this session is not stored for now: {locked}: {WHY}") == 1


@pytest.mark.slow
async def test_a_session_opens_in_an_editor_and_says_that_nothing_is_stored(
    crow: Crow, endpoint: Endpoint, locked: Path
) -> None:
    endpoint.play(answer("Hello."))
    editor = FakeEditor()
    async with asyncio.timeout(30):
        async with editor.spawned(*crow.command("acp"), env=crow.env, cwd=crow.cwd):
            session = await editor.new_session(crow.cwd)
            await editor.prompt(session, "hi")
            said = editor.text(session)
    assert "Hello." in said
    assert said.count(WHY) == 1
