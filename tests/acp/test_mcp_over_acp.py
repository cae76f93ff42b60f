"""MCP servers that the client has itself: their messages go over its own connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from crow import Agent
from crow.extensions import McpHook
from crow.testing import FakeEditor, ScriptedModel, call

VERSION = "2026-07-28"
TOOL = {
    "name": "where",
    "description": "Where the cursor is",
    "inputSchema": {"type": "object", "properties": {"file": {"type": "string"}}},
}
Message = dict[str, Any]


class Provider:
    """A client's server with one tool. ``asked`` are the requests of MCP that it got."""

    def __init__(self, editor: FakeEditor) -> None:
        self.editor = editor
        self.asked: list[Message] = []
        self.answers = asyncio.Event()
        self.answers.set()
        self.refusal: Message | None = None

    async def serve(self) -> None:
        """Answer all there are, and those to come."""
        while True:
            await self.editor.wire.until(lambda: len(self.requests) > len(self.asked))
            request = self.requests[len(self.asked)]
            self.asked.append(request["params"])
            await self.answer(request["id"], request["params"])

    @property
    def requests(self) -> list[Message]:
        """What came over the wire."""
        return [m for m in self.editor.wire.received if m.get("method") == "mcp/message"]

    async def answer(self, number: int, asked: Message) -> None:
        """Answer one."""
        if self.refusal is not None:
            await self.editor.wire.send({"jsonrpc": "2.0", "id": number, "error": self.refusal})
            return
        match asked["method"]:
            case "server/discover":
                versions = {"supportedVersions": [VERSION], "capabilities": {"tools": {}}}
                outcome: Message = {"result": {"resultType": "complete", **versions}}
            case "tools/list":
                outcome = {"result": {"resultType": "complete", "tools": [TOOL]}}
            case "tools/call":
                outcome = await self.call(asked)
            case method:
                outcome = {"error": {"code": -32601, "message": f"no {method}"}}
        reply = {"jsonrpc": "2.0", "id": number, "result": outcome}
        await self.editor.wire.send(reply)

    async def call(self, asked: Message) -> Message:
        """Say how far it is, and then what comes of it."""
        token = asked["params"]["_meta"]["progressToken"]
        progress = {"progressToken": token, "progress": 1, "message": "looking"}
        told = {"serverId": asked["serverId"], "requestId": asked["requestId"]}
        told |= {"method": "notifications/progress", "params": progress}
        await self.editor.wire.send({"jsonrpc": "2.0", "method": "mcp/message", "params": told})
        await self.answers.wait()
        if asked["params"]["arguments"].get("file") == "none":
            return {"error": {"code": -32602, "message": "no such file"}}
        content = [{"type": "text", "text": "line 7"}]
        return {"result": {"resultType": "complete", "content": content, "isError": False}}


@asynccontextmanager
async def provided(*script: Any) -> AsyncGenerator[tuple[FakeEditor, Provider]]:
    """An editor with a server of its own."""
    editor = FakeEditor(silent={"mcp/message"}, notices=True)
    provider = Provider(editor)
    async with editor.connected(Agent(llm=ScriptedModel(*script), hooks=[McpHook(wait=50)])):
        serving = asyncio.create_task(provider.serve())
        try:
            yield editor, provider
        finally:
            serving.cancel()


async def opened(editor: FakeEditor, cwd: Path) -> str:
    """A session with that server."""
    server = {"type": "acp", "name": "desk", "serverId": "desk-1"}
    params = {"cwd": str(cwd), "mcpServers": [server]}
    return (await editor.wire.request("session/new", params))["result"]["sessionId"]


async def test_a_tool_of_the_clients_own_server_is_called_over_its_connection(
    tmp_path: Path,
) -> None:
    script = [call("mcp__desk__where", file="a.py"), call("mcp__desk__where", file="none"), "there"]
    async with provided(*script) as (editor, provider):
        session = await opened(editor, tmp_path)
        await editor.prompt(session, "Where am I?")
        cards = editor.cards()
        greeting = editor.wire.received[0]["result"]
    assert greeting["agentCapabilities"]["mcpCapabilities"]["acp"] is True
    assert [card["status"] for card in cards] == ["completed", "failed"]
    assert "line 7" in str(cards[0]["content"])
    assert "no such file" in str(cards[1]["content"])
    assert [each["method"] for each in provider.asked] == [
        *("server/discover", "tools/list", "tools/call", "tools/call"),
    ]
    assert {each["serverId"] for each in provider.asked} == {"desk-1"}
    assert len({each["requestId"] for each in provider.asked}) == len(provider.asked)
    versions = [m["params"]["_meta"] for m in provider.asked]
    assert all(meta["io.modelcontextprotocol/protocolVersion"] == VERSION for meta in versions)


async def test_what_the_server_says_meanwhile_is_shown(tmp_path: Path) -> None:
    async with provided(call("mcp__desk__where"), "there") as (editor, provider):
        session = await opened(editor, tmp_path)
        provider.answers.clear()
        prompting = asyncio.create_task(editor.prompt(session, "Where am I?"))
        await editor.wire.until(lambda: "looking" in str(editor.updates("tool_call_update")))
        provider.answers.set()
        await prompting


async def test_cancelling_takes_the_request_back(tmp_path: Path) -> None:
    async with provided(call("mcp__desk__where")) as (editor, provider):
        session = await opened(editor, tmp_path)
        provider.answers.clear()
        prompting = asyncio.create_task(editor.prompt(session, "Where am I?"))
        await editor.wire.until(lambda: any(e["method"] == "tools/call" for e in provider.asked))
        await editor.cancel(session)
        stopped = await prompting
        await editor.wire.until(
            lambda: any(m.get("method") == "$/cancel_request" for m in editor.wire.received)
        )
        (taken,) = [m for m in editor.wire.received if m.get("method") == "$/cancel_request"]
        calls = [m for m in provider.requests if m["params"]["method"] == "tools/call"]
    assert stopped.stop_reason == "cancelled"
    assert taken["params"]["requestId"] == calls[0]["id"]


async def test_a_server_that_the_client_does_not_know_any_more_is_told_of(tmp_path: Path) -> None:
    async with provided("fine") as (editor, provider):
        provider.refusal = {"code": -33001, "message": "no server is registered"}
        session = await opened(editor, tmp_path)
        stopped = await editor.prompt(session, "Where am I?")
        told = [notice["title"] for notice in editor.updates("notice")]
    assert stopped.stop_reason == "end_turn"
    assert any("'desk'" in title and "no server is registered" in title for title in told)
