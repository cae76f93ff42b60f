"""What is answered before anything heavy is imported, and the end of input in every phase."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.processes import is_alive, until

CROW = str(Path(sys.executable).with_name("crow"))
LEAVES_IN = 8.0
"""A second, and what a loaded machine takes to say so; who waits for the work waits ten minutes."""
PATIENCE = 40
GATE = """
import sys, time
from importlib.machinery import PathFinder
from pathlib import Path
HEAVY = set({heavy!r})
GATE = Path({gate!r})

class Gate:
    def find_spec(self, name, path=None, target=None):
        spec = PathFinder.find_spec(name, path, target) if name in HEAVY else None
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def wait(module):
            while not GATE.exists():
                time.sleep(0.01)
            load(module)

        spec.loader.exec_module = wait
        return spec

sys.meta_path.insert(0, Gate())
"""
HEAVY = [
    *("acp", "pydantic", "mcp", "httpx2", "openai", "lxml", "bs4", "markdownify", "rich"),
    *("prompt_toolkit", "jsonschema_rs", "genai_prices", "keyring", "opentelemetry"),
]


class Process:
    """The command with what it said so far; modules are imported when ``gate`` is there."""

    def __init__(self, cwd: Path, heavy: list[str]) -> None:
        self.cwd = cwd
        self.gate = cwd / "gate"
        self._site = cwd / "site"
        self._site.mkdir()
        text = GATE.format(heavy=heavy, gate=str(self.gate))
        (self._site / "sitecustomize.py").write_text(text, "utf-8")

    async def start(self, *options: str, env: dict[str, str]) -> None:
        pipe = asyncio.subprocess.PIPE
        self.process = await asyncio.create_subprocess_exec(
            *(CROW, "acp", *options),
            cwd=self.cwd,
            env={**env, "PYTHONPATH": str(self._site)},
            stdin=pipe,
            stdout=pipe,
        )

    def write(self, *messages: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        lines = [json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages]
        self.process.stdin.write("".join(lines).encode())

    async def said(self, is_it: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next message of this kind."""
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            while line := await self.process.stdout.readline():
                if is_it(message := json.loads(line)):
                    return message
        raise AssertionError("the process ended before it said so")

    async def answer(self, request_id: int) -> Any:
        return (await self.said(lambda message: message.get("id") == request_id))["result"]

    async def left(self) -> float:
        """Close the input, and wait for the end; how long that took."""
        assert self.process.stdin is not None
        loop = asyncio.get_running_loop()
        began = loop.time()
        self.process.stdin.close()
        async with asyncio.timeout(PATIENCE):
            await self.process.wait()
        return loop.time() - began

    async def end(self) -> None:
        self.gate.touch()
        if self.process.returncode is None:
            self.process.kill()
        await self.process.communicate()


HELLO = {"id": 0, "method": "initialize", "params": {"protocolVersion": 1}}


def opening(cwd: Path, **params: Any) -> dict[str, Any]:
    place = {"cwd": str(cwd), "mcpServers": [], **params}
    return {"id": 1, "method": "session/new", "params": place}


@pytest.fixture
def env(home: Path) -> dict[str, str]:
    return {
        "HOME": str(home),
        "PATH": "/usr/bin:/bin",
        "OLLAMA_HOST": "127.0.0.1:9",
        "CROW_SANDBOX": "off",
    }


@pytest.mark.variants(1)
@pytest.mark.rule("a quick start", "start-up")
@pytest.mark.parametrize("version", [1, 2])
async def test_initialize_the_first_session_and_its_first_prompt_need_nothing_heavy(
    tmp_path: Path, env: dict[str, str], version: int
) -> None:
    """Who imports one of these before waits for a gate that opens after the answers."""
    process = Process(tmp_path, HEAVY)
    await process.start("--protocol", str(version), env=env)
    try:
        process.write(HELLO, opening(tmp_path))
        assert (await process.answer(0))["agentInfo"]["name"] == "crow"
        session = (await process.answer(1))["sessionId"]
        params = {"sessionId": session, "prompt": [{"type": "text", "text": "Say hello"}]}
        process.write({"id": 2, "method": "session/prompt", "params": params})
        assert (await process.answer(2)) is not None
        process.gate.touch()
        await process.left()
        assert process.process.returncode == 0
    finally:
        await process.end()


