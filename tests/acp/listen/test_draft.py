"""Version 2 of the protocol, a draft, with a client that comes back in the middle of a turn."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect

HELLO = {"protocolVersion": 2, "info": {"name": "test", "version": "1"}, "capabilities": {}}


class Client:
    """Speaks over a socket by hand; ``updates`` are those of all sessions."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.updates: list[dict[str, Any]] = []

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request, and wait for its result."""
        request = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
        await self.socket.send(json.dumps(request))
        while "result" not in (message := await self.next()):
            assert "error" not in message, message
        return message["result"]

    async def next(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(await self.socket.recv())
        if message.get("method") == "session/update":
            self.updates.append(message["params"]["update"])
        return message

    def states(self) -> list[str]:
        told = [each for each in self.updates if each["sessionUpdate"] == "state_update"]
        return [each["state"] for each in told]


@pytest.mark.slow
async def test_a_turn_of_the_draft_goes_on_too(start: Any, tmp_path: Path, waiting: str) -> None:
    served = start("--protocol", "2", "--allow", "Bash")
    place = {"cwd": str(tmp_path), "mcpServers": []}
    async with connect(served.ws) as socket:
        first = Client(socket)
        assert (await first.ask("initialize", HELLO))["protocolVersion"] == 2
        session = (await first.ask("session/new", place))["sessionId"]
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": waiting}]}
        sent = await first.ask("session/prompt", prompt)
        while not (tmp_path / "on").exists():  # noqa: ASYNC110 - no event tells of it
            await asyncio.sleep(0.02)
    async with connect(served.ws) as socket:
        later = Client(socket)
        await later.ask("initialize", HELLO)
        again = {"sessionId": session, **place, "replayFrom": {"type": "start"}}
        await later.ask("session/resume", again)
        (tmp_path / "go").touch()
        while later.states() != ["running", "idle"]:
            await later.next()
    (said,) = [each for each in later.updates if each["sessionUpdate"] == "user_message"]
    assert said["messageId"] == sent["messageId"]
    assert "the end" in json.dumps(later.updates)


@pytest.mark.slow
async def test_the_pen_is_taken_in_the_draft_too(start: Any, tmp_path: Path) -> None:
    served = start("--protocol", "2")
    place = {"cwd": str(tmp_path), "mcpServers": []}
    async with connect(served.ws) as one, connect(served.ws) as other:
        holder, watcher = Client(one), Client(other)
        for client in (holder, watcher):
            await client.ask("initialize", HELLO)
        session = (await holder.ask("session/new", place))["sessionId"]
        await holder.ask("session/prompt", said(session, "Hello"))
        await watcher.ask("session/resume", {"sessionId": session, **place})
        while "has the pen" not in str(watcher.updates):
            await watcher.next()
        with pytest.raises(AssertionError, match="test has the pen of this session"):
            await watcher.ask("session/prompt", said(session, "Hello"))
        await watcher.ask("session/prompt", said(session, "/pen"))
        while "You have the pen" not in str(watcher.updates):
            await watcher.next()
        while "has taken the pen" not in str(holder.updates):
            await holder.next()


@pytest.mark.slow
async def test_who_watches_can_end_no_call_and_no_command(
    start: Any, tmp_path: Path, waiting: str
) -> None:
    served = start("--protocol", "2", "--allow", "Bash")
    place = {"cwd": str(tmp_path), "mcpServers": []}
    async with connect(served.ws) as one, connect(served.ws) as other:
        holder, watcher = Client(one), Client(other)
        for client in (holder, watcher):
            await client.ask("initialize", HELLO)
        session = (await holder.ask("session/new", place))["sessionId"]
        await watcher.ask("session/resume", {"sessionId": session, **place})
        await holder.ask("session/prompt", said(session, waiting))
        call = {"sessionId": session, "toolCallId": await running_call(watcher)}
        terminal = {"sessionId": session, "terminalId": call["toolCallId"]}
        for method, params in (("tool_call/cancel", call), ("terminal/cancel", terminal)):
            with pytest.raises(AssertionError, match="test has the pen of this session"):
                await watcher.ask(method, params)
        await watcher.ask("_session/take_pen", {"sessionId": session})
        await watcher.ask("tool_call/cancel", call)
        while watcher.states()[-1:] != ["idle"]:
            await watcher.next()
        assert "'status': 'cancelled'" in str(watcher.updates)


async def running_call(client: Client) -> str:
    """The id of the call that runs, as soon as there is one."""
    while True:
        for each in client.updates:
            if each.get("status") == "in_progress":
                return each["toolCallId"]
        await client.next()


def said(session: str, text: str) -> dict[str, Any]:
    """A prompt."""
    return {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
