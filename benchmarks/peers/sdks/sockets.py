"""A model's client of the least: one connection, chat completions, no library."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

TOOL = {
    "name": "Bash",
    "description": "Run a command.",
    "parameters": {
        "type": "object",
        "properties": {"command": {"type": "string"}},
        "required": ["command"],
    },
}
HEAD = (
    "POST {}/chat/completions HTTP/1.1\r\nhost: {}\r\n"
    "content-type: application/json\r\ncontent-length: {}\r\n\r\n"
)


class Model:
    """A conversation; `ask` streams a reply and adds it to ``messages``."""

    def __init__(self, prompt: str) -> None:
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
        self._address = urlsplit(os.environ["OPENAI_BASE_URL"])
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, told: Callable[[str], None] = lambda text: None) -> list[dict[str, Any]]:
        """The calls of the next reply."""
        if self._streams is None:
            host, port = self._address.hostname, self._address.port
            self._streams = await asyncio.open_connection(host, port, limit=2**26)
        reader, writer = self._streams
        tools = [{"type": "function", "function": TOOL}]
        raw = json.dumps(
            {"model": "double", "messages": self.messages, "tools": tools, "stream": True}
        )
        head = HEAD.format(self._address.path, self._address.netloc, len(raw.encode()))
        writer.write(head.encode() + raw.encode())
        await reader.readuntil(b"\r\n\r\n")
        text, calls = "", []
        while size := int(await reader.readline(), 16):
            data = (await reader.readexactly(size + 2)).strip()
            if data.startswith(b"data: {"):
                for choice in json.loads(data[6:])["choices"]:
                    if said := choice["delta"].get("content"):
                        text += said
                        told(said)
                    calls += choice["delta"].get("tool_calls") or ()
        await reader.readline()
        self.messages.append({"role": "assistant", "content": text, "tool_calls": calls})
        return calls

    async def run(self, call: dict[str, Any]) -> str:
        """Run the command of a call."""
        command = json.loads(call["function"]["arguments"])["command"]
        process = await asyncio.create_subprocess_exec(
            *("/bin/bash", "-c", command), stdout=asyncio.subprocess.PIPE
        )
        out = (await process.communicate())[0].decode()
        self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": out})
        return out
