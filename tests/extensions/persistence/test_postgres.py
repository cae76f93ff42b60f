"""What many machines do to one database: nobody writes what is another's, nothing said is lost."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.postgres import Server, rows
from tests.watching import Watching

from crow.core.agent import Agent
from crow.core.errors import SessionError, SessionInUse
from crow.extensions import PersistenceHook
from crow.extensions.persistence.lease import Piece
from crow.extensions.persistence.postgres import Postgres
from crow.extensions.persistence.postgres.schema import MIGRATIONS
from crow.testing import ScriptedModel, call
from crow.tools import tool

pytestmark = pytest.mark.slow

STOLEN = "UPDATE leases SET until = clock_timestamp(), owner = 'a b 1 - c'"


def cut(address: str) -> None:
    """End all other connections, as a network does."""
    rows(
        address,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE pid <> pg_backend_pid() AND application_name = 'crow'",
    )


async def test_a_runner_that_was_thought_dead_appends_nothing(postgres: Server) -> None:
    address = postgres.database()
    ran: list[str] = []

    @tool
    async def act() -> str:
        """Act."""
        ran.append("act")
        return "done"

    model = ScriptedModel("one", call("act"), "never")
    zombie = Agent(model, hooks=[PersistenceHook(address)], tools=[act])
    client = Watching()
    session = await zombie.new_session(client=client)
    await zombie.prompt(session, "first")
    rows(address, STOLEN)
    hook = PersistenceHook(address)
    async with Agent(ScriptedModel("two"), hooks=[hook], tools=[]) as heir:
        taken = await heir.load_session(session.id)
        reply = await zombie.prompt(session, "second")
        assert reply.stop_reason == "error"
        assert "was taken over by another process" in str(reply.error)
        assert ran == []
        assert (await zombie.prompt(session, "again")).stop_reason == "error"
        assert len(model.asked) == 1
        await heir.prompt(taken, "third")
    await zombie.close()
    kept = await hook.store.load(session.id)
    assert [m.get("content") for m in kept.messages] == ["first", "one", "third", "two"]
    assert "was taken over by another process" in client.notices[0]


async def test_a_session_in_use_on_another_machine_says_where_and_for_how_long(
    postgres: Server,
) -> None:
    address = postgres.database()
    hook = PersistenceHook(address)
    async with Agent(ScriptedModel("a"), hooks=[hook], tools=[]) as agent:
        session = (await agent.run("hi")).session
    rows(
        address,
        "UPDATE leases SET until = clock_timestamp() + interval '9 seconds',"
        " owner = 'elsewhere pid:[1] 7 8 x', who = 'build-7, process 7'",
    )
    with pytest.raises(SessionInUse, match=r"by build-7, process 7: .* again in (9|10) seconds"):
        await hook.store.load(session.id)
    (found,) = await hook.store.overview()
    assert found.used_by == "build-7, process 7"


async def test_leases_that_ran_out_while_the_database_was_away_are_not_taken_at_once(
    postgres: Server,
) -> None:
    address = postgres.database()
    first = Postgres(address, lease=100_000)
    first.claim("s").release()
    rows(
        address,
        "UPDATE leases SET owner = 'elsewhere pid:[1] 7 8 x', who = 'it',"
        " until = pg_postmaster_start_time() - interval '1 second'",
    )
    with pytest.raises(SessionInUse):
        first.claim("s")
    rows(address, "UPDATE leases SET until = pg_postmaster_start_time() + interval '1 microsecond'")
    assert first.claim("s").epoch == 2
    first.close()


def test_a_loop_that_blocks_keeps_its_session(postgres: Server) -> None:
    address = postgres.database()
    place = Postgres(address, lease=0.9)
    claim = place.claim("s")
    ask = "SELECT until FROM leases WHERE session = 's'"
    first, renewed, deadline = rows(address, ask), 0, time.monotonic() + 50
    while renewed < 3:  # this thread blocks; another renews
        assert time.monotonic() < deadline
        time.sleep(0.05)
        now = rows(address, ask)
        renewed += now != first
        first = now
    claim.release()
    assert rows(address, "SELECT owner FROM leases") == [("",)]
    place.close()


def test_an_append_makes_who_takes_over_wait_and_not_who_renews(postgres: Server) -> None:
    address = postgres.database()
    place = Postgres(address)
    claim, writer = place.claim("s"), place.open()
    writer.execute("BEGIN")
    claim.guard(writer)
    rows(address, "SET lock_timeout = 200; UPDATE leases SET until = clock_timestamp()")
    with pytest.raises(Exception, match="lock timeout"):
        rows(address, "SET lock_timeout = 200; UPDATE leases SET epoch = epoch + 1")
    writer.execute("COMMIT")
    writer.close()
    claim.release()
    place.close()


async def test_connections_that_are_cut_are_made_again(postgres: Server) -> None:
    address = postgres.database()
    client, hook = Watching(), PersistenceHook(address)
    async with Agent(ScriptedModel("a", "b", "c"), hooks=[hook], tools=[]) as agent:
        session = await agent.new_session(client=client)
        for prompt in ("1", "2", "3"):
            assert (await agent.prompt(session, prompt)).stop_reason == "end_turn"
            cut(address)
            assert len(await hook.store.sessions()) == 2
    assert client.notices == []
    contents = [m.get("content") for m in (await hook.store.load(session.id)).messages]
    assert contents == ["1", "a", "2", "b", "3", "c"]


async def test_what_is_said_while_the_database_is_away_is_stored_once_it_is_back() -> None:
    pytest.importorskip("psycopg")
    server = Server()
    try:
        await go_on_without(server)
    finally:
        server.remove()


async def go_on_without(server: Server) -> None:
    address = server.database()
    client, hook = Watching(), PersistenceHook(address)
    async with Agent(ScriptedModel("a", "b", "c", "d"), hooks=[hook], tools=[]) as agent:
        session = await agent.new_session(client=client)
        await agent.prompt(session, "1")
        server.stop()
        assert (await agent.prompt(session, "2")).stop_reason == "error"
        assert (await agent.prompt(session, "3")).stop_reason == "end_turn"
        server.start()
        assert (await agent.prompt(session, "4")).stop_reason == "end_turn"
    assert "cannot be reached" in client.notices[0]
    assert client.notices[-1] == "the session is stored again"
    contents = [m.get("content") for m in (await hook.store.load(session.id)).messages]
    assert contents == [m.get("content") for m in session.messages]
    assert contents[-2:] == ["4", "c"]


async def test_many_machines_bring_a_new_database_up_at_once(postgres: Server) -> None:
    address = postgres.database()
    places = [Postgres(address) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for connection in pool.map(Postgres.open, places):
            connection.close()
    assert rows(address, "SELECT number FROM crow_version") == [(len(MIGRATIONS),)]


async def test_a_database_of_a_newer_crow_or_of_another_program_is_left_alone(
    postgres: Server,
) -> None:
    newer, other = postgres.database(), postgres.database()
    Postgres(newer).open().close()
    rows(newer, "UPDATE crow_version SET number = 7")
    with pytest.raises(SessionError, match=r"written by a newer Crow .*: update crow-acp"):
        await PersistenceHook(newer).store.sessions()
    rows(other, "CREATE TABLE sessions (mine int)")
    with pytest.raises(SessionError, match="give Crow a schema of its own"):
        await PersistenceHook(other).store.sessions()
    assert rows(other, "SELECT count(*) FROM sessions") == [(0,)]


async def test_no_error_shows_the_password() -> None:
    hook = PersistenceHook("postgresql://crow:hunter2@127.0.0.1:1/crow?password=hunter3")
    with pytest.raises(SessionError) as refused:
        await hook.store.sessions()
    assert str(refused.value).startswith("postgresql://crow@127.0.0.1:1/crow: it cannot be reached")
    assert "hunter" not in str(refused.value)


def test_without_its_library_the_extra_is_named() -> None:
    program = (
        "import asyncio, sys; sys.modules['psycopg'] = None\n"
        "from crow.extensions import PersistenceHook\n"
        "asyncio.run(PersistenceHook('postgresql://x/y').store.sessions())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert "uv add 'crow-acp[postgres]'" in done.stderr.splitlines()[-1]


async def test_text_that_streams_on_a_machine_that_died_is_read_on_another(
    postgres: Server,
) -> None:
    address = postgres.database()
    place = Postgres(address)
    claim = place.claim("s")
    claim.stream(Piece(0, 1, "text", "half an "))
    claim.stream(Piece(0, 1, "text", "answer"))
    async with asyncio.timeout(50):
        while not rows(address, "SELECT 1 FROM pieces"):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    other = Postgres(address)
    assert "".join(piece.text for piece in other.tail("s").pieces) == "half an answer"
    other.close()
    claim.reached()
    claim.clear()
    claim.release()
    assert rows(address, "SELECT 1 FROM pieces") == []
    place.close()
