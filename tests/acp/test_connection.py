"""JSON-RPC with a client: requests are taken back, and what goes wrong is answered."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from crow import Agent
from crow.core.session import Session
from crow.testing import FakeEditor, ScriptedModel, delay

FOREVER = 3600


def cancelling(request_id: object) -> dict[str, Any]:
    params = {"requestId": request_id}
    return {"jsonrpc": "2.0", "method": "$/cancel_request", "params": params}


async def test_a_request_that_is_taken_back_is_answered_once(tmp_path: Path) -> None:
    model = ScriptedModel(["half a ", delay(FOREVER), "sentence"], "again")
    editor = FakeEditor()
    async with editor.connected(Agent(llm=model)):
        session = await editor.new_session(tmp_path)
        said = {"sessionId": session, "prompt": [{"type": "text", "text": "Go"}]}
        turn = asyncio.create_task(editor.wire.request("session/prompt", said))
        await editor.saw("agent_message_chunk")
        (request_id,) = {m["id"] for m in editor.wire.sent if m.get("method") == "session/prompt"}
        for nobodys in (True, None, 17, [request_id], "another"):
            await editor.wire.send(cancelling(nobodys))
        await editor.wire.send(cancelling(request_id))
        error = {"code": -32800, "message": "Request cancelled"}
        assert await turn == {"jsonrpc": "2.0", "id": request_id, "error": error}
        await editor.wire.send(cancelling(request_id))
        assert (await editor.prompt(session, "And now?")).stop_reason == "end_turn"
        assert len([m for m in editor.wire.received if m.get("id") == request_id]) == 1


class BurningStore:
    """A store that fails in a way that no store should."""

    async def sessions(self, **_: Any) -> Any:
        raise RuntimeError("the disk is on fire")

    def save(self, session: Session) -> None:
        """Nothing is stored."""


async def test_what_nobody_thought_of_is_answered_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    agent = Agent(llm=ScriptedModel("Hello."))
    agent.store = cast("Any", BurningStore())
    editor = FakeEditor()
    async with editor.connected(agent):
        reply = await editor.wire.request("session/list", {})
        details = {"details": "the disk is on fire"}
        assert reply["error"] == {"code": -32603, "message": "Internal error", "data": details}
        session = await editor.new_session(tmp_path)
        assert (await editor.prompt(session, "Hi")).stop_reason == "end_turn"
    assert "the disk is on fire" in caplog.text
