"""Full disks, locks, damage, strange files, other versions: one clear line, and nothing is lost."""

from __future__ import annotations

import asyncio
import resource
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from crow.core.agent import Agent
from crow.core.errors import SessionError
from crow.core.events import Event, Notice
from crow.core.hooks.context import Context
from crow.core.messages import user
from crow.core.ports.client import NullClient
from crow.core.session import Session
from crow.extensions import PersistenceHook
from crow.extensions.persistence.database import Database, file_system
from crow.extensions.persistence.lease import Lease
from crow.extensions.persistence.schema import MIGRATIONS
from crow.testing import ScriptedModel, call
from crow.tools import tool

BASELINE = Path(__file__).with_name("version_1.sql")


class Witness(NullClient):
    """A client that keeps the notices it is shown."""

    def __init__(self) -> None:
        self.notices: list[Notice] = []

    async def update(self, session_id: str, event: Event) -> None:
        if isinstance(event, Notice):
            self.notices.append(event)

    @property
    def text(self) -> str:
        return "\n".join(notice.text for notice in self.notices)


@tool
async def touch(path: str) -> str:
    """Make a file."""
    Path(path).touch()
    return "made"


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "crow.db"


@contextmanager
def no_space(size: int = 0) -> Iterator[None]:
    """Let this process write nothing behind the first so many bytes of a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_full_disk_ends_the_turn_and_not_the_agent(db: Path) -> None:
    client, hook = Witness(), PersistenceHook(db)
    async with Agent(ScriptedModel("a", "c", "d"), hooks=[hook], tools=[]) as agent:
        session = await agent.new_session(client=client)
        await agent.prompt(session, "one")
        with no_space():
            failed = await agent.prompt(session, "two")
            assert failed.stop_reason == "error"
            assert isinstance(failed.error, SessionError)
            assert "could not be written" in failed.detail
            assert client.notices[-1].severity == "error"
            assert (await hook.store.sessions())[0][0].id == session.id
            assert len((await hook.store.segments(session.id))[0]) == 2
            assert (await agent.prompt(session, "three")).text == "c"
            assert "not stored for now" in client.notices[-1].text
            assert len([event async for event in hook.store.replay(session.id)]) == 5
        assert (await agent.prompt(session, "four")).text == "d"
        assert client.notices[-1].text == "the session is stored again"
    again = await hook.store.load(session.id)
    assert again.messages == session.messages
    assert [m.get("content") for m in again.messages] == [
        "one",
        "a",
        "two",
        "three",
        "c",
        "four",
        "d",
    ]


async def test_no_tool_runs_whose_intent_cannot_be_stored(db: Path, tmp_path: Path) -> None:
    class Fill:
        def before_tool(self) -> None:
            limit.__enter__()

    limit = no_space()
    script = call("touch", path=str(tmp_path / "made"))
    hook = PersistenceHook(db)
    async with Agent(ScriptedModel(script), hooks=[hook, Fill()], tools=[touch]) as agent:
        try:
            session = await agent.new_session()
            reply = await agent.prompt(session, "go")
        finally:
            limit.__exit__(None, None, None)
    assert reply.stop_reason == "error"
    assert not (tmp_path / "made").exists()
    assert str(session.messages[-1].get("content")).startswith("not run: ")
    assert (await hook.store.load(session.id)).messages == session.messages


@pytest.mark.parametrize(("size", "stored"), [(0, 2), (2000, 3)])
async def test_a_session_ends_in_peace_on_a_full_disk(
    db: Path, caplog: pytest.LogCaptureFixture, size: int, stored: int
) -> None:
    agent = Agent(ScriptedModel("a"), hooks=[PersistenceHook(db)], tools=[])
    session = await agent.new_session()
    await agent.prompt(session, "one")
    with no_space(size):
        await agent.prompt(session, "two")
        await agent.close()
    assert ("1 records" in caplog.text) == (stored == 2)
    hook = PersistenceHook(db)
    assert (await hook.store.export(session.id)).count('"role":') == stored
    assert len((await hook.store.segments(session.id))[0]) == stored
    copy = await hook.store.fork(session.id)
    assert len((await hook.store.load(session.id)).messages) == stored
    assert len((await hook.store.load(copy)).messages) == stored


async def test_a_lock_held_elsewhere_is_waited_for_and_stops_nobody_else(db: Path) -> None:
    async with Agent(ScriptedModel("a"), hooks=[PersistenceHook(db)], tools=[]) as agent:
        session = await agent.new_session()
        other = apsw.Connection(str(db))
        other.execute("BEGIN IMMEDIATE")
        prompt = asyncio.create_task(agent.prompt(session, "one"))
        for _ in range(50):  # this loop goes on, or nobody ever ends the wait
            await asyncio.sleep(0.005)
        assert not prompt.done()
        other.execute("COMMIT")
        other.close()
        assert (await prompt).stop_reason == "end_turn"
    assert (await PersistenceHook(db).store.load(session.id)).messages == session.messages


async def test_who_cancels_does_not_wait_for_what_is_written_and_nothing_is_lost(
    db: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A lock stands for megabytes here: the hook would be given up after a quarter of a second."""
    asked, client = asyncio.Event(), Witness()

    async def on_llm_request() -> None:
        asked.set()
        await asyncio.Event().wait()

    hooks = [PersistenceHook(db), on_llm_request]
    async with Agent(ScriptedModel("a"), hooks=hooks, tools=[]) as agent:
        session = await agent.new_session(client=client)
        prompt = asyncio.create_task(agent.prompt(session, "one"))
        await asked.wait()
        other = apsw.Connection(str(db))
        other.execute("BEGIN IMMEDIATE")
        session.title = "what the end of the run has to write"
        agent.cancel(session)
        assert (await prompt).stop_reason == "cancelled"
        other.execute("COMMIT")
        other.close()
    assert (client.text, caplog.text) == ("", "")
    stored = await PersistenceHook(db).store.load(session.id)
    assert (stored.title, stored.messages) == (session.title, session.messages)


