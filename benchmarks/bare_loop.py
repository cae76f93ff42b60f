"""A bare loop: a prompt, an endpoint, a shell. What one writes without an agent's library."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys

import httpx2

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "Bash",
            "description": "Run a command.",
            "parameters": {
                "type": "object",
                "properties": {"command": {"type": "string"}},
                "required": ["command"],
            },
        },
    }
]


async def ask(client: httpx2.AsyncClient, messages: list[dict]) -> dict:
    body = {"model": os.environ["CROW_MODEL"], "messages": messages, "tools": TOOLS, "stream": True}
    url = f"{os.environ['CROW_BASE_URL']}/chat/completions"
    text, calls = "", {}
    async with client.stream("POST", url, json=body) as response:
        async for line in response.aiter_lines():
            if not line.startswith("data: {"):
                continue
            for choice in json.loads(line[6:])["choices"]:
                text += choice["delta"].get("content") or ""
                for piece in choice["delta"].get("tool_calls") or ():
                    call = calls.setdefault(piece["index"], {"id": "", "name": "", "args": ""})
                    call["id"] += piece.get("id") or ""
                    call["name"] += piece["function"].get("name") or ""
                    call["args"] += piece["function"].get("arguments") or ""
    return {"text": text, "calls": list(calls.values())}


async def main(prompt: str) -> None:
    messages: list[dict] = [{"role": "user", "content": prompt}]
    async with httpx2.AsyncClient() as client:
        while (reply := await ask(client, messages))["calls"]:
            for call in reply["calls"]:
                command = json.loads(call["args"])["command"]
                shell = await asyncio.create_subprocess_shell(command, stdout=subprocess.PIPE)
                out = (await shell.communicate())[0].decode()
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": out})
        print(reply["text"])


asyncio.run(main(sys.argv[1]))
