"""The protocol's Python library as a client; run by an interpreter that has some version of it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import acp
from acp import schema


class Person:
    """Tells what it is told, and answers questions as was said."""

    def __init__(self, writer):
        self.writer = writer
        self.kind = "allow_once"
        self.names = []
        self.terminals = {}

    def tell(self, **event):
        self.writer.write(json.dumps(event).encode() + b"\n")

    async def session_update(self, session_id, update, **_):
        told = update.model_dump(mode="json", by_alias=True, exclude_none=True)
        self.tell(event="update", session=session_id, update=told)

    async def request_permission(self, options, session_id, tool_call, **_):
        offered = {option.name: option.option_id for option in options}
        shown = tool_call.model_dump(mode="json", by_alias=True, exclude_none=True)
        kinds = [option.kind for option in options]
        self.tell(event="asked", kinds=kinds, names=[*offered], shown=shown)
        if self.names:
            outcome = {"outcome": "selected", "optionId": offered[self.names.pop(0)]}
            return schema.RequestPermissionResponse.model_validate({"outcome": outcome})
        chosen = next(option for option in options if option.kind == self.kind)
        outcome = {"outcome": "selected", "optionId": chosen.option_id}
        return schema.RequestPermissionResponse.model_validate({"outcome": outcome})

    async def create_elicitation(self, message, mode, **_):
        (asked,) = mode.requested_schema.properties.values()
        self.tell(event="form", names=asked.enum, text=message)
        if not self.names:
            return schema.DeclineElicitationResponse(action="decline")
        answer = {"action": "accept", "content": {"answer": self.names.pop(0)}}
        return schema.AcceptElicitationResponse.model_validate(answer)

    async def write_text_file(self, content, path, session_id, **_):
        self.tell(event="wrote", path=path)
        Path(path).write_text(content)

    async def read_text_file(self, path, session_id, limit=None, line=None, **_):
        self.tell(event="read", path=path)
        text = Path(path).read_text() if Path(path).exists() else ""
        lines = text.splitlines(keepends=True)[(line or 1) - 1 :]
        return schema.ReadTextFileResponse(content="".join(lines[:limit]))

    async def ext_method(self, method, params):
        raise acp.RequestError.method_not_found(method)

    async def ext_notification(self, method, params):
        pass

    def on_connect(self, conn):
        pass


class Driver:
    """Does steps; each method is one, and gives what the agent has answered."""

    def __init__(self, agent, person):
        self.agent = agent
        self.person = person

    async def initialize(self, step):
        files = {"readTextFile": True, "writeTextFile": True}
        forms = {"elicitation": {"form": {}}} if step.get("forms") else {}
        able = schema.ClientCapabilities.model_validate({"fs": files, **forms})
        return await self.agent.initialize(protocol_version=1, client_capabilities=able)

    async def new(self, step):
        return await self.agent.new_session(cwd=step["cwd"], mcp_servers=[])

    async def load(self, step):
        about = {"cwd": step["cwd"], "session_id": step["session"]}
        return await self.agent.load_session(mcp_servers=[], **about)

    async def resume(self, step):
        about = {"cwd": step["cwd"], "session_id": step["session"]}
        return await self.agent.resume_session(mcp_servers=[], **about)

    async def mode(self, step):
        about = {"mode_id": step["mode"], "session_id": step["session"]}
        return await self.agent.set_session_mode(**about)

    async def prompt(self, step):
        given = {"sessionId": step["session"], "prompt": step["blocks"]}
        blocks = schema.PromptRequest.model_validate(given).prompt
        return await self.agent.prompt(prompt=blocks, session_id=step["session"])

    async def cancel(self, step):
        await self.agent.cancel(session_id=step["session"])

    async def answer(self, step):
        self.person.kind = step.get("kind", self.person.kind)
        self.person.names = step.get("names", [])

    async def do(self, step):
        try:
            result = await getattr(self, step["do"])(step)
            told = result and result.model_dump(mode="json", by_alias=True, exclude_none=True)
            self.person.tell(event="done", id=step["id"], result=told or {})
        except acp.RequestError as error:
            self.person.tell(event="done", id=step["id"], error=str(error))


async def main():
    port, *command = sys.argv[1:]
    reader, writer = await asyncio.open_connection("127.0.0.1", int(port), limit=2**26)
    person: Any = Person(writer)
    limits = {"limit": 2**26}
    kept: Any = {"env": dict(os.environ), "transport_kwargs": limits}
    if hasattr(schema, "AcceptElicitationResponse"):
        kept["use_unstable_protocol"] = True
    async with acp.spawn_agent_process(person, *command, **kept) as (agent, _):
        driver, tasks = Driver(agent, person), set()
        while line := await reader.readline():
            tasks.add(asyncio.create_task(driver.do(json.loads(line))))


asyncio.run(main())
