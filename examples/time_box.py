"""A run has so many minutes: the model is told when they are nearly over, then the run ends.

    crow run --extension examples/time_box.py "Clean up the whole project"

The user's time does not count: a question that waits would else use up the run.
"""

import time
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

from crow import Completion, Context, RunContext, ToolContext, ToolResult, TurnContext
from crow.hooks import NextCall, NextRequest

T = TypeVar("T")


@dataclass
class TimeBox:
    minutes: float = 10
    warn: float = 0.8
    """The part of the time after which the model is told."""

    def before_run(self, ctx: RunContext) -> None:
        ctx.state["spent"], ctx.state["told"] = 0.0, False

    async def around_llm_request(self, ctx: TurnContext, call_next: NextRequest) -> Completion:
        return await self.measured(ctx, call_next())

    async def around_tool(self, ctx: ToolContext, call_next: NextCall) -> ToolResult:
        return await self.measured(ctx, call_next())  # permitted by now: the user has answered

    async def measured(self, ctx: Context, work: Awaitable[T]) -> T:
        started = time.monotonic()
        try:
            return await work
        finally:
            ctx.state["spent"] = ctx.state.get("spent", 0.0) + time.monotonic() - started

    async def after_turn(self, ctx: TurnContext) -> None:
        part = ctx.state.get("spent", 0.0) / (60 * self.minutes)
        if part >= 1:
            ctx.stop(f"the {self.minutes:g} minutes are over")
        elif part >= self.warn and not ctx.state["told"]:
            ctx.state["told"] = True
            await ctx.inject_context(
                "Your time is nearly over: come to an end, and say what is left."
            )