def spoil_header(db: Path) -> None:
    db.write_bytes(b"not a database at all" * 100 + db.read_bytes()[2100:])


def spoil_pages(db: Path) -> None:
    content = bytearray(db.read_bytes())
    content[4096 : 4096 * 4] = b"\xff" * 4096 * 3
    db.write_bytes(content)


def cut_off(db: Path) -> None:
    db.write_bytes(db.read_bytes()[: 4096 * 3 + 100])


@pytest.mark.parametrize("spoil", [spoil_header, spoil_pages, cut_off])
async def test_a_damaged_database_is_kept_aside_and_a_new_one_begun(
    db: Path, spoil: object
) -> None:
    hook = PersistenceHook(db)
    async with Agent(ScriptedModel(*["a" * 5000] * 5), hooks=[hook], tools=[]) as agent:
        old = await agent.new_session()
        for _ in range(5):
            await agent.prompt(old, "one")
    spoil(db)  # type: ignore[operator]
    damaged = db.read_bytes()
    client, hook = Witness(), PersistenceHook(db)
    async with Agent(ScriptedModel("a", "b"), hooks=[hook], tools=[]) as agent:
        session = await agent.new_session(client=client)
        await agent.prompt(session, "one")
        assert f"{db} was damaged: it is kept as {db}.damaged" in client.text
        assert Path(f"{db}.damaged").read_bytes() == damaged
        infos, _ = await hook.store.sessions()
        assert session.id in [info.id for info in infos]
    assert (await hook.store.load(session.id)).messages == session.messages


@pytest.fixture
def looks() -> Iterator[list[str]]:
    """The looks for damage, as SQLite is asked for them."""
    asked: list[str] = []

    def trace(_: object, statement: str, __: object) -> bool:
        asked.extend([statement] * ("quick_check" in statement))
        return True

    def follow(connection: apsw.Connection) -> None:
        connection.exec_trace = trace  # pyright: ignore[reportAttributeAccessIssue]

    apsw.connection_hooks.append(follow)
    yield asked
    apsw.connection_hooks.remove(follow)


async def one_session(db: Path) -> None:
    async with Agent(ScriptedModel(), hooks=[PersistenceHook(db)], tools=[]) as agent:
        await agent.new_session()


