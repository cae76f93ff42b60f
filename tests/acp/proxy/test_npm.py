"""The adapters that people use, from npm, behind Crow, with a scripted model behind them."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from crow.testing import FakeEditor

FOLDERS = "CROW_ACP_AGENTS"
"""The variable that names folders, as PATH does, in which ``npm install`` was run."""
WHERE = os.environ.get(FOLDERS, "")
CODEX = """
model = "double"
model_provider = "double"
approval_policy = "untrusted"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[model_providers.double]
name = "double"
base_url = "{url}/v1"
env_key = "DOUBLE_KEY"
wire_api = "responses"
[analytics]
enabled = false
"""
COMMANDS = ("rm -rf build", "touch made.txt")
pytestmark = [pytest.mark.node, pytest.mark.slow, pytest.mark.timeout(180)]


def installed(name: str) -> str:
    """The command of an adapter; the test is skipped where it is not installed."""
    for folder in WHERE.split(os.pathsep):
        found = Path(folder) / "node_modules/.bin" / name
        if folder and found.exists():
            return str(found)
    pytest.skip(f"{name} is not installed: npm install it in a folder that {FOLDERS} names")


class Model:
    """A server that speaks two protocols and wants one command run, then is done."""

    def __init__(self, command: str) -> None:
        self.command = command
        self.url = ""
        self._count = itertools.count(1)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = next(
                int(line.split(b":")[1])
                for line in (*head.splitlines(), b"content-length: 0")
                if line.lower().startswith(b"content-length:")
            )
            body = json.loads(await reader.readexactly(length) or b"{}")
            path = head.split(b" ")[1]
            events = self.messages(body) if b"/messages" in path else self.responses(body)
            said = "".join(
                f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events
            )
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                b"content-length: %d\r\n\r\n%s" % (len(said.encode()), said.encode())
            )
            await writer.drain()

    def messages(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        """Anthropic's protocol."""
        usage = {"input_tokens": 9, "output_tokens": 9}
        is_done = "tool_result" in json.dumps(body.get("messages"))
        tools = {each.get("name") for each in body.get("tools", ())}
        if "Bash" in tools and not is_done:
            block = {"type": "tool_use", "id": f"toolu_{next(self._count)}", "name": "Bash"}
            part = {
                "type": "input_json_delta",
                "partial_json": json.dumps({"command": self.command}),
            }
            reason, begun = "tool_use", {**block, "input": {}}
        else:
            part, reason = {"type": "text_delta", "text": "DONE"}, "end_turn"
            begun = {"type": "text", "text": ""}
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

    def responses(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        """OpenAI's protocol."""
        named = {each.get("name"): each for each in body.get("tools", ())}
        tool = next(
            (each for each in ("exec_command", "shell_command", "shell") if each in named), ""
        )
        if tool and "function_call_output" not in json.dumps(body.get("input")):
            key = "cmd" if tool == "exec_command" else "command"
            command = ["bash", "-lc", self.command] if tool == "shell" else self.command
            item: dict[str, Any] = {
                "type": "function_call",
                "id": "fc",
                "call_id": f"call_{next(self._count)}",
                "name": tool,
                "arguments": json.dumps({key: command}),
            }
        else:
            text = {"type": "output_text", "text": "DONE", "annotations": []}
            item = {"type": "message", "id": "m", "role": "assistant", "content": [text]}
        counted = {"input_tokens": 9, "output_tokens": 9, "total_tokens": 18}
        response = {"id": "r", "object": "response", "output": [], "status": "in_progress"}
        done = {**response, "status": "completed", "output": [item], "usage": counted}
        return [
            {"type": "response.created", "response": response},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": done},
        ]


@asynccontextmanager
async def model(command: str) -> AsyncIterator[Model]:
    """The model at work."""
    double = Model(command)
    server = await asyncio.start_server(double.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    double.url = f"http://127.0.0.1:{port}"
    try:
        yield double
    finally:
        server.close()


def codex(url: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The adapter for Codex that is written in Rust."""
    home = Path.home() / ".codex"
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(CODEX.format(url=url), "utf-8")
    monkeypatch.setenv("DOUBLE_KEY", "x")
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    return [installed("codex-acp")]


def claude(url: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The adapter for Claude Code."""
    monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-x")
    monkeypatch.setenv("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
    monkeypatch.setenv("IS_SANDBOX", "1")
    return [installed("claude-agent-acp")]


@pytest.mark.parametrize("agent", [codex, claude])
async def test_a_rule_and_a_person_decide_on_the_calls_of_another_agent(
    agent: Any, front: Any, play: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("node") is None:
        pytest.skip("Node is not installed")
    build = front.project / "build"
    build.mkdir()
    for command in COMMANDS:
        async with model(command) as double:
            front.command = agent(double.url, monkeypatch)
            editor = FakeEditor()
            options = ("--deny", "Bash(rm:*)")
            async with front.proxied(editor, *options):
                session = await editor.new_session(front.project)
                await editor.prompt(session, "Do it")
                editor.wire.faults.clear()  # of the adapter's: it is newer than the schema
        asked = [each["toolCall"] for each in editor.asked if "toolCall" in each]
        assert len(asked) == (command == COMMANDS[1]), asked
        assert ("Crow denied" in editor.text()) is (command == COMMANDS[0])
    assert build.is_dir()
    assert (front.project / "made.txt").is_file()
