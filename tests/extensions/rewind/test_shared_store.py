"""What a session changed on one machine is taken back on another, and lies in the database once."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.postgres import Server, rows

from crow import Agent, Session, tool
from crow.extensions import PersistenceHook, RewindHook
from crow.testing import ScriptedModel, call

pytestmark = pytest.mark.slow

KEY = "sk-12345678"


def kept(address: str) -> tuple[int, int]:
    """How many changes the database has, and how many contents."""
    sql = "SELECT (SELECT count(*) FROM attachments), (SELECT count(*) FROM attached_contents)"
    (counts,) = rows(address, sql)
    return counts[0], counts[1]


class Machine:
    """A machine with a folder of its own for work, and one for what rewind keeps."""

    def __init__(self, folder: Path, address: str, *script: Any, **options: Any) -> None:
        self.work = folder / "work"
        self.work.mkdir(parents=True)
        self.keeper = RewindHook(directory=folder / "kept", **{"patience": 60.0, **options})
        self.store = PersistenceHook(address)
        self.agent = Agent(ScriptedModel(*script), hooks=[self.store, self.keeper])

    async def talk(self, prompt: str = "Go") -> Session:
        session = await self.agent.new_session(cwd=str(self.work))
        await self.agent.run(prompt, session=session)
        return session

    async def lines(self, session: Session) -> list[str]:
        return (await self.keeper.plan_rewind(session, 0.0)).lines(session.cwd)

    async def back(self, session: Session, since: float = 0.0) -> Any:
        plan = await self.keeper.plan_rewind(session, since)
        return await self.keeper.carry_out_rewind(session, plan)


EDIT = call("Bash", command="echo new > a; printf '\\0\\1' > b; rm c")


async def test_a_session_that_goes_on_elsewhere_is_taken_back_there(
    postgres: Server, tmp_path: Path
) -> None:
    address = postgres.database()
    one = Machine(tmp_path / "one", address, EDIT, "done")
    for name in "ac":
        (one.work / name).write_text("old")
    async with one.agent:
        session = await one.talk()
    two = Machine(tmp_path / "two", address, call("Bash", command="echo newer > a"), "done")
    shutil.copytree(one.work, two.work, dirs_exist_ok=True)
    shutil.rmtree(tmp_path / "one")
    async with two.agent:
        taken = await two.agent.load_session(session.id, cwd=str(two.work))
        assert await two.lines(taken) == ["restore  a", "delete   b", "restore  c"]
        await two.agent.run("Go on", session=taken)
        outcome = await two.back(taken)
        assert not outcome.failed
        assert {each.name: each.read_text() for each in two.work.iterdir()} == dict.fromkeys(
            "ac", "old"
        )
        await two.back(taken, outcome.since)
        assert (two.work / "a").read_text() == "newer\n"


async def test_what_a_machine_was_at_when_it_was_lost_is_said_to_be_unknown(
    postgres: Server, tmp_path: Path
) -> None:
    address = postgres.database()
    one = Machine(tmp_path / "one", address, EDIT, "done")
    session = await one.talk()
    rows(address, "UPDATE leases SET until = clock_timestamp(), owner = 'a b 1 - c'")
    two = Machine(tmp_path / "two", address)
    async with two.agent:
        taken = await two.agent.load_session(session.id, cwd=str(two.work))
        *_, note = await two.lines(taken)
        assert note.startswith("the machine was lost before ")
    async with Machine(tmp_path / "three", address).agent as agent:
        again = await agent.load_session(session.id)
        assert len(again.state["rewind"]["moves"]) == 1  # the second one let it go in peace
    await one.agent.close()


async def test_a_content_lies_there_once_and_as_long_as_a_session_needs_it(
    postgres: Server, tmp_path: Path
) -> None:
    address = postgres.database()
    write = [call("Write", file_path="a", content="same"), "done"]
    one = Machine(tmp_path / "one", address, *write, *write, *write)
    async with one.agent:
        first = await one.talk()
        (one.work / "a").unlink()
        second = await one.talk()
        assert kept(address) == (2, 1)
        await one.agent.close_session(first)
        await one.agent.close_session(second)
        assert await one.agent.delete_session(first.id)
        assert kept(address) == (1, 1)
        assert await one.agent.delete_session(second.id)
        assert kept(address) == (0, 0)
        assert await one.lines(Session(id=second.id)) == []
        (one.work / "a").unlink()
        await one.talk()  # which thinks that the content is still there
        assert kept(address) == (1, 1)


async def test_neither_keys_nor_what_is_too_much_comes_there(
    postgres: Server, tmp_path: Path
) -> None:
    address = postgres.database()
    say = call("Bash", command=f"echo TOKEN={KEY} > a; echo plain > b")
    one = Machine(tmp_path / "one", address, say, "done")
    async with one.agent:
        one.agent.known_secrets = frozenset({KEY})
        session = await one.talk()
        assert rows(address, "SELECT data FROM attached_contents") == [(b"plain\n",)]
        assert all(KEY not in str(row) for row in rows(address, "SELECT data FROM attachments"))
        assert await one.lines(session) == [
            "leave    a  (it is too large, or has a key in it: no way back would be kept)",
            "delete   b",
        ]
    full = postgres.database()
    two = Machine(tmp_path / "two", full, EDIT, "done", most=10_000)
    (two.work / "a").write_text("old")
    async with two.agent:
        session = await two.talk()
    assert kept(full) == (2, 0)
    three = Machine(tmp_path / "three", full)
    shutil.copytree(two.work, three.work, dirs_exist_ok=True)
    shutil.rmtree(tmp_path / "two")
    async with three.agent:
        taken = await three.agent.load_session(session.id, cwd=str(three.work))
        assert "leave    a  (what it was is not kept)" in await three.lines(taken)


async def test_what_is_changed_while_the_database_is_away_is_kept_on_the_machine(
    tmp_path: Path,
) -> None:
    pytest.importorskip("psycopg")
    server = Server()
    try:
        one = Machine(tmp_path / "one", server.database(), call("act"), "done")

        @tool(kind="execute")
        async def act() -> str:
            """Act, while the database goes away."""
            (one.work / "a").write_text("new")
            server.stop()
            return "done"

        one.agent.add_tool(act)
        async with one.agent:
            session = await one.agent.new_session(cwd=str(one.work))
            assert (await one.agent.prompt(session, "Go")).stop_reason == "error"
            server.start()
            assert await one.lines(session) == ["delete   a"]
    finally:
        server.remove()


async def test_what_is_old_goes_from_there(postgres: Server, tmp_path: Path) -> None:
    address = postgres.database()
    one = Machine(tmp_path / "one", address, EDIT, "done")
    async with one.agent:
        await one.talk()
    rows(address, "UPDATE attachments SET at = at - 40 * 86400")
    two = Machine(tmp_path / "two", address, call("Write", file_path="x", content="x"), "done")
    async with two.agent:
        await two.talk()
    assert kept(address) == (1, 1)
