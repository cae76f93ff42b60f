"""Which version is spoken: the draft only where the agent offers it and the client asks for it."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.acp.v2.conftest import Draft

from crow import Agent
from crow.acp.capabilities import ClientCapabilities
from crow.acp.initialize import AgentCapabilities, initialize
from crow.acp.jsonrpc import Message
from crow.testing import FakeEditor, ScriptedModel

CROW = str(Path(sys.executable).with_name("crow"))
INFO = {"name": "test", "version": "1"}


def hello(version: Any, **params: Any) -> Message:
    request = {"jsonrpc": "2.0", "id": 0, "method": "initialize"}
    return {**request, "params": {"protocolVersion": version, **params}}


@pytest.mark.parametrize(
    "latest, asked, spoken",
    [(1, 1, 1), (1, 2, 1), (1, 65535, 1), (2, 0, 1), (2, 1, 1), (2, 2, 2), (2, 65535, 2)],
)
def test_the_draft_takes_two(latest: int, asked: int, spoken: int) -> None:
    answer = initialize(hello(asked, info=INFO), AgentCapabilities(latest=latest))
    assert answer["result"]["protocolVersion"] == spoken
    assert ("info" in answer["result"]) is (spoken == 2)
    assert ("agentInfo" in answer["result"]) is (spoken == 1)


@pytest.mark.rule("version 2")
def test_who_asks_for_the_draft_says_who_it_is() -> None:
    assert initialize(hello(2), AgentCapabilities(latest=2))["error"]["code"] == -32602
    assert (
        initialize(hello(2, info={"name": "x"}), AgentCapabilities(latest=2))["error"]["code"]
        == -32602
    )
    assert initialize(hello(3), AgentCapabilities(latest=2))["result"]["protocolVersion"] == 2


def test_what_a_client_of_the_draft_can_do_counts_in_version_1_too() -> None:
    able = {"elicitation": {"form": {}}}
    told = ClientCapabilities.of(hello(2, info=INFO, capabilities=able)["params"])
    assert (told.name, told.forms, told.files) == ("test", True, False)


def test_a_connection_speaks_one_version() -> None:
    offer, before = AgentCapabilities(latest=2), hello(2, info=INFO)["params"]
    assert initialize(hello(1), offer, before)["error"]["code"] == -32600
    assert "result" in initialize(hello(2, info=INFO), offer, before)


@pytest.mark.slow
async def test_who_asks_before_it_greets_speaks_version_1_to_the_end(tmp_path: Path) -> None:
    editor = FakeEditor()
    async with editor.spawned(CROW, "acp", "--protocol", "2", cwd=tmp_path, initialize=False):
        assert "result" in await editor.wire.request("session/list", {})
        refused = await editor.wire.request("initialize", hello(2, info=INFO)["params"])
        assert refused["error"]["code"] == -32600
        assert "another version already" in refused["error"]["data"]["details"]
        await editor.initialize()
        session = await editor.new_session(tmp_path)
        assert (await editor.prompt(session, "Hello")).stop_reason == "end_turn"


def test_what_can_be_done_is_said_by_objects() -> None:
    able: Any = {"audio": True, "mcp": True, "archive": True, "prompted": True}
    offer = AgentCapabilities(store=True, login=["crow", "login"], latest=2, **able)
    able = {"auth": {"terminal": {}}}
    result = initialize(hello(2, info=INFO, capabilities=able), offer)["result"]
    assert result["capabilities"]["session"] == {
        "prompt": {"embeddedContext": {}, "image": {}, "audio": {}},
        "additionalDirectories": {},
        "fork": {},
        "title": {},
        "mcp": {"stdio": {}, "http": {}, "acp": {}},
        "delete": {},
        "status": {},
        "archive": {},
        "systemPrompt": {"mode": {"override": {}}},
    }
    assert [(m["methodId"], m["type"]) for m in result["authMethods"]] == [
        ("environment", "agent"),
        ("login", "terminal"),
    ]
    assert all("id" not in method for method in result["authMethods"])


async def test_the_command_speaks_version_1_with_everyone_unless_it_is_told_otherwise(
    tmp_path: Path,
) -> None:
    editor = FakeEditor()
    async with editor.spawned(CROW, "acp", cwd=tmp_path, initialize=False):
        assert (await editor.initialize(2)).protocol_version == 1
        await editor.new_session(tmp_path)


@pytest.mark.slow
async def test_the_command_speaks_version_1_with_who_asks_for_it_also_where_it_could_more(
    tmp_path: Path,
) -> None:
    editor = FakeEditor()
    async with editor.spawned(CROW, "acp", "--protocol", "2", cwd=tmp_path):
        assert editor.greeting is not None
        assert editor.greeting.protocol_version == 1
        session = await editor.new_session(tmp_path)
        assert (await editor.prompt(session, "Run `echo hi`")).stop_reason == "end_turn"


@pytest.mark.slow
async def test_a_whole_conversation_with_the_command(draft: Any, tmp_path: Path) -> None:
    first, later = draft(), draft()
    command = (CROW, "acp", "--protocol", "2", "--allow", "Bash(echo *)")
    async with first.spawned(*command, cwd=tmp_path):
        assert first.greeting.info.name == "crow"
        session = await first.new_session(tmp_path)
        assert (await first.turn(session, "Create a file called test.txt"))["usage"]
        assert (tmp_path / "test.txt").exists()
        assert first.asked[0]["subject"]["type"] == "tool_call"
        await first.turn(session, "Run `echo hi`")
        (terminal,) = first.terminals().values()
        assert (terminal["text"], terminal["exitStatus"]) == ("hi\n", {"exitCode": 0})
        await first.prompt(session, "Run `sleep 60`")
        await first.saw("state_update", state="requires_action")
        await first.connection.cancel_session(session)
        await first.wire.until(lambda: len(first.idles()) == 3)
        assert first.idles()[-1]["stopReason"] == "cancelled"
        assert first.updates("usage_update")
        assert first.updates("available_commands_update")
    async with later.spawned(*command, cwd=tmp_path):
        client = later.connection
        (info,) = (await client.list_sessions(str(tmp_path))).sessions
        assert info.title == "Create a file called test.txt"
        resumed = await client.resume_session(session, str(tmp_path), replay_from={"type": "start"})
        said = [update["messageId"] for update in later.updates("user_message")]
        assert said == [update["messageId"] for update in first.updates("user_message")]
        assert [card["name"] for card in later.cards()] == [c["name"] for c in first.cards()]
        offered = [option.config_id for option in resumed.config_options or ()]
        assert offered == ["mode", "model", "auto_compact"]
        answer = await client.set_config_option("mode", session, "plan")
        chosen = {option.config_id: option.current_value for option in answer.config_options}
        assert chosen["mode"] == "plan"
        await later.saw("config_option_update")
        for value, kind in (("nowhere", "id"), (True, "boolean"), ("plan", "_odd")):
            params = {"sessionId": session, "configId": "mode", "value": value, "type": kind}
            refused = await later.wire.request("session/set_config_option", params)
            assert refused["error"]["code"] == -32602, kind
        forked = (await client.fork_session(session, str(tmp_path))).session_id
        await client.delete_session(forked)
        assert (await later.wire.request("auth/status"))["result"]["state"] == "not_required"
        known = await later.wire.request("session/status", {"sessionId": session})
        assert known["result"] == {"status": "open"}
        await client.login("environment")
        await client.logout()
        for gone in ("authenticate", "session/load", "session/set_mode"):
            answer = await later.wire.request(gone, {"sessionId": session})
            assert answer["error"]["code"] == -32601, gone
        await later.wire.write(b'[{"jsonrpc":"2.0","id":1,"method":"session/list"}]\n')
        await client.close_session(session)
        batch = [m for m in later.wire.received if m.get("id", 0) is None]
        assert [m["error"]["code"] for m in batch] == [-32600]
        assert not later.updates("current_mode_update")


async def test_initialize_is_answered_before_anything_is_imported(tmp_path: Path) -> None:
    line = json.dumps(hello(2, info=INFO)).encode() + b"\n"
    probe = (
        "import sys, os; from crow.acp.initialize import AgentCapabilities; from crow.acp.initialize import initialize; import json; "
        "initialize(json.loads(sys.argv[1]), AgentCapabilities(latest=2)); "
        "print([n for n in ('acp', 'pydantic', 'asyncio') if n in sys.modules])"
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", probe, line.decode()), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert out.decode().strip() == "[]"


async def test_a_server_that_is_reached_in_an_unknown_way_is_refused(tmp_path: Path) -> None:
    draft = Draft()
    async with draft.connected(Agent(ScriptedModel())):
        server = {"type": "pigeon", "name": "a", "loft": 7}
        answer = await draft.wire.request(
            "session/new", {"cwd": str(tmp_path), "mcpServers": [server]}
        )
    assert answer["error"]["code"] == -32602
    assert answer["error"]["data"]["details"] == (
        "mcpServers: there is no 'pigeon', only stdio, http, sse, acp"
    )