async def test_a_file_that_is_as_it_was_left_is_not_looked_through(
    db: Path, looks: list[str]
) -> None:
    await one_session(db)
    assert len(looks) == 1
    for _ in range(3):
        await one_session(db)
    assert len(looks) == 1
    change(db, "UPDATE sessions SET title = 'by another program'")
    await one_session(db)
    assert len(looks) == 2


async def test_a_file_that_somebody_has_open_was_looked_through_by_them(
    db: Path, looks: list[str]
) -> None:
    async with Agent(ScriptedModel(), hooks=[PersistenceHook(db)], tools=[]) as agent:
        await agent.new_session()
        await one_session(db)
        assert len(looks) == 1
    await one_session(db)
    assert len(looks) == 1


async def test_a_file_whose_user_was_killed_is_looked_through(db: Path, looks: list[str]) -> None:
    await one_session(db)
    script = """
import asyncio, os, sys
from crow import Agent
from crow.extensions import PersistenceHook
from crow.testing import ScriptedModel

async def main():
    async with Agent(ScriptedModel(), hooks=[PersistenceHook(sys.argv[1])], tools=[]) as agent:
        await agent.new_session()
        os._exit(9)

asyncio.run(main())
"""
    killed = await asyncio.create_subprocess_exec(sys.executable, "-c", script, str(db))
    assert await killed.wait() == 9
    await one_session(db)
    assert len(looks) == 2
    (db.with_name("crow.db-wal")).write_bytes(b"")
    await one_session(db)
    assert len(looks) == 3


def spoil(db: Path) -> None:
    """Damage the pages of long messages, as a disk or a copy does."""
    connection = apsw.Connection(str(db))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    pages = connection.execute("SELECT pageno FROM dbstat WHERE pagetype = 'overflow'").fetchall()
    size = connection.execute("PRAGMA page_size").get
    connection.close()
    with db.open("r+b") as file:
        for (number,) in pages:
            file.seek((int(str(number)) - 1) * int(str(size)))
            file.write(b"\xde\xad" * 512)


async def test_damage_that_is_met_by_a_reader_has_the_file_looked_through(db: Path) -> None:
    async with Agent(ScriptedModel("long " * 20_000), hooks=[PersistenceHook(db)]) as agent:
        said = await agent.run("Go")
    async with Agent(ScriptedModel(), hooks=[PersistenceHook(db)]) as agent:
        await agent.new_session()
        spoil(db)
    hook = PersistenceHook(db)
    async with Agent(ScriptedModel(), hooks=[hook]) as agent:
        await agent.new_session()
        with pytest.raises(SessionError, match="it is damaged"):
            await hook.store.load(said.session.id)
    assert not db.with_name("crow.db.damaged").exists()
    await one_session(db)
    assert db.with_name("crow.db.damaged").exists()


async def test_sessions_that_are_whole_come_over_from_a_damaged_database(db: Path) -> None:
    hook = PersistenceHook(db)
    async with Agent(ScriptedModel(*["a"] * 6), hooks=[hook], tools=[]) as agent:
        olds = [await agent.new_session() for _ in range(6)]
        for number, old in enumerate(olds):
            await agent.prompt(old, f"{number}" * 20_000)
            old.state["kept"] = {"a": 1}
    content = bytearray(db.read_bytes())
    page = content.index(b"3" * 4000) // 4096
    content[4096 * page : 4096 * (page + 1)] = b"\xff" * 4096
    db.write_bytes(content)
    hook = PersistenceHook(db)
    lost = olds.pop(3)
    assert {info.id for info in (await hook.store.sessions())[0]} == {old.id for old in olds}
    for old in olds:
        again = await hook.store.load(old.id)
        assert (again.messages, again.state) == (old.messages, old.state)
    with pytest.raises(SessionError, match=r"was damaged: it is kept as .*damaged"):
        await hook.store.load(lost.id)


