"""What was said is found again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crow.core.agent import Agent
from crow.core.messages import user
from crow.extensions import PersistenceHook
from crow.testing import ScriptedModel, call
from crow.tools import tool


@tool
async def secret() -> str:
    """A secret."""
    return "a walrus"


@pytest.fixture
async def persistence(db: Path | str, tmp_path: Path) -> PersistenceHook:
    """Three conversations."""
    persistence = PersistenceHook(db)
    script = (
        call("secret"),
        "The pipe is mended",
        "Größe geändert",
        "The pipe is 'quoted\" (or) NOT",
    )
    async with Agent(ScriptedModel(*script), hooks=[persistence], tools=[secret]) as agent:
        for prompt, name in (("mend the pipe", "one"), ("die Größe", "two"), ("say it", "three")):
            session = await agent.new_session(tmp_path if name == "two" else "/", id=name)
            await agent.prompt(session, prompt)
    return persistence


async def ids(persistence: PersistenceHook, text: str) -> set[str]:
    return {found.session.id for found in await persistence.store.search(text)}


async def test_prompts_and_answers_are_found_by_all_their_words(
    persistence: PersistenceHook,
) -> None:
    assert await ids(persistence, "pipe") == {"one", "three"}
    assert await ids(persistence, "mended PIPE") == {"one"}
    assert await ids(persistence, "grosse") == set()
    assert await ids(persistence, "große") == {"two"}
    assert await ids(persistence, "mend") == {"one"}
    assert await ids(persistence, "pipe nowhere") == set()


async def test_what_a_tool_said_is_not_searched(persistence: PersistenceHook) -> None:
    assert await ids(persistence, "walrus") == set()


@pytest.mark.parametrize(
    "text", ["", "  ", '"', "' OR", "(", "NOT", "a:b", "*", "pipe*", "-x", "\x00", "\udc80"]
)
async def test_any_text_can_be_searched_for(persistence: PersistenceHook, text: str) -> None:
    assert await ids(persistence, text) <= {"one", "two", "three"}


def before(persistence: PersistenceHook) -> int:
    """The rows in front of the first message: where machines share it, which one has the session."""
    return 0 if persistence.store.attachments is None else 1


async def test_a_find_shows_its_place(persistence: PersistenceHook) -> None:
    (found,) = await persistence.store.search("geändert")
    assert (found.session.title, found.snippet) == ("die Größe", "Größe geändert")
    assert found.seq == 2 + before(persistence)


async def test_a_find_can_be_limited_to_a_directory(persistence: PersistenceHook) -> None:
    assert await persistence.store.search("geändert", cwd="/") == []
    assert len(await persistence.store.search("pipe", limit=1)) == 1


async def test_titles_are_searched_too(persistence: PersistenceHook) -> None:
    await persistence.store.rename("two", "Umlauts everywhere")
    assert [(f.session.id, f.seq) for f in await persistence.store.search("umlauts ev")] == [
        ("two", None)
    ]


async def test_copies_are_found_and_deleted_sessions_are_not(persistence: PersistenceHook) -> None:
    copy = await persistence.store.fork("three")
    assert await ids(persistence, "quoted") == {"three", copy}
    await persistence.store.delete("three")
    await persistence.store.delete(copy)
    assert await ids(persistence, "quoted") == set()
    async with Agent(ScriptedModel("quoted again"), hooks=[persistence], tools=[]) as agent:
        session = (await agent.run("once more")).session
    assert await ids(persistence, "quoted") == {session.id}


async def test_nothing_is_found_where_nothing_was_stored(db: Path | str) -> None:
    assert await PersistenceHook(db).store.search("x") == []


async def test_a_long_session_is_searched_to_its_end(db: Path | str) -> None:
    hook = PersistenceHook(db)
    async with Agent(ScriptedModel(), hooks=[hook], tools=[]) as agent:
        session = await agent.new_session()
        session.messages += [user(f"number {index}") for index in range(2500)]
    (found,) = await hook.store.search("number 2499")
    assert found.seq == 2499 + before(hook)


async def test_half_a_surrogate_pair_stops_neither_the_index_nor_the_writer(db: Path | str) -> None:
    persistence = PersistenceHook(db)
    async with Agent(ScriptedModel("one \udc80", "two"), hooks=[persistence], tools=[]) as agent:
        session = await agent.new_session("/", id="odd")
        await agent.prompt(session, "hello \udcff walrus")
        assert await ids(persistence, "walrus") == {"odd"}
        reply = await agent.prompt(session, "again")
        assert reply.text == "two"
        assert await ids(persistence, "again") == {"odd"}


async def test_a_tool_a_file_a_hook_and_what_came_of_a_call_can_be_searched_for(
    persistence: PersistenceHook,
) -> None:
    @tool
    def touch(file_path: str) -> str:
        """Touch a file."""
        if file_path.endswith("x.py"):
            raise ValueError("no")
        return "done"

    def guard(args: Any) -> str | None:
        return "never" if "Secret" in args["file_path"] else None

    async def called(path: str, said: str) -> str:
        agent = Agent(
            ScriptedModel(call("touch", file_path=path), said), hooks=[persistence], tools=[touch]
        )
        agent.hooks.register("before_tool", guard)
        async with agent:
            return (await agent.run("Touch it")).session.id

    denied = await called("src/Secret_Ä.py", "It was refused.")
    failed = await called("src/x.py", "It failed.")
    fine = await called("src/app.py", "Touched.")

    async def found(text: str) -> list[str]:
        return [each.session.id for each in await persistence.store.search(text)]

    assert await found("tool:Touch") == [fine, failed, denied]
    assert await found("tool:touch is:denied") == await found("is:denied") == [denied]
    assert await found("is:error") == [failed]
    assert await found("file:app.py") == [fine]
    assert await found("file:SECRET_ä.py") == [denied]
    assert await found("file:app.py is:denied") == await found("file:s_c") == []
    assert await found("hook:guard") == [denied]
    assert await found("hook:nobody") == await found("hook:guard file:app.py") == []
    assert await found("tool:touch refused") == [denied]
    (one,) = await persistence.store.search("is:denied")
    assert one.snippet.startswith("touch: ")
    assert one.snippet.endswith("(denied)")
    assert await found("is:else") == []
