"""A session that another process has open is there: clients are told so, and by whom."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crow import Agent
from crow.extensions.persistence import PersistenceHook
from crow.testing import FakeEditor, ScriptedModel


@pytest.mark.parametrize("method", ["session/load", "session/resume", "session/delete"])
async def test_a_session_in_use_is_not_said_to_be_gone(tmp_path: Path, method: str) -> None:
    """The kernel holds the lock for an open file, not for a process: two agents will do here."""
    holder, other = FakeEditor(), FakeEditor()
    agents = [
        Agent(llm=ScriptedModel("Hi."), hooks=[PersistenceHook(tmp_path / "crow.db")])
        for _ in range(2)
    ]
    async with holder.connected(agents[0]), other.connected(agents[1]):
        session = await holder.new_session(tmp_path)
        await holder.prompt(session, "Hello")
        params: dict[str, Any] = {"cwd": str(tmp_path), "mcpServers": [], "sessionId": session}
        answered = await other.wire.request(method, params)
        gone = await other.wire.request("session/load", {**params, "sessionId": "nonesuch"})
        await holder.connection.close_session(session)
        again = await other.wire.request(method, params)
    assert answered["error"]["code"] == -32600
    assert "in use by another process" in answered["error"]["message"]
    assert "not found" not in str(answered["error"]).lower()
    assert gone["error"]["code"] == -32002
    assert "error" not in again