async def test_damage_in_the_middle_of_a_session_is_mended_from_memory(db: Path) -> None:
    client, hook = Witness(), PersistenceHook(db)
    async with Agent(ScriptedModel("a", "b", "c"), hooks=[hook], tools=[]) as agent:
        session = await agent.new_session(client=client)
        await agent.prompt(session, "one")
        change(db, "PRAGMA wal_checkpoint(TRUNCATE)")
        db.write_bytes(b"\xff" * db.stat().st_size)
        await agent.prompt(session, "two")
        await agent.prompt(session, "three")
    assert Path(f"{db}.damaged").exists()
    assert (await hook.store.load(session.id)).messages == session.messages


async def test_a_damaged_database_that_another_uses_is_left_where_it_is(db: Path) -> None:
    async with Agent(ScriptedModel(), hooks=[PersistenceHook(db)], tools=[]) as agent:
        await agent.new_session()
        change(db, "PRAGMA wal_checkpoint(TRUNCATE)")
        content = db.read_bytes()
        spoil_header(db)
        with pytest.raises(SessionError, match="damaged, and open in another process"):
            await PersistenceHook(db).store.fork("x")
        db.write_bytes(content)
    assert not Path(f"{db}.damaged").exists()


async def test_a_torn_write_ahead_log_loses_only_its_end(db: Path) -> None:
    agent = Agent(ScriptedModel("a"), hooks=[PersistenceHook(db)], tools=[])
    session = await agent.new_session()
    await agent.prompt(session, "one")
    copy, log = db.with_name("copy.db"), db.with_name("crow.db-wal").read_bytes()
    copy.write_bytes(db.read_bytes())
    copy.with_name("copy.db-wal").write_bytes(log[:-1000] + b"\x00" * 1000)
    await agent.close()
    assert len((await PersistenceHook(copy).store.load(session.id)).messages) >= 1


@pytest.mark.parametrize("data", ["{", "[]", '"x"', '{"role": "nobody"}', "", "null"])
async def test_a_damaged_record_is_passed_over_and_marked(db: Path, data: str) -> None:
    hook = PersistenceHook(db)
    async with Agent(ScriptedModel("a", "b"), hooks=[hook], tools=[]) as agent:
        session = await agent.new_session()
        await agent.prompt(session, "one")
        await agent.prompt(session, "two")
    change(db, "UPDATE log SET data = ? WHERE seq = 2", data)
    client = Witness()
    async with Agent(ScriptedModel("c", "d"), hooks=[hook], tools=[]) as agent:
        again = await agent.load_session(session.id, client=client)
        assert [m.get("content") for m in again.messages] == ["one", "two", "b"]
        await agent.prompt(again, "three")
        assert "damaged records of this session, passed over: 1" in client.text
    assert [kind for (kind,) in rows(db, "SELECT kind FROM log WHERE seq = 2")] == [
        "damaged message"
    ]
    assert (await hook.store.load(session.id)).messages == again.messages
    assert rows(db, "SELECT data FROM log WHERE seq = 2") == [(data,)]


async def test_damaged_settings_of_a_session_are_left_out(db: Path) -> None:
    hook = PersistenceHook(db)
    async with Agent(ScriptedModel("a"), hooks=[hook], tools=[]) as agent:
        session = (await agent.run("one")).session
    change(db, "UPDATE sessions SET options = '{', usage = '3', directories = ?", "null")
    again = await hook.store.load(session.id)
    assert (again.messages, again.options, again.usage) == (session.messages, {}, {})


async def test_a_kind_of_record_from_the_future_is_kept_and_passed_over(db: Path) -> None:
    hook = PersistenceHook(db)
    async with Agent(ScriptedModel("a"), hooks=[hook], tools=[]) as agent:
        session = (await agent.run("one")).session
    change(db, "INSERT INTO log (session, seq, segment, kind, at, data) SELECT session, 9, 0, ?, 0, '{}'"
               " FROM log WHERE seq = 1", "hologram")  # fmt: skip
    again = await hook.store.load(session.id)
    assert again.messages == session.messages
    assert len([event async for event in hook.store.replay(session.id)]) == 2
    assert '"kind":"hologram"' in await hook.store.export(session.id)


