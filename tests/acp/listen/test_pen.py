"""Several clients on one session: one has the pen, the others watch and can take it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from acp.exceptions import RequestError

from crow.testing import FakeEditor

PAIRS = pytest.mark.parametrize("schemes", [("ws", "http"), ("http", "ws")])
Two = tuple[FakeEditor, FakeEditor, str]


@asynccontextmanager
async def two(
    server: Any, schemes: tuple[str, str], cwd: Path, **watching: Any
) -> AsyncGenerator[Two]:
    """One that has opened a session, and one that watches it."""
    holder, watcher = FakeEditor(permissions=["reject_once"]), FakeEditor(**watching)
    first, second = map(server.url, schemes)
    async with holder.dialed(first), watcher.dialed(second):
        session = await holder.new_session(cwd)
        await watcher.connection.load_session(str(cwd), session)
        await watcher.saw("session_info_update", _meta=pen("fake-editor", is_own=False))
        yield holder, watcher, session


def pen(holder: str, *, is_own: bool) -> dict[str, Any]:
    """What a client is told of the pen."""
    return {"crow": {"pen": {"holder": holder, "isYours": is_own}}}


def asked(editor: FakeEditor) -> int:
    """How many questions a client was asked."""
    return len(editor.asked)


@PAIRS
async def test_who_comes_second_watches_and_is_told_who_has_the_pen(
    server: Any, tmp_path: Path, schemes: tuple[str, str]
) -> None:
    async with two(server, schemes, tmp_path) as (holder, watcher, session):
        assert "fake-editor has the pen of this session, and you watch it" in watcher.text()
        await holder.prompt(session, "Run `echo seen`")
        await watcher.saw("session_info_update", _meta={"crow": {"running": False}})
        prompts = watcher.updates("user_message_chunk")
        assert [each["content"]["text"] for each in prompts] == ["Run `echo seen`"]
        assert [card["title"] for card in watcher.cards()] == [
            card["title"] for card in holder.cards()
        ]
        assert watcher.cards()[0]["status"] == "completed"
        assert holder.text() in watcher.text()


@PAIRS
async def test_who_watches_can_say_nothing_and_hears_whom_to_take_the_pen_from(
    server: Any, tmp_path: Path, schemes: tuple[str, str]
) -> None:
    async with two(server, schemes, tmp_path) as (holder, watcher, session):
        for refused in (
            watcher.prompt(session, "Run `echo mine`"),
            watcher.connection.set_session_mode(mode_id="plan", session_id=session),
            watcher.connection.close_session(session),
            watcher.connection.delete_session(session),
        ):
            with pytest.raises(RequestError) as error:
                await refused
            assert error.value.code == -32600
            assert "fake-editor has the pen" in str(error.value)
            assert "/pen" in str(error.value)
        assert (await holder.prompt(session, "Run `echo mine`")).stop_reason == "end_turn"


async def test_who_watches_cannot_end_the_turn(server: Any, tmp_path: Path, waiting: str) -> None:
    async with two(server, ("ws", "ws"), tmp_path) as (holder, watcher, session):
        turn = asyncio.create_task(holder.prompt(session, waiting))
        await watcher.saw("tool_call_update", status="in_progress")
        await watcher.cancel(session)
        assert "error" not in await watcher.wire.request("session/list", {})
        (tmp_path / "go").touch()
        assert (await turn).stop_reason == "end_turn"


@PAIRS
@pytest.mark.parametrize("way", ["command", "method", "load"])
async def test_the_pen_is_taken_and_who_lost_it_is_told(
    server: Any, tmp_path: Path, schemes: tuple[str, str], way: str
) -> None:
    async with two(server, schemes, tmp_path) as (holder, watcher, session):
        match way:
            case "command":
                await watcher.prompt(session, "/pen")
                assert "You have the pen of this session now. Watching: fake-editor." in (
                    watcher.text()
                )
            case "method":
                took = await watcher.wire.request("_session/take_pen", {"sessionId": session})
                assert took["result"] == {}
            case _:
                await watcher.connection.load_session(str(tmp_path), session, crow={"pen": True})
        await holder.saw("session_info_update", _meta=pen("fake-editor", is_own=False))
        assert "fake-editor has taken the pen of this session" in holder.text()
        assert (await watcher.prompt(session, "Run `echo mine`")).stop_reason == "end_turn"
        with pytest.raises(RequestError, match="has the pen"):
            await holder.prompt(session, "Run `echo yours`")
        await holder.saw("session_info_update", _meta={"crow": {"running": False}})
        assert holder.cards()[0]["title"] == watcher.cards()[0]["title"]
        await holder.prompt(session, "/pen")
        assert (await holder.prompt(session, "Run `echo yours`")).stop_reason == "end_turn"


async def test_who_has_the_pen_is_asked_and_a_question_follows_it(
    server: Any, tmp_path: Path
) -> None:
    holder = FakeEditor(silent=["session/request_permission"])
    watcher = FakeEditor(permissions=["reject_once"])
    async with holder.dialed(server.ws), watcher.dialed(server.http):
        session = await holder.new_session(tmp_path)
        await watcher.connection.load_session(str(tmp_path), session)
        turn = asyncio.create_task(holder.prompt(session, "Create a file called test.txt"))
        await watcher.saw("tool_call")
        assert asked(watcher) == 0
        await watcher.wire.request("_session/take_pen", {"sessionId": session})
        assert (await turn).stop_reason == "end_turn"
        assert asked(watcher) == 1
        said = holder.wire.received
        cancelled = [
            m["params"]["requestId"] for m in said if m.get("method") == "$/cancel_request"
        ]
        questions = [m["id"] for m in said if m.get("method") == "session/request_permission"]
        assert cancelled == questions
        assert not (tmp_path / "test.txt").exists()


@pytest.mark.parametrize(
    ("answers", "heard"), [([{"size": 3}], "{'size': 3}"), (None, "None")], ids=["forms", "none"]
)
async def test_a_form_follows_the_pen_to_a_client_that_shows_forms_or_not(
    server: Any, tmp_path: Path, answers: Any, heard: str
) -> None:
    (tmp_path / "form").touch()
    holder = FakeEditor(answers=[{}], silent=["elicitation/create"])
    watcher = FakeEditor(answers=answers)
    async with holder.dialed(server.ws), watcher.dialed(server.http):
        session = await holder.new_session(tmp_path)
        await watcher.connection.load_session(str(tmp_path), session)
        turn = asyncio.create_task(holder.prompt(session, "Hello"))
        said = holder.wire.received
        await holder.wire.until(lambda: any(m.get("method") == "elicitation/create" for m in said))
        await watcher.wire.request("_session/take_pen", {"sessionId": session})
        assert (await turn).stop_reason == "end_turn"
    assert (tmp_path / "said").read_text() == heard
    assert asked(watcher) == (1 if answers else 0)


@pytest.mark.parametrize("scheme", ["http", "ws"])
async def test_the_pen_of_who_leaves_goes_to_who_watches(
    server: Any, tmp_path: Path, scheme: str
) -> None:
    holder, watcher = FakeEditor(), FakeEditor()
    async with watcher.dialed(server.ws):
        async with holder.dialed(server.url(scheme)):
            session = await holder.new_session(tmp_path)
            await holder.prompt(session, "Hello")
            await watcher.connection.load_session(str(tmp_path), session)
            await watcher.saw("session_info_update", _meta=pen("fake-editor", is_own=False))
        await watcher.saw("session_info_update", _meta=pen("fake-editor", is_own=True))
        assert "You have the pen of this session now." in watcher.text()
        assert (await watcher.prompt(session, "Run `echo mine`")).stop_reason == "end_turn"


async def test_who_has_not_opened_the_session_cannot_take_its_pen(
    server: Any, tmp_path: Path
) -> None:
    holder, other = FakeEditor(), FakeEditor()
    async with holder.dialed(server.ws), other.dialed(server.ws):
        session = await holder.new_session(tmp_path)
        took = await other.wire.request("_session/take_pen", {"sessionId": session})
        assert took["error"]["code"] == -32002
        assert (await holder.prompt(session, "Hello")).stop_reason == "end_turn"


@pytest.mark.slow
async def test_three_watch_and_one_that_does_not_read_stops_nobody(
    server: Any, tmp_path: Path, waiting: str
) -> None:
    holder, stuck, other = FakeEditor(), FakeEditor(), FakeEditor()
    async with holder.dialed(server.ws), stuck.dialed(server.ws), other.dialed(server.http):
        session = await holder.new_session(tmp_path)
        for each in (stuck, other):
            await each.connection.load_session(str(tmp_path), session)
        turn = asyncio.create_task(holder.prompt(session, waiting))
        await other.saw("tool_call_update", status="in_progress")
        stuck.wire.pause()
        (tmp_path / "flood").touch()
        (tmp_path / "go").touch()
        assert (await turn).stop_reason == "end_turn"
        for _ in range(4):  # more than all buffers on the way hold
            (tmp_path / "flood").touch()
            assert (await holder.prompt(session, "Run `true`")).stop_reason == "end_turn"

        def has_seen_all() -> bool:
            """It has, or has not read fast enough itself."""
            told = [each.get("_meta") for each in other.updates("session_info_update")]
            return {"crow": {"running": False}} in told or "has not kept up" in other.text()

        await other.wire.until(has_seen_all)
        stuck.wire.resume()
        while "This client has not kept up" not in stuck.text():  # noqa: ASYNC110 - it reads again
            await asyncio.sleep(0.02)
        with pytest.raises(RequestError, match="load or resume"):
            await stuck.prompt(session, "Hello")
        await stuck.connection.load_session(str(tmp_path), session)
