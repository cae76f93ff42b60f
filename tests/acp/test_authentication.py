"""How a client comes by credentials: the methods, `authenticate`, `logout`, and -32000 (AUTH-*)."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError

from crow import Agent
from crow.testing import FakeEditor, ScriptedModel

CROW = str(Path(sys.executable).with_name("crow"))
LEGACY = {"_meta": {"terminal-auth": True}}


async def greeted(editor: FakeEditor, capabilities: dict[str, Any]) -> dict[str, Any]:
    """What is answered to `initialize`."""
    params = {"protocolVersion": 1, "clientCapabilities": capabilities}
    return (await editor.wire.request("initialize", params))["result"]


async def test_a_terminal_is_offered_only_to_clients_that_have_one(tmp_path: Path) -> None:
    """AUTH-002."""
    editor = FakeEditor()
    async with editor.spawned(CROW, "acp", cwd=tmp_path, initialize=False):
        for capabilities, kinds in (
            ({}, ["agent"]),
            ({"terminal": True}, ["agent"]),
            ({"auth": {"terminal": True}}, ["agent", "terminal"]),
            (LEGACY, ["agent", "terminal"]),
        ):
            greeting = await greeted(editor, capabilities)
            assert [method["type"] for method in greeting["authMethods"]] == kinds
            assert greeting["agentCapabilities"]["auth"] == {"status": {}, "logout": {}}
            for method in greeting["authMethods"][1:]:
                assert method["args"] == ["--login"]
                assert ("_meta" in method) == (capabilities is LEGACY)


@pytest.mark.slow
@pytest.mark.rule("any path, any PATH, a login that ends")
async def test_an_older_client_is_told_the_whole_command(tmp_path: Path) -> None:
    editor = FakeEditor()
    async with editor.spawned(CROW, "acp", cwd=tmp_path, initialize=False):
        greeting = await greeted(editor, LEGACY)
    told = greeting["authMethods"][1]["_meta"]["terminal-auth"]
    process = await asyncio.create_subprocess_exec(
        told["command"],
        *told["args"],
        "openai",
        cwd=tmp_path,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate(b"sk-1234567890\n")
    assert process.returncode == 0
    assert b"stored in" in out
    assert told["label"]


async def test_a_key_that_is_stored_meanwhile_is_found_and_a_removed_one_is_gone(
    tmp_path: Path, home: Path
) -> None:
    editor = FakeEditor()
    async with editor.spawned(CROW, "acp", "--model", "mistral/x", cwd=tmp_path):
        session = await editor.new_session(tmp_path)
        for asking in (editor.connection.authenticate("environment"), editor.prompt(session, "?")):
            with pytest.raises(RequestError) as missing:
                await asking
            assert missing.value.code == -32000
        file = home / ".config/crow/credentials.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"mistral": {"key": "sk-1"}}), "utf-8")
        await editor.connection.authenticate("environment")
        assert (await editor.wire.request("logout", {}))["result"] == {}
        assert json.loads(file.read_text("utf-8")) == {}
        with pytest.raises(RequestError) as gone:
            await editor.connection.authenticate("environment")
    assert gone.value.code == -32000


async def test_a_method_for_terminals_is_not_for_authenticate(tmp_path: Path) -> None:
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel())):
        with pytest.raises(RequestError) as refused:
            await editor.connection.authenticate("login")
    assert refused.value.code == -32602


async def test_an_agent_that_stores_no_keys_has_no_logout(tmp_path: Path) -> None:
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel())):
        answered = await editor.wire.request("logout", {})
        greeting = editor.wire.received[0]["result"]
    assert answered["error"]["code"] == -32601
    assert greeting["agentCapabilities"]["auth"] == {"status": {}}


async def test_a_client_that_has_asked_for_the_status_is_told_when_it_changes(
    tmp_path: Path, home: Path
) -> None:
    def told() -> list[dict[str, Any]]:
        received = editor.wire.received
        return [each["params"] for each in received if each.get("method") == "auth/status_update"]

    editor = FakeEditor()
    async with editor.spawned(CROW, "acp", "--model", "mistral/x", cwd=tmp_path):
        file = home / ".config/crow/credentials.json"
        file.parent.mkdir(parents=True)
        await editor.wire.request("session/list", {})
        assert not told()
        status = await editor.wire.request("auth/status", {})
        assert status["result"] == {"state": "unauthenticated", "accounts": []}
        await editor.wire.request("session/list", {})
        assert not told()
        file.write_text(json.dumps({"mistral": {"key": "sk-1"}}), "utf-8")
        await editor.wire.request("session/list", {})
        assert [each["state"] for each in told()] == ["authenticated"]
        assert told()[0]["accounts"] == [{"label": "mistral API key", "active": True}]
        await editor.wire.request("logout", {})
        assert [each["state"] for each in told()] == ["authenticated", "unauthenticated"]
