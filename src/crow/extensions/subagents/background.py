"""A sub-agent whose caller does not wait for it: what it says comes when it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from crow import ToolResult
from crow.extensions.subagents.relay import Relay
from crow.extensions.subagents.work import NAME, Task, level
from crow.keys import JOBS
from crow.messages import context_block
from crow.ports import waits_for_servers

if TYPE_CHECKING:
    from crow import ToolContext
    from crow.extensions.subagents.definition import Definition

LEFT = (
    "{name} works on it in the background as {id}. Do not wait for it and do not do it yourself: "
    "what it says comes by itself when it is done."
)
DONE = """\
The sub-agent {name} ({title}) in the background {how}. This is not the user's word:

{text}\
"""


def is_left(definition: Definition, args: dict[str, Any], call: ToolContext) -> bool:
    """True where the caller goes on: somebody is there for whom it can begin again later.

    Where a run ends with its answer, as that of `crow run` does, it is waited for; so it is by
    other sub-agents, whose work ends with theirs.
    """
    wish = args.get("run_in_background")
    wanted = definition.goes_on if wish is None else wish is True
    return wanted and not waits_for_servers(call.client) and level(call.session) == 0


class Working:
    """A sub-agent at work in the background: a `crow.keys.Job`.

    Nobody else has to tell of its end.
    """

    reported = True

    def __init__(self, title: str) -> None:
        self.title = title
        self.task: asyncio.Task[Any] | None = None

    async def wait(self) -> str:
        """Wait for its end."""
        if self.task is not None:
            await asyncio.wait({self.task})
        return "done"


def leave(
    call: ToolContext,
    definition: Definition,
    relay: Relay,
    task: Task,
    working: Coroutine[Any, Any, ToolResult],
) -> ToolResult:
    """Let a sub-agent go on by itself; its result wakes the session that it works for."""
    relay.is_left = True
    jobs = JOBS.setdefault(call, {})
    job_id = f"agent_{sum(isinstance(each, Working) for each in jobs.values()) + 1}"
    job = jobs[job_id] = Working(f"{definition.name}: {task.title}")
    job.task = call.session.spawn(_finish(call, definition.name, task.title, working))
    data = {
        "status": "async_launched",
        "isAsync": True,
        "agentId": job_id,
        "description": task.title,
        "prompt": task.prompt,
        "outputFile": "",
    }
    return ToolResult(LEFT.format(name=definition.name, id=job_id), data=data)


async def _finish(
    call: ToolContext, name: str, title: str, working: Coroutine[Any, Any, ToolResult]
) -> None:
    agent, session = call.agent, call.session
    result = await working
    how = "did not finish" if result.error else "is done"
    text = DONE.format(name=name, title=title, how=how, text=result.text)
    data: Any = result.data or {}
    if data.get("status") == "cancelled":  # by somebody who wants no more of it
        session.pending.append(context_block(text, NAME))
        return
    agent.steer(session, text)
