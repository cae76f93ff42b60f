"""A session that several machines have had: the page says which, from where to where, and how it left."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from tests.postgres import Server
from tests.view.conftest import dom, shout

from crow.core.agent import Agent
from crow.extensions import PersistenceHook
from crow.testing import ScriptedModel, call
from crow.view.document import document
from crow.view.export import page_of
from crow.view.markdown import dressed

pytestmark = pytest.mark.slow


def lose(address: str) -> None:
    """Let the machine that has the sessions be one that is not heard of."""
    import psycopg

    sql = "UPDATE leases SET until = clock_timestamp(), owner = 'a b 1 - c', who = 'build-7'"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(sql)


async def test_the_page_shows_what_moved_where(postgres: Server, tmp_path: Path) -> None:
    address = postgres.database()
    one = Agent(
        ScriptedModel(call("shout", word="a"), "A."),
        hooks=[PersistenceHook(address)],
        tools=[shout],
    )
    session = (await one.run("Shout")).session
    lose(address)
    hook = PersistenceHook(address)
    for prompt in ("Again", "And again"):
        async with Agent(ScriptedModel("Yes."), hooks=[hook], tools=[shout]) as other:
            await other.run(prompt, session=await other.load_session(session.id))
    await one.close()
    made = document(await hook.store.export(session.id))
    parts = [(m["epoch"], m["since"], m.get("until"), m.get("how")) for m in made["machines"]]
    assert parts == [(1, 1, 0, "lost"), (2, 1, 0, "handed over"), (3, 1, None, None)]
    (moved,) = [entry for entry in made["entries"] if entry["kind"] == "moved"]
    assert (moved["epoch"], moved["lost"], moved["unknown"]) == (2, "build-7", 0)
    file = tmp_path / "page.html"
    file.write_text(page_of(dressed(made), Counter()), "utf-8")
    seen = await asyncio.to_thread(dom, f"{file.as_uri()}#x/conversation", tmp_path)
    assert "taken over from build-7, which was not heard of" in seen
    seen = await asyncio.to_thread(dom, f"{file.as_uri()}#x/timeline", tmp_path)
    assert "Where it was" in seen