async def test_an_older_database_is_brought_forward_and_backed_up(db: Path) -> None:
    connection = apsw.Connection(str(db))
    connection.execute(BASELINE.read_text())
    connection.close()
    hook = PersistenceHook(db)
    async with Agent(ScriptedModel("b"), hooks=[hook], tools=[]) as agent:
        session = await agent.load_session("old")
        contents = [message.get("content") for message in session.messages]
        assert contents == ["shout hi", None, "HI", "It said: HI"]
        await agent.prompt(session, "more")
    assert [found.session.id for found in await hook.store.search("shout")] == ["old"]
    backup = Path(f"{db}.version-1")
    assert rows(backup, "PRAGMA user_version") == [(1,)]
    assert rows(backup, "SELECT count(*) FROM log") == [(6,)]
    assert backup.stat().st_mode & 0o077 == 0


async def test_a_migration_that_fails_changes_nothing(db: Path) -> None:
    database = Database(db)
    database.open().close()
    database.close()
    before = rows(db, "SELECT * FROM sqlite_schema")
    version = len(MIGRATIONS)
    broken = ("",) * version + ("CREATE TABLE more (a); SELECT nonsense",)
    with pytest.raises(SessionError, match="nonsense"):
        Database(db, migrations=broken).open()
    assert rows(db, "SELECT * FROM sqlite_schema") == before
    assert rows(db, "PRAGMA user_version") == [(version,)]


async def test_a_newer_database_is_refused_and_not_touched(db: Path) -> None:
    async with Agent(ScriptedModel("a"), hooks=[PersistenceHook(db)], tools=[]) as agent:
        old = (await agent.run("one")).session
    change(db, "PRAGMA user_version = 99")
    hook, client = PersistenceHook(db), Witness()
    for question in (
        hook.store.load(old.id),
        hook.store.sessions(),
        hook.store.search("x"),
        hook.store.fork(old.id),
    ):
        with pytest.raises(SessionError, match=r"newer Crow .*: update crow-acp, or"):
            await question
    async with Agent(ScriptedModel("b"), hooks=[hook], tools=[]) as agent:
        session = await agent.new_session(client=client)
        assert (await agent.prompt(session, "one")).text == "b"
    assert "newer Crow" in client.text
    assert rows(db, "SELECT count(*) FROM sessions") == [(1,)]


async def test_a_database_of_another_program_is_not_touched(db: Path) -> None:
    change(db, "CREATE TABLE mine (a)")
    with pytest.raises(SessionError, match="a database of another program: use another db_path"):
        await PersistenceHook(db).store.sessions()
    assert rows(db, "SELECT name FROM sqlite_schema") == [("mine",)]


async def test_where_nothing_can_be_stored_the_session_goes_on_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    client, hook = Witness(), PersistenceHook(tmp_path / "file" / "crow.db")
    async with Agent(ScriptedModel("a", "b"), hooks=[hook], tools=[]) as agent:
        session = await agent.new_session(client=client)
        for text in ("a", "b"):
            assert (await agent.prompt(session, "go")).text == text
        assert len([event async for event in hook.store.replay(session.id)]) == 4
    assert [notice.severity for notice in client.notices] == ["warning", "warning"]
    assert "this session is not stored for now" in client.text
    with pytest.raises(SessionError, match="there is no session"):
        await hook.store.load(session.id)


