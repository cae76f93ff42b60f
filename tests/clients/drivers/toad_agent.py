"""Toad's own client of agents, without its screens; run by an interpreter that has Toad."""

# pyright: reportMissingImports=false
from __future__ import annotations

import asyncio
import json
import shlex
import sys
from pathlib import Path
from typing import Any

from toad import jsonrpc
from toad.acp import messages
from toad.acp.agent import Agent
from toad.agent import AgentFail, AgentReady
from toad.answer import Answer
from toad.db import DB
from toad.widgets.terminal_tool import ToolState

UNKNOWN = ("session_info_update", "config_option_update")
"""Updates that Toad knows nothing of."""


class Terminal:
    """A terminal of Toad's, without the widget."""

    def __init__(self, asked):
        self.asked = asked
        self.output = b""
        self.ended = asyncio.get_running_loop().create_future()

    async def run(self):
        line = shlex.join([self.asked.command, *self.asked.args]) if self.asked.args else None
        pipes: Any = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.STDOUT}
        self.process = await asyncio.create_subprocess_shell(
            line or self.asked.command,
            cwd=self.asked.cwd,
            stdin=asyncio.subprocess.DEVNULL,
            **pipes,
        )
        self.asked.result_future.set_result(True)
        output: Any = self.process.stdout
        while piece := await output.read(2**16):
            self.output += piece
        self.ended.set_result(await self.process.wait())

    def state(self):
        code = self.ended.result() if self.ended.done() else None
        return ToolState(self.output.decode("utf-8", "replace"), truncated=False, return_code=code)


class Screen:
    """Stands where Toad's conversation does: tells what it is shown, and answers questions."""

    def __init__(self, writer):
        self.writer = writer
        self.kind = "allow_once"
        self.is_ready = asyncio.Event()
        self.failure = ""
        self.terminals = {}
        self.tasks = set()

    def tell(self, **event):
        self.writer.write(json.dumps(event).encode() + b"\n")

    def update(self, kind, **fields):
        self.tell(event="update", update={"sessionUpdate": kind, **fields})

    def begin(self, task):
        self.tasks.add(asyncio.create_task(task))

    def call_later(self, call, *args):
        self.begin(call(*args))

    def post_message(self, message):
        match message:
            case AgentReady():
                self.is_ready.set()
            case AgentFail():
                self.failure = message.details or message.message
            case messages.RequestPermission():
                self.answer(message)
            case messages.CreateTerminal():
                self.terminals[message.terminal_id] = terminal = Terminal(message)
                self.begin(terminal.run())
            case messages.GetTerminalState():
                state = self.terminals[message.terminal_id].state()
                message.result_future.set_result(state)
            case messages.WaitForTerminalExit():
                self.begin(self.wait(message))
            case messages.KillTerminal():
                self.terminals[message.terminal_id].process.kill()
            case _:
                self.show(message)
        return True

    def show(self, message):
        match message:
            case messages.UserMessage(type, text):
                self.update("user_message_chunk", content={"type": type, "text": text})
            case messages.Update(type, text):
                self.update("agent_message_chunk", content={"type": type, "text": text})
            case messages.Plan(entries):
                self.update("plan", entries=entries)
            case messages.ToolCallUpdate(_, update):
                self.tell(event="update", update=update)
            case messages.ToolCall(call):
                self.tell(event="update", update=call)
            case messages.AvailableCommandsUpdate(commands):
                self.update("available_commands_update", availableCommands=commands)

    async def wait(self, message):
        message.result_future.set_result((await self.terminals[message.terminal_id].ended, None))

    def answer(self, message):
        options = message.options
        self.tell(
            event="asked",
            kinds=[option["kind"] for option in options],
            names=[option["name"] for option in options],
            shown=message.tool_call,
        )
        chosen = next(option for option in options if option["kind"] == self.kind)
        answer = Answer(chosen["name"], chosen["optionId"], chosen["kind"])
        message.result_future.set_result(answer)


class Watched(jsonrpc.Server):
    """Toad's end of the wire, which tells what of the agent's it does not take."""

    def __init__(self, screen):
        super().__init__()
        self.screen = screen

    async def call(self, json):
        result: Any = await super().call(json)
        if result and "error" in result and kind_of(json) not in UNKNOWN:
            self.screen.tell(event="unfit", message=json, error=result["error"])
        return result


def kind_of(message):
    """What an update tells of."""
    return message.get("params", {}).get("update", {}).get("sessionUpdate")


class Driver:
    """Does steps; each method is one, and gives what the agent has answered."""

    def __init__(self, command, screen):
        about: Any = {"identity": "crow", "name": "Crow", "run_command": {"*": shlex.join(command)}}
        self.screen = screen
        self.agent = Agent(Path.cwd(), about, None)
        self.agent.server = Watched(screen)
        self.agent.server.expose_instance(self.agent)

    async def initialize(self, step):
        await DB().create()
        await self.agent.start(self.screen)
        await self.screen.is_ready.wait()
        await self.agent.acp_initialize()

    async def new(self, step):
        await self.agent.acp_new_session()
        return {"sessionId": self.agent.session_id}

    async def load(self, step):
        self.agent.session_id = step["session"]
        await self.agent.acp_load_session()

    async def mode(self, step):
        if failure := await self.agent.set_mode(step["mode"]):
            raise RuntimeError(failure)

    async def prompt(self, step):
        if reason := await self.agent.acp_session_prompt(step["blocks"]):
            return {"stopReason": reason}
        raise RuntimeError(self.screen.failure)

    async def cancel(self, step):
        await self.agent.cancel()

    async def answer(self, step):
        self.screen.kind = step["kind"]

    async def leave(self):
        """End the agent as Toad does, and wait until it has gone, as Toad does not."""
        await self.agent.stop()
        if (running := self.agent._agent_task) is not None:
            await running

    async def do(self, step):
        try:
            result = await getattr(self, step["do"])(step)
            self.screen.tell(event="done", id=step["id"], result=result or {})
        except (jsonrpc.APIError, jsonrpc.JSONRPCError, RuntimeError) as error:
            self.screen.tell(event="done", id=step["id"], error=str(error))


async def main():
    port, *command = sys.argv[1:]
    reader, writer = await asyncio.open_connection("127.0.0.1", int(port), limit=2**26)
    driver, tasks = Driver(command, Screen(writer)), set()
    while line := await reader.readline():
        tasks.add(asyncio.create_task(driver.do(json.loads(line))))
    await driver.leave()


asyncio.run(main())
