"""Clients of ``crow acp --listen``: the official library's, over HTTP and over WebSocket."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.acp.listen.waiting import exists, prompting
from websockets.asyncio.client import connect

from crow.testing import FakeEditor

BOTH = pytest.mark.parametrize("scheme", ["http", "ws"])

CLIENT = """
import asyncio, sys
from crow.testing import FakeEditor

async def main(url, cwd, prompt):
    editor = FakeEditor()
    async with editor.dialed(url):
        session = await editor.new_session(cwd)
        print(session, flush=True)
        await editor.prompt(session, prompt)

asyncio.run(main(*sys.argv[1:]))
"""


@BOTH
@pytest.mark.variants(1)
async def test_the_official_client_gets_through_the_methods(
    server: Any, scheme: str, tmp_path: Path
) -> None:
    first, later = FakeEditor(permissions=["allow_once"]), FakeEditor(notices=True)
    async with first.dialed(server.url(scheme)):
        session = await first.new_session(tmp_path)
        reply = await first.prompt(session, "Create a file called test.txt")
        assert reply.stop_reason == "end_turn"
        assert (tmp_path / "test.txt").exists()
        assert len(first.asked) == 1
        await first.connection.authenticate("environment")
    async with later.dialed(server.url(scheme)):
        client = later.connection
        (info,) = (await client.list_sessions(str(tmp_path))).sessions
        assert (info.session_id, info.title) == (session, "Create a file called test.txt")
        loaded = await client.load_session(str(tmp_path), session)
        assert [card["title"] for card in later.cards()] == [c["title"] for c in first.cards()]
        await later.prompt(session, "Read the file test.txt")
        assert [card["name"] for card in later.cards()] == ["Write", "Read"]
        forked = (await client.fork_session(session, str(tmp_path))).session_id
        await client.close_session(session)
        await client.resume_session(session, str(tmp_path))
        for option in loaded.config_options or ():
            await client.set_config_option(option.id, session, option.current_value)
        await client.delete_session(forked)
        await client.delete_session(session)
        assert (await client.list_sessions(str(tmp_path))).sessions == []


async def test_twenty_clients_at_once_each_get_their_own(server: Any, tmp_path: Path) -> None:
    async def work(number: int) -> FakeEditor:
        editor, cwd = FakeEditor(), tmp_path / str(number)
        cwd.mkdir()
        async with editor.dialed(server.url("http" if number % 2 else "ws")):
            session = await editor.new_session(cwd)
            reply = await editor.prompt(session, f"Run `echo I am number {number}`")
            assert reply.stop_reason == "end_turn"
            told = {m["params"]["sessionId"] for m in editor.wire.received if "params" in m}
            assert told == {session}
        return editor

    for number, editor in enumerate(await asyncio.gather(*map(work, range(20)))):
        (card,) = editor.cards()
        assert f"I am number {number}" in card["content"][0]["content"]["text"].splitlines()


@BOTH
async def test_a_turn_goes_on_while_its_client_is_away(
    server: Any, scheme: str, tmp_path: Path, waiting: str
) -> None:
    first, later = FakeEditor(), FakeEditor()
    async with first.dialed(server.url(scheme)):
        session = await first.new_session(tmp_path)
        await first.prompt(session, "Run `echo before`")
        async with prompting(first, session, waiting):
            await exists(tmp_path / "on")
    async with later.dialed(server.url(scheme)):
        await later.connection.load_session(str(tmp_path), session)
        await later.wire.until(lambda: later.cards()[-1]["status"] == "in_progress")
        said = [u["content"]["text"] for u in later.updates("user_message_chunk")]
        assert said == ["Run `echo before`", waiting]
        assert [card["status"] for card in later.cards()] == ["completed", "in_progress"]
        assert later.cards()[-1]["title"] == "sh wait.sh"
        (tmp_path / "go").touch()
        await later.saw("session_info_update", _meta={"crow": {"running": False}})
        assert [card["status"] for card in later.cards()] == ["completed", "completed"]
        assert later.text().count("the end") == 1
        assert later.text().count("before") == first.text().count("before")
        assert (await later.prompt(session, "Run `echo after`")).stop_reason == "end_turn"


@BOTH
async def test_who_comes_back_can_cancel_the_turn(
    server: Any, scheme: str, tmp_path: Path, waiting: str
) -> None:
    first, later, other = FakeEditor(), FakeEditor(), FakeEditor()
    async with first.dialed(server.url(scheme)):
        session = await first.new_session(tmp_path)
        async with prompting(first, session, waiting):
            await exists(tmp_path / "on")
    async with later.dialed(server.url(scheme)), other.dialed(server.url(scheme)):
        await later.connection.resume_session(session, str(tmp_path))
        await other.cancel(session)  # it is not the other's to cancel
        await other.connection.list_sessions()
        assert later.updates("session_info_update") == []
        await later.cancel(session)
        await later.saw("session_info_update", _meta={"crow": {"running": False}})
        assert [card["status"] for card in later.cards()] == ["failed"]
        (tmp_path / "go").touch()
        assert (await later.prompt(session, "Run `echo on`")).stop_reason == "end_turn"


@BOTH
async def test_resume_tells_what_was_missed_and_nothing_twice(
    server: Any, scheme: str, tmp_path: Path, waiting: str
) -> None:
    first, later = FakeEditor(), FakeEditor()
    async with first.dialed(server.url(scheme)):
        session = await first.new_session(tmp_path)
        async with prompting(first, session, waiting):
            await exists(tmp_path / "on")
            await first.saw("tool_call_update", status="in_progress")
    (tmp_path / "go").touch()
    async with later.dialed(server.url(scheme)):
        await later.connection.resume_session(session, str(tmp_path))
        await later.wire.until(lambda: "the end" in later.text())
        assert later.updates("user_message_chunk") == []
        assert later.updates("tool_call") == []
        (card,) = later.cards()
        assert card["toolCallId"] == first.cards()[0]["toolCallId"]
        assert card["status"] == "completed"


@BOTH
async def test_an_open_question_is_asked_again(server: Any, scheme: str, tmp_path: Path) -> None:
    first = FakeEditor(silent=["session/request_permission"])
    later = FakeEditor(permissions=["allow_once"])
    async with first.dialed(server.url(scheme)):
        session = await first.new_session(tmp_path)
        async with prompting(first, session, "Create a file called test.txt"):
            await first.wire.until(
                lambda: any(
                    m.get("method") == "session/request_permission" for m in first.wire.received
                )
            )
    async with later.dialed(server.url(scheme)):
        await later.connection.resume_session(session, str(tmp_path))
        await later.saw("tool_call_update", status="completed")
        (asked,) = later.asked
        assert asked["toolCall"]["toolCallId"] == first.cards()[0]["toolCallId"]
    assert (tmp_path / "test.txt").exists()


@pytest.mark.slow
@BOTH
async def test_a_client_that_is_killed_does_not_end_its_turn(
    server: Any, scheme: str, tmp_path: Path, waiting: str
) -> None:
    arguments = ("-c", CLIENT, server.url(scheme), str(tmp_path), waiting)
    client = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=asyncio.subprocess.PIPE
    )
    assert client.stdout is not None
    session = (await client.stdout.readline()).decode().strip()
    await exists(tmp_path / "on")
    client.kill()
    await client.wait()
    editor = FakeEditor()
    async with editor.dialed(server.url(scheme)):
        await editor.connection.load_session(str(tmp_path), session)
        (tmp_path / "go").touch()
        await editor.wire.until(lambda: "the end" in editor.text())


async def test_garbage_is_answered_and_troubles_nobody_else(server: Any, tmp_path: Path) -> None:
    editor = FakeEditor()
    async with editor.dialed(server.ws), connect(server.ws) as socket:
        session = await editor.new_session(tmp_path)
        turn = asyncio.create_task(editor.prompt(session, "Run `echo fine`"))
        for text, code in (
            ("{", -32700),
            ("[]", -32600),
            ('"text"', -32600),
            ('{"jsonrpc":"1.0","id":1,"method":"initialize"}', -32600),
            ('{"jsonrpc":"2.0","id":2,"method":"initialize"}', -32602),
            ('{"jsonrpc":"2.0","id":3,"method":"no/such"}', -32601),
            ('{"jsonrpc":"2.0","id":4,"method":"session/prompt","params":{}}', -32602),
        ):
            await socket.send(text)
            assert json.loads(await socket.recv())["error"]["code"] == code
        await socket.send(b"\x00\xff")
        await socket.send('{"jsonrpc":"2.0","id":5,"method":"session/list","params":{}}')
        assert json.loads(await socket.recv())["id"] == 5
        assert (await turn).stop_reason == "end_turn"


async def test_a_client_that_does_not_read_stops_only_itself(server: Any, tmp_path: Path) -> None:
    slow, fast = FakeEditor(), FakeEditor()
    (tmp_path / "long.sh").write_text("yes 0123456789 | head -c 4000000\n")
    async with slow.dialed(server.ws), fast.dialed(server.ws):
        stuck, free = await slow.new_session(tmp_path), await fast.new_session(tmp_path)
        slow.wire.pause()
        prompts = [slow.prompt(stuck, "Run `sh long.sh`") for _ in range(3)]
        turns = [asyncio.create_task(prompt) for prompt in prompts]
        assert (await fast.prompt(free, "Run `sh long.sh`")).stop_reason == "end_turn"
        slow.wire.resume()
        assert [reply.stop_reason for reply in await asyncio.gather(*turns)] == ["end_turn"] * 3


async def test_a_client_that_does_not_read_can_be_replaced(
    server: Any, tmp_path: Path, waiting: str
) -> None:
    stuck, later = FakeEditor(), FakeEditor()
    async with stuck.dialed(server.ws), later.dialed(server.http):
        session = await stuck.new_session(tmp_path)
        turn = asyncio.create_task(stuck.prompt(session, waiting))
        await exists(tmp_path / "on")
        stuck.wire.pause()
        (tmp_path / "flood").touch()
        (tmp_path / "go").touch()
        await later.connection.resume_session(session, str(tmp_path), crow={"pen": True})
        await later.saw("session_info_update", _meta={"crow": {"running": False}})
        assert later.cards()[0]["status"] == "completed"
        stuck.wire.resume()
        assert (await turn).stop_reason == "end_turn"


async def test_who_missed_more_than_is_kept_is_told_so(
    server: Any, tmp_path: Path, waiting: str
) -> None:
    first, later = FakeEditor(), FakeEditor(notices=True)
    async with first.dialed(server.ws):
        session = await first.new_session(tmp_path)
        async with prompting(first, session, f"{waiting}, then create a file called test.txt"):
            await exists(tmp_path / "on")
    (tmp_path / "flood").touch()
    (tmp_path / "go").touch()
    await exists(tmp_path / "flooded")
    async with later.dialed(server.ws):
        await later.connection.resume_session(session, str(tmp_path))
        notice = await later.saw("notice")
        assert "not shown here" in notice["title"]
        await later.saw("session_info_update", _meta={"crow": {"running": False}})
        assert (tmp_path / "test.txt").exists()
        await later.connection.load_session(str(tmp_path), session)
        assert len(later.updates("user_message_chunk")) == 1


async def test_a_terminal_of_a_client_that_is_gone_is_not_shown_to_another(
    server: Any, tmp_path: Path
) -> None:
    def kinds(editor: FakeEditor) -> set[str]:
        cards = [card for card in editor.cards() if "content" in card]
        return {content["type"] for card in cards for content in card["content"]}

    first, later = FakeEditor(terminals=True), FakeEditor(terminals=True)
    async with first.dialed(server.ws):
        session = await first.new_session(tmp_path)
        async with prompting(first, session, "Run `sleep 600`"):
            await first.wire.until(lambda: "terminal" in kinds(first))
    async with later.dialed(server.ws):
        await later.connection.load_session(str(tmp_path), session)
        await later.wire.until(lambda: "failed" in [card["status"] for card in later.cards()])
        assert "terminal" not in kinds(later)
        await later.prompt(session, "Run `echo here`")
        assert kinds(later) == {"content", "terminal"}
