"""Ends one tool call by itself: a hook around every call keeps hold of what runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from crow.core.agent import Agent
from crow.core.hooks.contexts import ToolContext
from crow.core.hooks.discovery import hook
from crow.core.hooks.registry import LAST
from crow.core.tools import ToolResult

NAME = "tool_cancel"
ENDED = "ended by the user; what it had done by then stays done"
NOT_BEGUN = "ended by the user before it began"


class Cancelling:
    """The running calls by session and call; innermost of all that hangs around a tool."""

    def __init__(self) -> None:
        self._running: dict[tuple[str, str], asyncio.Task[Any]] = {}
        self._ended: set[tuple[str, str]] = set()
        self._early: set[tuple[str, str]] = set()

    @classmethod
    def of(cls, agent: Agent) -> Cancelling:
        """The agent's own; hung on it where it has none yet."""
        if NAME not in agent.extensions:
            agent.use(cls(), name=NAME)
        return agent.extensions[NAME]

    def cancel(self, session_id: str, call_id: str) -> None:
        """End a call that the client was told of; one that hooks still hold up never runs."""
        key = session_id, call_id
        task = self._running.get(key)
        if task is None:
            self._early.add(key)
        elif task.cancel():
            self._ended.add(key)

    @hook("before_tool", order=LAST)
    def before_tool(self, ctx: ToolContext) -> None:
        """Forget who of that name was ended when it had ended already."""
        self._early.discard((ctx.session.id, ctx.call.id))

    @hook("around_tool", order=LAST)
    async def around_tool(self, ctx: ToolContext, call_next: Callable[[], Awaitable[Any]]) -> Any:
        """Run the tool in a task of its own."""
        key = ctx.session.id, ctx.call.id
        if key in self._early:
            return ToolResult.failure(NOT_BEGUN)
        task = self._running[key] = asyncio.ensure_future(call_next())
        try:
            return await task
        except asyncio.CancelledError:
            if key not in self._ended or ctx.run.cancelled:
                task.cancel()
                await asyncio.wait([task])
                raise
            return ToolResult.failure(ENDED)
        finally:
            self._running.pop(key, None)
            self._ended.discard(key)