async def test_what_could_not_be_stored_is_stored_once_that_is_possible(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    client, hook = Witness(), PersistenceHook(tmp_path / "file" / "crow.db")
    async with Agent(ScriptedModel("a", "b"), hooks=[hook], tools=[]) as agent:
        session = await agent.new_session(client=client)
        await agent.prompt(session, "one")
        (tmp_path / "file").unlink()
        await agent.prompt(session, "two")
        assert "stored again" in client.text
        with pytest.raises(SessionError, match="in use"):
            await PersistenceHook(tmp_path / "file" / "crow.db").store.load(session.id)
    assert (await hook.store.load(session.id)).messages == session.messages


async def test_an_agent_that_gets_the_extension_late_stores_what_was_said_before(db: Path) -> None:
    async with Agent(ScriptedModel("a", "b"), tools=[]) as agent:
        session = (await agent.run("one")).session
        store = agent.use(PersistenceHook(db)).store
        await agent.prompt(session, "two")
    assert (await store.load(session.id)).messages == session.messages


async def test_saving_by_hand_stores_what_was_added_by_hand(db: Path) -> None:
    hook = PersistenceHook(db)
    async with Agent(ScriptedModel(), hooks=[hook], tools=[]) as agent:
        session = await agent.new_session()
        session.messages.append(user("by hand"))
        assert session.save()
        assert (await hook.store.segments(session.id)) == [session.messages]
        await Context(agent, session).append(user("by the context"))
    assert len((await hook.store.load(session.id)).messages) == 2
    hook.store.save(Session())


async def test_a_database_that_was_replaced_gets_what_is_in_memory(db: Path) -> None:
    async with Agent(ScriptedModel("a", "b"), hooks=[PersistenceHook(db)], tools=[]) as agent:
        session = (await agent.run("one")).session
        change(db, "DELETE FROM sessions")
        await agent.prompt(session, "two")
    assert (await PersistenceHook(db).store.load(session.id)).messages == session.messages


async def test_any_session_id_has_a_lock_of_its_own(db: Path) -> None:
    store = PersistenceHook(db)
    async with Agent(ScriptedModel(*"abc"), hooks=[store], tools=[]) as agent:
        for name in ("../../etc/passwd", "..", "x" * 500):
            session = await agent.new_session(id=name)
            await agent.prompt(session, "one")
            with pytest.raises(SessionError, match="in use"):
                await PersistenceHook(db).store.load(name)
    assert {path.name.partition("-")[0] for path in db.parent.iterdir()} == {
        "crow.db",
        "crow.db.locks",
    }


@pytest.mark.slow
def test_a_lock_has_one_holder_however_many_want_it(tmp_path: Path) -> None:
    holders: list[int] = []
    most: list[int] = []

    def want(number: int) -> None:
        for _ in range(200):
            try:
                lease = Lease.take(tmp_path, "session")
            except SessionError:
                continue
            holders.append(number)
            most.append(len(holders))
            holders.remove(number)
            lease.release()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(want, range(8)))
    assert max(most) == 1
    assert list(tmp_path.iterdir()) == []


async def test_a_database_can_be_damaged_twice(db: Path) -> None:
    for _ in range(2):
        db.write_text("no database " * 100)
        async with Agent(ScriptedModel(), hooks=[PersistenceHook(db)], tools=[]) as agent:
            await agent.new_session()
    kept = [path.name for path in db.parent.glob("*damaged*")]
    assert sorted(kept) == ["crow.db.damaged", "crow.db.damaged-2"]


def test_the_file_system_of_a_path_is_known(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        f"/dev/x / ext4 rw 0 0\nserver:/a {tmp_path}/with\\040space nfs4 rw 0 0\n"
        f"none {tmp_path}/with tmpfs rw 0 0\n"
    )
    (tmp_path / "with space").mkdir()
    assert file_system(tmp_path / "with space" / "crow.db", mounts) == "nfs4"
    assert file_system(tmp_path / "crow.db", mounts) == "ext4"
    assert file_system(tmp_path, tmp_path / "nothing") == ""


def change(db: Path, sql: str, *values: str | int) -> None:
    """Change a database, also one that is open: by the same library, or its locks were lost."""
    connection = apsw.Connection(str(db))
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute(sql, values)
    connection.close()


def rows(db: Path, sql: str) -> Sequence[tuple[object, ...]]:
    connection = apsw.Connection(str(db))
    found = connection.execute(sql).fetchall()
    connection.close()
    return found


async def test_where_storing_is_required_nothing_is_answered_that_cannot_be_stored(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").touch()
    store = PersistenceHook(tmp_path / "file" / "crow.db", required=True)
    model = ScriptedModel("never", "again")
    async with Agent(model, hooks=[store], tools=[]) as agent:
        session = await agent.new_session()
        reply = await agent.prompt(session, "hello")
        assert (reply.stop_reason, type(reply.error)) == ("error", SessionError)
        assert model.asked == []
        (tmp_path / "file").unlink()
        assert (await agent.prompt(session, "hello")).text == "never"
