"""What a turn costs the database: statements are counted, and no time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fleet.chaos import Counting
from tests.postgres import Server, program, rows

from crow.extensions import PersistenceHook
from crow.fleet.agents import builder
from crow.fleet.board import Board
from crow.fleet.task import Task, Workspace
from crow.fleet.worker import Worker

pytestmark = pytest.mark.slow

FEW, MANY = 20, 60


@pytest.fixture
def counting() -> Iterator[Server]:
    """A server that counts statements."""
    pytest.importorskip("psycopg")
    if program("initdb") is None:
        pytest.skip("there is no PostgreSQL server: apt-get install postgresql")
    server = Server("shared_preload_libraries=pg_stat_statements")
    rows(server.address(), "CREATE EXTENSION pg_stat_statements")
    yield server
    server.remove()


async def cost(server: Server, turns: int, folder: Path) -> dict[str, int]:
    """The statements of a whole session of the whole agent, with so many calls that change a file."""
    folder.mkdir()
    prompt = f"This is session 0, {turns} steps."
    task = Task(prompt, str(turns), Workspace(str(folder)), allow=("Bash",), model="m")
    address = server.database()
    async with Board(address) as board:
        await board.submit("b", [task])
        rows(server.address(), "SELECT pg_stat_statements_reset()")
        store = PersistenceHook(address, required=True)
        await Worker(board, builder(store, None), folder, until_empty=True).run()
    assert len((folder / "steps").read_text().split()) == turns
    counted = rows(
        server.address(), "SELECT query, sum(calls)::int FROM pg_stat_statements GROUP BY 1"
    )
    return {str(query): int(str(calls)) for query, calls in counted}


async def test_a_turn_that_changes_a_file_costs_three_statements(
    counting: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Counting() as endpoint:
        monkeypatch.setenv("CROW_BASE_URL", endpoint.url)
        monkeypatch.setenv("CROW_API_KEY", "k")
        few = await cost(counting, FEW, tmp_path / "few")
        many = await cost(counting, MANY, tmp_path / "many")
    more = {query: (many[query] - few.get(query, 0)) / (MANY - FEW) for query in many}
    by_the_turn = {query: each for query, each in more.items() if each > 0.5}  # not by the second
    assert 2.5 < sum(by_the_turn.values()) < 3.1, by_the_turn
