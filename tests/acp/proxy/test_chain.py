"""Crow as a component in the chain of a conductor, which owns the processes."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

CROW = str(Path(sys.executable).with_name("crow"))
Said = dict[str, Any]


class Conductor:
    """A client, a component and an agent, with their messages routed as the proposal says.

    ``told`` is what the client gets. Each hop has its own ids.
    """

    def __init__(self, mark: str) -> None:
        self.mark = mark
        self.told: list[Said] = []
        self.hops: list[tuple[str, Said]] = []
        self.cancelled: list[Said] = []
        self._ids: dict[tuple[str, Any], tuple[str, Any]] = {}
        self._count = 0
        self._news = asyncio.Event()
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, component: list[str], agent: list[str], cwd: Path) -> None:
        """Start both processes."""
        pipe = asyncio.subprocess.PIPE
        for name, command in (("component", component), ("agent", agent)):
            process = await asyncio.create_subprocess_exec(
                *command, stdin=pipe, stdout=pipe, cwd=cwd
            )
            self._processes[name] = process
            self._tasks.append(asyncio.create_task(self._read(name, process)))

    async def stop(self) -> list[int]:
        """End the input of both; their exit statuses."""
        statuses: list[int] = []
        for process in self._processes.values():
            assert process.stdin
            process.stdin.close()
            statuses.append(await asyncio.wait_for(process.wait(), 10))
        await asyncio.gather(*self._tasks)
        return statuses

    def say(self, **message: Any) -> None:
        """The client says something: the first component hears it."""
        if message.get("method") == "initialize":
            message["method"] = f"{self.mark}proxy/initialize"
        self._pass("client", "component", message)

    async def answer(self, request_id: Any) -> Said:
        """The answer to a request of the client's."""
        while True:
            for each in self.told:
                if each.get("id") == request_id and "method" not in each:
                    return each
            self._news.clear()
            await asyncio.wait_for(self._news.wait(), 20)

    def _pass(self, source: str, target: str, message: Said) -> None:
        if "method" in message and "id" in message:
            self._count += 1
            hop = f"hop-{self._count}"
            self._ids[target, hop] = source, message["id"]
            message = {**message, "id": hop}
        self.hops.append((target, message))
        self._write(target, message)

    def _write(self, target: str, message: Said) -> None:
        if target == "client":
            self.told.append(message)
            self._news.set()
            if message.get("method") == "session/request_permission":
                chosen = {"outcome": {"outcome": "selected", "optionId": "yes"}}
                self._reply("client", {"id": message["id"], "result": chosen})
            return
        process = self._processes[target]
        assert process.stdin
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def _reply(self, target: str, answer: Said) -> None:
        source, request_id = self._ids.pop((target, answer["id"]))
        self._write(source, {**answer, "id": request_id})

    async def _read(self, name: str, process: asyncio.subprocess.Process) -> None:
        assert process.stdout
        async for raw in process.stdout:
            message: Said = json.loads(raw)
            successor = f"{self.mark}proxy/successor"
            if "method" not in message:
                self._reply(name, message)
            elif name == "agent":
                wrapped = {k: message[k] for k in ("method", "params") if k in message}
                self._pass(name, "component", {**message, "method": successor, "params": wrapped})
            elif message["method"] == "$/cancel_request":
                self.cancelled.append(message)
            elif message["method"] == successor:
                self._pass(name, "agent", {**message, **message["params"]})
            else:
                self._pass(name, "client", message)


@pytest.fixture(params=["", "_"], ids=["proposal", "sdk"])
def mark(request: pytest.FixtureRequest) -> str:
    return request.param


async def talk(conductor: Conductor, cwd: Path, prompt: str) -> Said:
    """From the greeting to the answer of a prompt."""
    conductor.say(id=0, method="initialize", params={"protocolVersion": 1})
    greeting = (await conductor.answer(0))["result"]
    assert greeting["protocolVersion"] == 1
    conductor.say(id=1, method="session/new", params={"cwd": str(cwd), "mcpServers": []})
    session = (await conductor.answer(1))["result"]["sessionId"]
    blocks = [{"type": "text", "text": prompt}]
    conductor.say(id=2, method="session/prompt", params={"sessionId": session, "prompt": blocks})
    return (await conductor.answer(2))["result"]


@pytest.mark.variants(1)
async def test_a_component_judges_what_passes_through_it(front: Any, mark: str) -> None:
    front.settings(permissions={"deny": ["Bash(rm:*)"]})
    conductor = Conductor(mark)
    await conductor.start([CROW, "acp", "--proxy"], front.command, front.project)
    result = await talk(conductor, front.project, "ask rm -rf build\nask curl example.org\nhello")
    assert result == {"stopReason": "end_turn"}
    assert await conductor.stop() == [0, 0]
    asked = [each for each in conductor.told if each.get("method") == "session/request_permission"]
    assert [each["params"]["toolCall"]["toolCallId"] for each in asked] == ["call-curl example.org"]
    said = json.dumps(conductor.told)
    assert "Crow denied rm -rf build" in said
    assert "hello" in said
    assert [each["method"] for each in front.received if "method" in each] == [
        "initialize",
        "session/new",
        "session/prompt",
    ]


async def test_a_component_takes_a_prompt_back_hop_by_hop(front: Any, mark: str) -> None:
    conductor = Conductor(mark)
    await conductor.start([CROW, "acp", "--proxy"], front.command, front.project)
    waiting = asyncio.create_task(talk(conductor, front.project, "wait"))
    while "waiting" not in json.dumps(conductor.told):  # noqa: ASYNC110 - another process says it
        await asyncio.sleep(0.01)
    hop = next(m["id"] for to, m in conductor.hops if m.get("method") == "session/prompt")
    conductor.say(method="$/cancel_request", params={"requestId": hop})
    conductor.say(method="session/cancel", params={"sessionId": f"s-{front.project.name}"})
    assert await waiting == {"stopReason": "cancelled"}
    assert await conductor.stop() == [0, 0]
    assert [each["params"] for each in conductor.cancelled] == [{"requestId": hop}]


async def test_a_component_that_is_greeted_as_an_agent_says_what_it_is(front: Any) -> None:
    process = await asyncio.create_subprocess_exec(
        CROW,
        "acp",
        "--proxy",
        cwd=front.project,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
    out, _ = await process.communicate(json.dumps(hello).encode() + b"\n")
    assert "crow acp --proxy -- AGENT" in json.loads(out)["error"]["message"]
