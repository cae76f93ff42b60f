"""Server-sent events as a client of its own would read them: ids, reconnecting, keeping order."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
Event = tuple[int, dict[str, Any]]


class Client:
    """Speaks HTTP by hand."""

    def __init__(self, http: httpx2.AsyncClient, url: str) -> None:
        self.http = http
        self.url = url
        self.headers: dict[str, str] = {}

    async def initialize(self) -> None:
        answer = await self.http.post(self.url, json=HELLO)
        self.headers = {"Acp-Connection-Id": answer.headers["acp-connection-id"]}

    async def send(self, number: int, method: str, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        named = {"Acp-Session-Id": params["sessionId"]} if method == "session/prompt" else {}
        answer = await self.http.post(self.url, json=message, headers={**self.headers, **named})
        assert (answer.status_code, answer.content) == (202, b"")

    @asynccontextmanager
    async def stream(self, **headers: str) -> AsyncGenerator[AsyncIterator[Event]]:
        named = {**self.headers, **headers, "Accept": "text/event-stream"}
        async with self.http.stream("GET", self.url, headers=named) as response:
            assert response.status_code == 200
            assert response.headers["content-type"].startswith("text/event-stream")
            yield events(response)


async def events(response: httpx2.Response) -> AsyncGenerator[Event]:
    number = 0
    async for line in response.aiter_lines():
        name, _, value = line.partition(": ")
        if name == "id":
            number = int(value)
        elif name == "data":
            yield number, json.loads(value)


async def until(stream: AsyncIterator[Event], number: int) -> list[Event]:
    """The events up to the answer to a request."""
    found: list[Event] = []
    async for event in stream:
        found.append(event)
        if event[1].get("id") == number and "method" not in event[1]:
            break
    return found


@pytest.fixture
async def client(server: Any) -> AsyncGenerator[Client]:
    async with httpx2.AsyncClient(timeout=50) as http:
        client = Client(http, server.http)
        await client.initialize()
        yield client
        await http.delete(server.http, headers=client.headers)


async def test_a_stream_goes_on_behind_the_last_event_that_was_read(
    client: Client, tmp_path: Path
) -> None:
    await client.send(1, "session/new", cwd=str(tmp_path), mcpServers=[])
    async with client.stream() as stream:
        session = (await until(stream, 1))[-1][1]["result"]["sessionId"]
    await client.send(2, "session/prompt", sessionId=session, prompt=[text("Run `echo one`")])
    async with client.stream(**{"Acp-Session-Id": session}) as stream:
        first = await until(stream, 2)
    assert [number for number, _ in first] == list(range(1, len(first) + 1))
    async with client.stream(**{"Acp-Session-Id": session, "Last-Event-ID": "3"}) as stream:
        assert await until(stream, 2) == first[3:]
        await client.send(3, "session/prompt", sessionId=session, prompt=[text("Run `echo two`")])
        again = await until(stream, 3)
    assert again[0][0] == len(first) + 1
    async with client.stream(**{"Acp-Session-Id": session, "Last-Event-ID": "0"}) as stream:
        assert await until(stream, 3) == [*first, *again]


async def test_the_answer_to_a_prompt_is_the_last_event_of_its_turn(
    client: Client, tmp_path: Path
) -> None:
    await client.send(1, "session/new", cwd=str(tmp_path), mcpServers=[])
    async with client.stream() as stream:
        session = (await until(stream, 1))[-1][1]["result"]["sessionId"]
    await client.send(2, "session/prompt", sessionId=session, prompt=[text("Run `echo one`")])
    async with client.stream(**{"Acp-Session-Id": session}) as stream:
        *updates, (_number, answer) = await until(stream, 2)
        assert answer["result"]["stopReason"] == "end_turn"
        kinds = {event["params"]["update"]["sessionUpdate"] for _, event in updates}
        assert kinds >= {"tool_call", "tool_call_update", "agent_message_chunk", "usage_update"}


async def test_the_latest_reader_has_the_stream(client: Client) -> None:
    async with client.stream() as first, client.stream() as second:
        await client.send(1, "session/list")
        assert (await until(second, 1))[-1][1]["id"] == 1
        assert [event async for event in first] == []


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}
