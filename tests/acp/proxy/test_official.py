"""An agent that speaks through the official library, behind Crow; the client is the library's, too."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from crow.testing import FakeEditor

AGENT = """
import asyncio
import acp
from acp.schema import AgentMessageChunk, PermissionOption, TextContentBlock, ToolCallUpdate

OPTIONS = [
    PermissionOption(option_id="a", name="Allow", kind="allow_once"),
    PermissionOption(option_id="r", name="Reject", kind="reject_once"),
]

class Example(acp.Agent):
    def on_connect(self, conn):
        self.client = conn

    async def initialize(self, protocol_version, client_capabilities=None, **_):
        return acp.InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd, mcp_servers=None, **_):
        return acp.NewSessionResponse(session_id="example")

    async def prompt(self, prompt, session_id, **_):
        for command in prompt[0].text.splitlines():
            call = ToolCallUpdate(
                tool_call_id=command, title=command, kind="execute", raw_input={"command": command}
            )
            said = await self.client.request_permission(
                session_id=session_id, tool_call=call, options=OPTIONS
            )
            text = TextContentBlock(type="text", text=f"[{command}: {said.outcome.model_dump()}]")
            chunk = AgentMessageChunk(session_update="agent_message_chunk", content=text)
            await self.client.session_update(session_id, chunk)
        return acp.PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id, **_):
        pass

asyncio.run(acp.run_agent(Example()))
"""


@pytest.mark.slow
async def test_an_agent_of_the_official_library_is_guarded(front: Any, play: Any) -> None:
    front.settings(permissions={"deny": ["Bash(rm:*)"], "allow": ["Bash(make *)"]})
    front.command = [sys.executable, "-c", AGENT]
    editor = FakeEditor()
    assert await play(editor, "rm -rf build\nmake test\ncurl example.org") == ["end_turn"]
    assert [each["toolCall"]["toolCallId"] for each in editor.asked] == ["curl example.org"]
    said = editor.text()
    assert said.count("'option_id': 'a'") == 2
    assert said.count("'option_id': 'r'") == 1
