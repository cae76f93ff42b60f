"""The command ``crow acp`` with the embedded model, driven by the official library's client."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from crow.testing import FakeEditor

CROW = str(Path(sys.executable).with_name("crow"))


@pytest.mark.rule("all of stable version 1")
async def test_every_method_of_the_protocol_works_on_the_command(tmp_path: Path) -> None:
    first, later = FakeEditor(permissions=["allow_once"]), FakeEditor(notices=True)
    async with first.spawned(CROW, "acp", cwd=tmp_path):
        session = await first.new_session(tmp_path)
        reply = await first.prompt(session, "Create a file called test.txt")
        assert reply.stop_reason == "end_turn"
        assert "rehearsal" in first.text()
        assert (tmp_path / "test.txt").exists()
        (request,) = first.asked
        assert request["toolCall"]["content"][0]["type"] == "diff"
        await first.connection.authenticate("environment")
    async with later.spawned(CROW, "acp", cwd=tmp_path):
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
            chosen = await client.set_config_option(option.id, session, option.current_value)
            assert chosen.config_options == loaded.config_options
        await client.delete_session(forked)
        assert [s.session_id for s in (await client.list_sessions()).sessions] == [session]
    assert later.process is not None
    assert later.process.returncode == 0


@pytest.mark.slow
async def test_the_python_library_drives_every_method(
    tmp_path: Path, routes: frozenset[str]
) -> None:
    editor = FakeEditor()
    async with editor.spawned(CROW, "acp", "--allow", "Bash", cwd=tmp_path):
        client = editor.connection
        session = await editor.new_session(tmp_path)
        turn = asyncio.create_task(editor.prompt(session, "Run `sleep 600`"))
        await editor.saw("tool_call_update", status="in_progress")
        steer = {"sessionId": session, "prompt": [{"type": "text", "text": "left!"}]}
        assert (await editor.wire.request("_session/steering", steer))["result"]
        took = await editor.wire.request("_session/take_pen", {"sessionId": session})
        assert took["result"] == {}
        await editor.cancel(session)
        assert (await turn).stop_reason == "cancelled"
        await client.set_session_mode(session, "plan")
        await client.set_config_option("mode", session, "default")
        for method, params in {
            "_session/rename": {"sessionId": session, "title": "Another title"},
            "session/set_title": {"sessionId": session, "title": "A title"},
            "session/set_model": {"sessionId": session, "modelId": "rehearsal"},
            "session/status": {"sessionId": session},
            "auth/status": {},
            "session/archive": {"sessionId": session},
            "session/unarchive": {"sessionId": session},
        }.items():
            assert "result" in await editor.wire.request(method, params), method
        await client.resume_session(session, str(tmp_path))
        await client.close_session(session)
        await client.load_session(str(tmp_path), session)
        await client.resume_session(session, str(tmp_path))
        forked = (await client.fork_session(session, str(tmp_path))).session_id
        await client.delete_session(forked)
        assert [each.title for each in (await client.list_sessions()).sessions] == ["A title"]
        await client.authenticate("environment")
        await client.set_provider("openai", "openai", "http://127.0.0.1:9/v1")
        await client.disable_provider("openai")
        there = (await client.list_providers()).providers
        assert [each.current for each in there if each.provider_id == "openai"] == [None]
        await client.logout()
        driven = {message["method"] for message in editor.wire.sent if "method" in message}
    assert routes - driven == set()


@pytest.mark.slow
async def test_cancelling_the_command_in_the_middle_of_a_command(tmp_path: Path) -> None:
    editor = FakeEditor()
    async with editor.spawned(CROW, "acp", "--allow", "Bash", cwd=tmp_path):
        session = await editor.new_session(tmp_path)
        turn = asyncio.create_task(editor.prompt(session, "Run `sleep 60`"))
        await editor.saw("tool_call_update", status="in_progress")
        await editor.cancel(session)
        assert (await turn).stop_reason == "cancelled"
        await editor.prompt(session, "Run `echo over`")
        assert [card["status"] for card in editor.cards()] == ["failed", "completed"]


def test_a_mistake_on_the_command_line_is_said_on_stderr_and_stdout_stays_clean() -> None:
    ended = subprocess.run(
        [CROW, "acp", "--extension", "no_such_module"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert ended.returncode != 0
    assert ended.stdout == ""
    assert "no_such_module" in ended.stderr
    assert "Traceback" not in ended.stderr
