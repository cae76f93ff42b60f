"""``crow acp`` driven by the official TypeScript library, and its messages by the official schema."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.npm import told_by

from crow.testing import official_schema

HERE = Path(__file__).with_name("node")
SCHEMA = HERE / "node_modules/@agentclientprotocol/sdk/schema/v1"
DRAFTED = {"session/status", "auth/status", "session/archive", "session/unarchive"}
CROW = str(Path(sys.executable).with_name("crow"))

pytestmark = pytest.mark.node


@pytest.mark.slow
@pytest.mark.rule("conformance with others' clients")
async def test_the_typescript_library_drives_every_method(
    node: str, tmp_path: Path, routes: frozenset[str]
) -> None:
    drafted = sorted(routes & DRAFTED)
    told = await told_by(
        node,
        HERE / "client.mjs",
        tmp_path,
        CROW,
        "acp",
        "--allow",
        "Bash",
        DRAFTED=" ".join(drafted),
    )
    first, later = told["first"], told["later"]
    session = first.pop("sessionId")
    assert first == {
        "protocol": 1,
        "methods": ["agent", "terminal"],
        "options": ["mode", "model"],
        "created": "end_turn",
        "wasAsked": ["Write"],
        "fileIsThere": True,
        "completed": 1,
        "mode": "default",
        "linked": "end_turn",
        "cancelled": "cancelled",
        "outOfTurn": 0,
        "again": "end_turn",
        "listed": [[session, "Create a file called test.txt"]],
        "kinds": first["kinds"],
        "errors": [-32002, -32602, -32601],
        "status": 0,
    }
    assert {"tool_call", "tool_call_update", "agent_message_chunk", "current_mode_update"} <= set(
        first["kinds"]
    )
    assert later == {
        "replayed": later["replayed"],
        "names": ["Write", "Read", "Bash", "Read"],
        "resumed": 0,
        "rejected": "end_turn",
        "otherIsThere": False,
        "left": 1,
        "title": "A file",
        "steered": "promptRequired",
        "told": dict.fromkeys(drafted, "object"),
        "authenticated": {},
        "loggedOut": {},
        "status": 0,
    }
    assert {"user_message_chunk", "tool_call", "usage_update"} <= set(later["replayed"])
    assert routes - set(told["driven"]) == set()


ALONE = """
import asyncio
from crow import Agent, run_agent
from crow.extensions import McpHook
from crow.testing import ScriptedModel, call

model = ScriptedModel(call("mcp__desk__where"), "Line 7.")
asyncio.run(run_agent(Agent(model, hooks=[McpHook(wait=50)])))
"""


@pytest.mark.slow
async def test_the_typescript_library_serves_tools_of_its_own(node: str, tmp_path: Path) -> None:
    (tmp_path / "alone.py").write_text(ALONE, "utf-8")
    told = await told_by(node, HERE / "mcp.mjs", tmp_path, sys.executable, "alone.py")
    cards = told.pop("cards")
    assert told == {
        "announced": True,
        "stopReason": "end_turn",
        "asked": ["server/discover", "tools/list", "tools/call"],
        "status": 0,
    }
    assert any("looking" in str(card.get("content")) for card in cards)
    assert (cards[-1]["status"], "line 7" in str(cards[-1]["content"])) == ("completed", True)


@pytest.mark.parametrize(
    "message, method",
    [
        ({"result": {"protocolVersion": "one"}}, "initialize"),
        ({"result": {"stopReason": "tired"}}, "session/prompt"),
        ({"method": "session/update", "params": {"sessionId": "s", "update": {}}}, None),
        ({"method": "terminal/create", "params": {"sessionId": "s"}}, None),
        ({"result": {}}, "session/fork"),
        ({"error": {"code": "x", "message": "y"}}, "session/prompt"),
    ],
)
@pytest.mark.usefixtures("node")
def test_the_official_schema_refuses_what_does_not_fit(
    monkeypatch: pytest.MonkeyPatch, message: dict[str, Any], method: str | None
) -> None:
    monkeypatch.setenv(official_schema.VARIABLE, str(SCHEMA))
    assert "the official schema refuses it" in (official_schema.fault(message, method) or "")


def test_the_lock_names_no_registry() -> None:
    lock = json.loads((HERE / "package-lock.json").read_text("utf-8"))
    assert not [name for name, each in lock["packages"].items() if "resolved" in each]
    assert all("integrity" in each for name, each in lock["packages"].items() if name)
