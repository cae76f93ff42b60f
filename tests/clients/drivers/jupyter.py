"""Jupyter AI's client of agents, without JupyterLab; run by an interpreter that has Jupyter AI."""

# pyright: reportMissingImports=false
from __future__ import annotations

import asyncio
import json
import logging
import sys
from asyncio.subprocess import PIPE
from types import SimpleNamespace
from typing import Any

from acp import RequestError
from jupyter_ai_acp_client.default_acp_client import JaiAcpClient
from jupyterlab_chat.ychat import YChat


class Persona:
    """Stands where the persona of a chat does: has the chat, and shows nothing."""

    def __init__(self, folder):
        self.id = "crow"
        self.log = logging.getLogger("persona")
        self.chat = YChat()
        self.folder = folder
        self.parent = SimpleNamespace(root_dir=folder)
        self.acp_slash_commands = []

    def get_chat_dir(self):
        return self.folder

    def get_mcp_settings(self):
        return None

    def ignore(self, *_):
        pass

    set_status = clear_status = report_slash_commands = ignore
    update_acp_config_options = update_acp_current_mode = ignore
    update_acp_context_usage = update_acp_session_usage = ignore
    _sync_awareness_config = _sync_awareness_usage = ignore


class Client(JaiAcpClient):
    """The client, which tells what comes, and at whose buttons somebody sits."""

    def __init__(self, tell, **given):
        self.tell = tell
        self.kind = "allow_once"
        super().__init__(**given)

    async def session_update(self, session_id, update, **more):
        told = update.model_dump(mode="json", by_alias=True, exclude_none=True)
        self.tell(event="update", update=told)
        try:
            await super().session_update(session_id, update, **more)
        except Exception as error:
            self.tell(event="unfit", message=told, error=repr(error))
            raise

    async def request_permission(self, options, session_id, tool_call, **more):
        asking = asyncio.create_task(
            super().request_permission(options, session_id, tool_call, **more)
        )
        shown = tool_call.model_dump(mode="json", by_alias=True, exclude_none=True)
        names = [option.name for option in options]
        chosen = next(option.option_id for option in options if option.kind == self.kind)
        kinds = [option.kind for option in options]
        self.tell(event="asked", kinds=kinds, names=names, shown=shown)
        await asyncio.sleep(0)  # now the buttons are there
        self.resolve_permission(session_id, tool_call.tool_call_id, chosen)
        return await asking


class Driver:
    """Does steps; each method is one, and gives what the agent has answered."""

    def __init__(self, client):
        self.client = client

    async def initialize(self, step):
        await self.client.get_connection()

    async def new(self, step):
        return await self.client.create_session(Persona(step["cwd"]))

    async def load(self, step):
        return await self.client.load_session(Persona(step["cwd"]), step["session"])

    async def mode(self, step):
        await self.client.set_session_mode(step["mode"], step["session"])

    async def prompt(self, step):
        text = "".join(block["text"] for block in step["blocks"])
        answer = await self.client.prompt_and_reply(step["session"], text)
        await self.heard()
        return answer

    async def heard(self):
        """Wait for what came ahead of an answer: the library hands it on in tasks of its own."""
        connection: Any = await self.client.get_connection()
        await connection._conn._queue.join()
        tasks = [each for each in asyncio.all_tasks() if each.get_name().endswith("notification")]
        await asyncio.gather(*tasks)

    async def cancel(self, step):
        await self.client.stop_streaming(step["session"])

    async def answer(self, step):
        self.client.kind = step["kind"]

    async def do(self, step):
        try:
            result = await getattr(self, step["do"])(step)
            if hasattr(result, "model_dump"):
                result = result.model_dump(mode="json", by_alias=True, exclude_none=True)
            self.client.tell(event="done", id=step["id"], result=result or {})
        except RequestError as error:
            self.client.tell(event="done", id=step["id"], error=str(error))


async def main():
    port, *command = sys.argv[1:]
    reader, writer = await asyncio.open_connection("127.0.0.1", int(port), limit=2**26)
    pipes: Any = {"stdin": PIPE, "stdout": PIPE, "start_new_session": True, "limit": 50 * 2**20}
    agent: Any = await asyncio.create_subprocess_exec(*command, **pipes)

    def tell(**event):
        writer.write(json.dumps(event).encode() + b"\n")

    given: Any = {"agent_subprocess": agent, "event_loop": asyncio.get_running_loop()}
    driver, tasks = Driver(Client(tell, **given)), set()
    while line := await reader.readline():
        tasks.add(asyncio.create_task(driver.do(json.loads(line))))
    agent.stdin.close()
    await agent.wait()


asyncio.run(main())