@pytest.mark.rule("a quick start", "start-up")
async def test_initialize_needs_no_event_loop_and_no_database(
    tmp_path: Path, env: dict[str, str]
) -> None:
    process = Process(tmp_path, [*HEAVY, "asyncio", "apsw", "sqlite3", "ssl", "tree_sitter"])
    await process.start(env=env)
    try:
        process.write(HELLO)
        assert await process.answer(0)
        process.gate.touch()
        await process.left()
        assert process.process.returncode == 0
    finally:
        await process.end()


@pytest.mark.rule("a quick start", "a cancel always works")
async def test_a_request_that_nobody_has_begun_with_is_taken_back_at_once(
    tmp_path: Path, env: dict[str, str]
) -> None:
    """Before there is an event loop; what was asked beside it is answered later."""
    process = Process(tmp_path, ["asyncio"])
    await process.start(env=env)
    try:
        listing = {"id": 2, "method": "session/list", "params": {}}
        process.write(HELLO, opening(tmp_path), listing)
        process.write({"method": "$/cancel_request", "params": {"requestId": 1}})
        told = await process.said(lambda message: message.get("id") == 1)
        assert told["error"]["code"] == -32800
        process.gate.touch()
        assert await process.answer(2) == {"sessions": []}
        await process.left()
    finally:
        await process.end()


@pytest.mark.rule("a pure stdout, an exit in time")
@pytest.mark.parametrize("method", ["session/new", "session/load", "session/fork"])
async def test_a_client_that_leaves_before_its_first_session_is_there_waits_for_nothing(
    tmp_path: Path, env: dict[str, str], method: str
) -> None:
    process = Process(tmp_path, ["asyncio"])
    await process.start(env=env)
    try:
        asked = opening(tmp_path, sessionId="s-1")
        process.write(HELLO, {**asked, "method": method})
        await process.answer(0)
        await process.left()
        told = await process.said(lambda message: message.get("id") == 1)
        assert told["error"]["code"] == -32800
        assert process.process.returncode == 0
        assert not process.gate.exists()
    finally:
        await process.end()


async def nothing(process: Process) -> None:
    """Not even a greeting."""


async def greeted(process: Process) -> None:
    process.write(HELLO)
    await process.answer(0)


async def idle(process: Process) -> None:
    process.write(HELLO, opening(process.cwd))
    await process.answer(1)
    await process.said(lambda message: "availableCommands" in json.dumps(message))


async def asking(process: Process) -> None:
    """A question is open."""
    await prompted(process, "Run `touch a`")
    await process.said(lambda message: message.get("method") == "session/request_permission")


async def running(process: Process) -> None:
    """A command runs."""
    await prompted(process, "Run `echo $$ > pid; sleep 600`")
    await until((process.cwd / "pid").exists)


async def connecting(process: Process) -> None:
    """A server of the client's does not say a word."""
    script = "echo $$ > pid; exec sleep 600"
    server = {"name": "mute", "command": "sh", "args": ["-c", script], "env": []}
    process.write(HELLO, opening(process.cwd, mcpServers=[server]))
    await until((process.cwd / "pid").exists)


async def prompted(process: Process, said: str) -> None:
    process.write(HELLO, opening(process.cwd))
    session = (await process.answer(1))["sessionId"]
    params = {"sessionId": session, "prompt": [{"type": "text", "text": said}]}
    process.write({"id": 2, "method": "session/prompt", "params": params})


Phase = Callable[[Process], Awaitable[None]]


@pytest.mark.slow
@pytest.mark.rule("no orphans", "a pure stdout, an exit in time")
@pytest.mark.parametrize(
    "phase", [nothing, greeted, idle, asking, running, connecting], ids=lambda p: p.__name__
)  # fmt: skip
async def test_the_end_of_input_is_the_end_of_the_command(
    tmp_path: Path, env: dict[str, str], phase: Phase
) -> None:
    """The streams of a model are in test_process.py, with an agent of their own."""
    process = Process(tmp_path, [])
    options = ["--allow", "Bash"] if phase is running else []
    await process.start(*options, env=env)
    try:
        await phase(process)
        assert await process.left() < LEAVES_IN
        assert process.process.returncode == 0
        assert not process.gate.exists()
        if (tmp_path / "pid").exists():
            pid = int((tmp_path / "pid").read_text())
            await until(lambda: not is_alive(pid))
    finally:
        await process.end()
