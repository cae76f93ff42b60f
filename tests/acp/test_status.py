"""What a client asks about without changing anything: credentials, and sessions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from crow import Agent
from crow.extensions.persistence import PersistenceHook
from crow.extensions.sandbox.probe import find_backend
from crow.testing import FakeEditor, ScriptedModel

CROW = str(Path(sys.executable).with_name("crow"))


async def state(tmp_path: Path, *options: str, **env: str) -> dict[str, Any]:
    """What the command says of its credentials."""
    editor = FakeEditor()
    async with editor.spawned(CROW, "acp", *options, cwd=tmp_path, env=env):
        return (await editor.wire.request("auth/status", {}))["result"]


@pytest.mark.slow
async def test_the_state_of_the_credentials(tmp_path: Path) -> None:
    assert await state(tmp_path, "--model", "rehearsal") == {
        "state": "not_required",
        "accounts": [],
    }
    assert (await state(tmp_path, "--model", "openai/gpt-5"))["state"] == "unauthenticated"
    told = await state(tmp_path, "--model", "openai/gpt-5", OPENAI_API_KEY="sk-1")
    assert told["state"] == "authenticated"
    used = {"label": "openai API key (OPENAI_API_KEY)", "active": True}
    assert told["accounts"] == [used]
    assert "sk-1" not in str(told)
    other = await state(tmp_path, "--model", "rehearsal", OPENAI_API_KEY="sk-1")
    assert other == {"state": "not_required", "accounts": [{**used, "active": False}]}


async def test_a_session_is_open_or_saved_or_not_known(tmp_path: Path) -> None:
    editor = FakeEditor()
    hooks = [PersistenceHook(tmp_path / "db")]
    async with editor.connected(Agent(llm=ScriptedModel("Hello."), hooks=hooks)):
        session = await editor.new_session(tmp_path)

        async def status(session_id: str) -> Any:
            answer = await editor.wire.request("session/status", {"sessionId": session_id})
            return answer.get("result", {}).get("status") or answer["error"]["code"]

        assert await status(session) == "open"
        await editor.prompt(session, "Hi")
        await editor.connection.close_session(session)
        assert await status(session) == "saved"
        assert await status(session) == "saved"
        assert await status("other") == -32002
        await editor.connection.delete_session(session)
        assert await status(session) == -32002


async def opened(tmp_path: Path, wanted: str) -> tuple[str, str]:
    """What the command says of the sandbox when a session is opened: beside its id, and in words."""
    editor = FakeEditor()
    env = {"CROW_SANDBOX": wanted}
    async with editor.spawned(CROW, "acp", "--model", "rehearsal", cwd=tmp_path, env=env):
        place = {"cwd": str(tmp_path), "mcpServers": []}
        session = (await editor.wire.request("session/new", place))["result"]
        await editor.prompt(session["sessionId"], "Read the file README.md")
    return session["_meta"]["crow"]["sandbox"], editor.text(session["sessionId"])


@pytest.mark.slow
async def test_a_session_says_what_its_commands_run_in(tmp_path: Path) -> None:
    found = find_backend()
    told, text = await opened(tmp_path, "on")
    assert (told, "NO SANDBOX" in text) == (
        (found.name, False) if found.holds else ("nothing, with all that you may do", True)
    )
    told, text = await opened(tmp_path, "none")
    assert told == "nothing, with all that you may do"
    assert text.count("NO SANDBOX: commands run with all that you may do;") == 1
    told, text = await opened(tmp_path, "off")
    assert told == (
        "nothing, with all that you may do: the sandbox is switched off (CROW_SANDBOX=off)"
    )
    assert "NO SANDBOX" not in text
