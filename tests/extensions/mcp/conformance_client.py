"""A client for the official conformance suite: a session of Crow's with the server that is named last.

Its scripted model calls every tool once, with the arguments that the suite gives or any that fit, and
its user accepts whatever a server proposes. Prompts are typed and resources read as well.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from crow import Agent
from crow.core.ports import NullClient, Question
from crow.core.session import Session
from crow.extensions import McpHook
from crow.testing import ScriptedModel, call

VALUES: dict[str, Any] = {"integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}}


class User(NullClient):
    """Somebody who accepts, and takes what is proposed."""

    async def ask(self, session_id: str, question: Question) -> Any:
        """The first choice that accepts or leaves the default, else nothing typed."""
        if question.kind != "select":
            return ""
        wanted = [each for each in question.choices if each in ("Answer", "Accept", "Leave it out")]
        return (wanted or list(question.choices))[0]


def fitting(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """Arguments that a schema takes; where a schema is wanted, that of another tool."""
    properties = schema.get("properties", {})
    args = {name: VALUES.get(told.get("type"), "text") for name, told in properties.items()}
    return {**args, **({"schema": next(iter(schemas.values()))} if "schema" in args else {})}


def calls(session: Session) -> list[Any]:
    """All calls, those with which a suite is particular first."""
    tools = {t.name: t for t in session.tools.values() if hasattr(t, "raw_name")}
    named = {getattr(tool, "raw_name"): name for name, tool in tools.items()}  # noqa: B009
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    given = [(each["name"], each.get("arguments", {})) for each in context.get("toolCalls", [])]
    schemas = {name: tool.parameters for name, tool in tools.items()}
    rest = set(named) - {name for name, _ in given}
    made = [(name, fitting(tools[named[name]].parameters, schemas)) for name in sorted(rest)]
    return [call(named[name], **args) for name, args in (*given, *made) if name in named]


async def main(url: str) -> int:
    """Connect, and use all that there is; 1 where the server could not be reached."""
    model = ScriptedModel("Hello.", leftover="allow")
    servers = {"it": {"type": "http", "url": url}}
    async with Agent(
        llm=model, hooks=[McpHook(servers, wait=40, call_timeout=10)], tools=[]
    ) as agent:
        session = await agent.new_session(Path.cwd(), client=User())
        await agent.prompt(session, "Hello.")
        made = calls(session)
        if "ReadMcpResourceTool" in session.tools:
            made.append(call("ListMcpResourcesTool"))
        model.extend(*made, "Done.")
        await agent.prompt(session, "Use everything.")
        for listed in [m for m in session.messages if m.get("name") == "ListMcpResourcesTool"]:
            print(listed)
        await read_all(agent, session, model)
        for name in [name for name in session.commands if name.startswith("mcp__")]:
            model.extend("Read.")
            await agent.prompt(session, f"/{name} one two")
        state = (await agent.prompt(session, "/mcp")).text
    print(state)
    return 0 if "): ready" in state else 1


async def read_all(agent: Agent, session: Session, model: ScriptedModel) -> None:
    """Read every resource that was listed."""
    told = str(session.messages)
    for uri in dict.fromkeys(part.split('"')[0] for part in told.split('"uri": "')[1:]):
        model.extend(call("ReadMcpResourceTool", server="it", uri=uri), "Read.")
        await agent.prompt(session, "Read it.")


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[-1])))
