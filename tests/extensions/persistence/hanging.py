"""A program that works on a session and stops in the middle, so that it can be killed there.

``python hanging.py DB WHERE``; prints the session's id, then a line when it has come to WHERE:
``tool`` (one call has ended, another is running), ``permission`` (the user is asked),
``text`` (in the middle of an answer), ``thought`` (before its first word), ``locked`` (another holds
the database since a tool began) or ``idle``.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import apsw

from crow.core.agent import Agent
from crow.core.events import Event, TextDelta, ThoughtDelta, ToolEnded
from crow.core.ports.client import NullClient, PermissionRequest
from crow.core.ports.tool import ToolEnvironment
from crow.core.verdicts import Ask
from crow.extensions import PersistenceHook
from crow.testing import ScriptedModel, call, delay, text
from crow.tools import tool


class Client(NullClient):
    def __init__(self, where: str) -> None:
        self.where = where

    async def update(self, session_id: str, event: Event) -> None:
        here = {
            "text": isinstance(event, TextDelta) and event.text.endswith("."),
            "locked": isinstance(event, TextDelta) and event.text.endswith("."),
            "thought": isinstance(event, ThoughtDelta),
            "tool": isinstance(event, ToolEnded),
        }
        if here.get(self.where):
            print("here", flush=True)

    async def permission(self, session_id: str, request: PermissionRequest) -> str | None:
        print("here", flush=True)
        await asyncio.sleep(60)
        return None


@tool
async def quick() -> dict[str, Any]:
    """End at once."""
    return {"found": [1, 2]}


@tool
async def slow(ctx: ToolEnvironment) -> str:
    """Print something, and never end."""
    await ctx.progress("half of ")
    await ctx.progress("the work")
    await asyncio.sleep(60)
    return "all of it"


async def ask_for_all() -> Ask:
    return Ask("may it?")


SCRIPTS: dict[str, list[Any]] = {
    "tool": [[call("slow"), call("quick")]],
    "permission": [call("quick")],
    "text": [[text("It ", reasoning="Is it?"), "is.", delay(60)]],
    "thought": [[text("", reasoning="Let me see."), delay(60)]],
    "locked": [call("lock"), ["It ", "is.", delay(60)]],
    "idle": ["Done."],
}


async def main(db: str, where: str) -> None:
    store = PersistenceHook(db)

    @tool
    async def lock() -> str:
        """Let nobody write to the database any more."""
        other.append(apsw.Connection(db))
        other[-1].set_busy_timeout(10_000)  # what is being written now may be written
        other[0].execute("BEGIN IMMEDIATE")
        return "locked"

    other: list[apsw.Connection] = []
    agent = Agent(ScriptedModel(*SCRIPTS[where]), hooks=[store], tools=[quick, slow, lock])
    if where == "permission":
        agent.hooks.register("before_tool", ask_for_all)
    session = await agent.new_session(client=Client(where))
    print(session.id, flush=True)
    await agent.prompt(session, "do it")
    print("here", flush=True)
    await asyncio.sleep(60)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
