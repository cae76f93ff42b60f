"""A model's server that speaks four protocols, for agents that ask about more than a conversation."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any


class Double:
    """Calls the first tool in ``wants`` that it is offered with a prompt, once; else it says DONE.

    ``wants`` has arguments by the names of tools. ``hangs``: what is
    asked with tools stays unanswered. ``asked`` has the bodies of requests with tools, ``news`` is
    set by each of them.
    """

    def __init__(self) -> None:
        self.wants: dict[str, dict[str, Any]] = {}
        self.hangs = False
        self.asked: list[dict[str, Any]] = []
        self.news = asyncio.Event()
        self.url = ""
        self._numbers = itertools.count(1)
        self._open: set[asyncio.StreamWriter] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        self._open.add(writer)
        try:
            while True:
                path, body = await received(reader)
                reply = self._reply(path, body)
                if reply is None:
                    await reader.read()
                    return
                kind = "application/json" if reply.startswith("{") else "text/event-stream"
                head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n"
                data = reply.encode()
                writer.write(f"{head}content-length: {len(data)}\r\n\r\n".encode() + data)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()

    def close(self) -> None:
        """End every connection."""
        for writer in self._open:
            writer.close()

    def _reply(self, path: str, body: dict[str, Any]) -> str | None:
        wire = next((each for name, each in WIRES.items() if name in path), None)
        if wire is None:
            return "{}"
        tools = wire.tools(body)
        if tools:
            self.asked.append(body)
            self.news.set()
            if self.hangs:
                return None
        name = next((each for each in self.wants if each in tools and asks(body)), "")
        said = wire.say(name, self.wants.get(name, {}), f"call_{next(self._numbers)}")
        if name:
            self.wants = {}
        if path.endswith(":generateContent"):
            return json.dumps(said[0])
        return "".join(event(each) for each in said)


def asks(body: dict[str, Any]) -> bool:
    """True for what a prompt of a test asks, and not the agent by itself beside it."""
    said = next((body[key] for key in ("messages", "input", "contents") if key in body), [])
    return "Do it" in json.dumps(said[-2:])  # some remind the model of something behind it


def event(value: dict[str, Any]) -> str:
    """A server-sent event, named where its protocol names it."""
    named = f"event: {value['type']}\n" if "type" in value else ""
    return f"{named}data: {json.dumps(value)}\n\n"


async def received(reader: asyncio.StreamReader) -> tuple[str, dict[str, Any]]:
    """The path and the JSON of a request."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1])
        for line in (*head.splitlines(), b"content-length: 0")
        if line.lower().startswith(b"content-length:")
    )
    body = json.loads(await reader.readexactly(length) or b"{}")
    return head.split(b" ")[1].decode(), body


class Messages:
    """Anthropic's protocol."""

    def tools(self, body: dict[str, Any]) -> set[str]:
        """The names of the tools on offer."""
        return {str(each.get("name")) for each in body.get("tools", ())}

    def say(self, tool: str, args: dict[str, Any], number: str) -> list[dict[str, Any]]:
        """A call, or DONE, as events."""
        usage = {"input_tokens": 9, "output_tokens": 9}
        begun: dict[str, Any] = {"type": "text", "text": ""}
        part, reason = {"type": "text_delta", "text": "DONE"}, "end_turn"
        if tool:
            begun = {"type": "tool_use", "id": f"toolu_{number}", "name": tool, "input": {}}
            part = {"type": "input_json_delta", "partial_json": json.dumps(args)}
            reason = "tool_use"
        message = {"id": "m", "type": "message", "role": "assistant", "model": "double"}
        start = {**message, "content": [], "stop_reason": None, "usage": usage}
        return [
            {"type": "message_start", "message": start},
            {"type": "content_block_start", "index": 0, "content_block": begun},
            {"type": "content_block_delta", "index": 0, "delta": part},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage},
            {"type": "message_stop"},
        ]


class Responses:
    """OpenAI's newer protocol."""

    def tools(self, body: dict[str, Any]) -> set[str]:
        """The names of the tools on offer."""
        return {str(each.get("name")) for each in body.get("tools", ())}

    def say(self, tool: str, args: dict[str, Any], number: str) -> list[dict[str, Any]]:
        """A call, or DONE, as events."""
        text = {"type": "output_text", "text": "DONE", "annotations": []}
        item: dict[str, Any] = {
            "type": "message",
            "id": "m",
            "role": "assistant",
            "content": [text],
        }
        if tool:
            item = {"type": "function_call", "id": "fc", "call_id": number, "name": tool}
            item["arguments"] = json.dumps(args)
        if "input" in args:  # a tool whose argument is a text
            item = {"type": "custom_tool_call", "id": "fc", "call_id": number, "name": tool, **args}
        counted = {"input_tokens": 9, "output_tokens": 9, "total_tokens": 18}
        response = {"id": "r", "object": "response", "output": [], "status": "in_progress"}
        done = {**response, "status": "completed", "output": [item], "usage": counted}
        return [
            {"type": "response.created", "response": response},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": done},
        ]


class Completions:
    """OpenAI's older protocol."""

    def tools(self, body: dict[str, Any]) -> set[str]:
        """The names of the tools on offer."""
        return {each["function"]["name"] for each in body.get("tools") or ()}

    def say(self, tool: str, args: dict[str, Any], number: str) -> list[dict[str, Any]]:
        """A call, or DONE, as events."""
        delta: dict[str, Any] = {"role": "assistant", "content": "DONE"}
        if tool:
            function = {"name": tool, "arguments": json.dumps(args)}
            call = {"index": 0, "id": number, "type": "function", "function": function}
            delta = {"role": "assistant", "content": None, "tool_calls": [call]}
        same = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "double"}
        end = "tool_calls" if tool else "stop"
        counted = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
        return [
            {**same, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {**same, "choices": [{"index": 0, "delta": {}, "finish_reason": end}]},
            {**same, "choices": [], "usage": counted},
        ]


class Gemini:
    """Google's protocol."""

    def tools(self, body: dict[str, Any]) -> set[str]:
        """The names of the tools on offer."""
        declared = [each for tool in body.get("tools", ()) for each in tool["functionDeclarations"]]
        return {each["name"] for each in declared}

    def say(self, tool: str, args: dict[str, Any], number: str) -> list[dict[str, Any]]:
        """A call, or DONE, as one event."""
        part = {"functionCall": {"name": tool, "args": args}} if tool else {"text": "DONE"}
        content = {"role": "model", "parts": [part]}
        counted = {"promptTokenCount": 9, "candidatesTokenCount": 9, "totalTokenCount": 18}
        candidate = {"content": content, "finishReason": "STOP", "index": 0}
        return [{"candidates": [candidate], "usageMetadata": counted}]


WIRES: dict[str, Any] = {
    "/messages": Messages(),
    "/responses": Responses(),
    "/chat/completions": Completions(),
    "enerateContent": Gemini(),
}
"""The protocols, by a part of the path."""


@asynccontextmanager
async def double() -> AsyncIterator[Double]:
    """The server at work."""
    found = Double()
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0, limit=2**26)
    port = server.sockets[0].getsockname()[1]
    found.url = f"http://127.0.0.1:{port}"
    try:
        yield found
    finally:
        server.close()
        found.close()
