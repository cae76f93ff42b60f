"""``crow acp``: the whole command behind an editor's protocol."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.cli.conftest import Crow

from crow.testing.endpoint import Endpoint, answer


class Editor:
    """Just enough of an editor."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.stdin, self.stdout = process.stdin, process.stdout
        self.updates: list[dict[str, Any]] = []

    async def request(self, number: int, method: str, **params: Any) -> dict[str, Any]:
        """Ask something and wait for its answer."""
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.stdin.write(json.dumps(message).encode() + b"\n")
        while line := await self.stdout.readline():
            told = json.loads(line)
            if told.get("id") == number:
                return told
            self.updates.append(told["params"])
        raise AssertionError(f"no answer to {method}")


async def test_an_editor_gets_an_answer_from_the_model_of_the_environment(
    crow: Crow, endpoint: Endpoint
) -> None:
    endpoint.play(answer("Hello editor."))
    process = await crow.start("acp", stdin=asyncio.subprocess.PIPE)
    editor = Editor(process)
    greeting = await editor.request(1, "initialize", protocolVersion=1, clientCapabilities={})
    assert greeting["result"]["agentInfo"]["name"] == "crow"
    opened = await editor.request(2, "session/new", cwd=str(crow.cwd), mcpServers=[])
    session_id = opened["result"]["sessionId"]
    prompt = [{"type": "text", "text": "hello"}]
    ended = await editor.request(3, "session/prompt", sessionId=session_id, prompt=prompt)
    assert ended["result"]["stopReason"] == "end_turn"
    text = "".join(
        update["update"]["content"]["text"]
        for update in editor.updates
        if update["update"]["sessionUpdate"] == "agent_message_chunk"
    )
    assert text == "Hello editor."
    editor.stdin.close()
    assert await process.wait() == 0
    listed = await crow("sessions", "--json")
    assert listed.events[0]["id"] == session_id


@pytest.mark.slow
async def test_what_is_wrong_in_the_settings_goes_to_the_log_and_the_editor_is_served(
    crow: Crow, endpoint: Endpoint
) -> None:
    (crow.cwd / ".crow").mkdir()
    (crow.cwd / ".crow/settings.json").write_text("{", "utf-8")
    process = await crow.start("acp", stdin=asyncio.subprocess.PIPE)
    editor = Editor(process)
    await editor.request(1, "initialize", protocolVersion=1, clientCapabilities={})
    opened = await editor.request(2, "session/new", cwd=str(crow.cwd), mcpServers=[])
    assert "sessionId" in opened["result"]
    _, err = await process.communicate(b"")
    assert b"settings.json: line 1: no JSON" in err
