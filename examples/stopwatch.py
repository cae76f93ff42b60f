"""An extension in Flask's style: it gets the agent, wraps every tool call and adds `/times`.

    agent = Agent()
    Stopwatch(agent)            # or agent.use(Stopwatch), or Agent(hooks=[Stopwatch()])

What it remembers is kept in ``ctx.state``, which is JSON and stored with the session.
"""

from __future__ import annotations

import time
from typing import Any

from crow import Agent, Answer, Command, Context, ToolContext


class Stopwatch:
    def __init__(self, agent: Agent | None = None) -> None:
        if agent is not None:
            self.init_agent(agent)

    def init_agent(self, agent: Agent) -> None:
        agent.hooks.register("around_tool", self.measure)
        agent.add_command(Command("times", "How long each tool took", self.times))
        agent.extensions["stopwatch"] = self

    async def measure(self, ctx: ToolContext, call_next: Any) -> Any:
        started = time.perf_counter()
        try:
            return await call_next()
        finally:
            took = time.perf_counter() - started
            ctx.state[ctx.name] = ctx.state.get(ctx.name, 0.0) + took

    async def times(self, ctx: Context) -> Answer:
        spent = ctx.session.state.get("stopwatch", {})
        return Answer("\n".join(f"{tool}: {took:.3f} s" for tool, took in spent.items()))
