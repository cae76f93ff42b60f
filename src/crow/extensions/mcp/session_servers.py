"""The servers of one session alone, such as those that an agent's file describes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from crow import Context, SessionContext, hook
from crow.extensions.mcp.description import Description, DescriptionError, from_table
from crow.hooks import FIRST
from crow.keys import Key

if TYPE_CHECKING:
    from crow import TurnContext
    from crow.extensions.mcp.servers import Servers

    Start = Callable[[SessionContext, Mapping[str, Description]], Servers]

LONGEST_WAIT = 24 * 3600.0
"""Seconds of a hook that waits: each server has a limit of its own."""
OWN: Key[Any] = Key("mcp.own")


class SessionServers:
    """Connects to servers when the session is first asked, and lends it their tools.

    They end with it; a sub-agent waits for each of them.
    """

    name = "own mcp"

    def __init__(
        self,
        start: Start,
        is_patient: Callable[[Context], bool],
        described: Mapping[str, Any],
        source: str,
        may_have: Callable[[str], bool],
    ) -> None:
        self._start = start
        self._is_patient = is_patient
        self._described = described
        self._source = source
        self._may_have = may_have

    @hook("before_llm_request", order=FIRST, timeout=LONGEST_WAIT)
    async def offer(self, ctx: TurnContext) -> None:
        """Wait for them once; what has changed in their lists reaches the model."""
        servers = OWN.get(ctx) or await self._connected(ctx)
        await servers.settle(patiently=ctx.session.parent is not None or self._is_patient(ctx))
        if await servers.show():
            ctx.tools = list(ctx.agent.tool_specs(ctx.session))

    async def _connected(self, ctx: Context) -> Servers:
        found: dict[str, Description] = {}
        for each in from_table(self._described, self._source):
            if isinstance(each, DescriptionError):
                await ctx.ui.notify(str(each), severity="warning")
            else:
                found[each.name] = each
        own = SessionContext(ctx.agent, ctx.session)
        own.owner = ctx.owner
        servers = OWN.set(ctx, self._start(own, found))
        servers.may_have = self._may_have
        return servers
