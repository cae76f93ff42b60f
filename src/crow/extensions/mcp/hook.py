"""The extension: servers of the Model Context Protocol in every session that has some.

They come from the client (for its session alone), from the settings, and from the ``.mcp.json`` of
a project that the user trusts; of two with the same name the first in this order counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crow.core.agent import Agent
from crow.core.catalog import Command
from crow.core.contexts import (
    CommandContext,
    Context,
    RunContext,
    SessionContext,
    ToolContext,
    TurnContext,
)
from crow.core.hooks import FIRST, Owner, hook
from crow.core.messages import text_of
from crow.core.session import Session
from crow.core.verdicts import Answer, Ask
from crow.extensions.mcp.events import ELICITATION, RESULT
from crow.extensions.mcp.limits import Limits

if TYPE_CHECKING:
    from crow.extensions.mcp.definitions import Definitions
    from crow.extensions.mcp.description import Description, DescriptionError
    from crow.extensions.mcp.prompts import Prompts
    from crow.extensions.mcp.server import KnownWays
    from crow.extensions.mcp.servers import Servers

KEY = "mcp.servers"
OWN = "mcp.own"
NAMED = "mcp.named"
LONGEST_WAIT = 24 * 3600.0
"""Seconds of a hook that waits: each server has a limit of its own."""
CHANGED = "mcp: the definition of a tool has changed"


class McpHook:
    """Connects to MCP servers and lends their tools, prompts and resources to the session.

    ``servers`` maps names to descriptions as in ``.mcp.json``: ``command``, ``args``, ``env`` and
    ``cwd``, or ``type`` (``http`` or ``sse``), ``url`` and ``headers``. ``project`` is a trusted
    project's directory, whose ``.mcp.json`` counts. A client names its own servers in the same way,
    as a list: in its attribute ``mcp_servers``, or in the session's option of that name.

    All connect in the background; the first request waits ``wait`` seconds for them, and each gets
    ``connect_timeout``. Where ``wait`` is not given, a client with a true ``waits_for_servers``
    (`crow run` is one) waits until each of them is there or has failed. A call may be silent for
    ``call_timeout``. A process gets half of ``close_timeout`` to end with its input, and the other
    half after SIGTERM. All in seconds.
    """

    name = "mcp"

    def __init__(
        self,
        servers: Mapping[str, Any] | None = None,
        *,
        project: str | Path | None = None,
        connect_timeout: float = 60.0,
        call_timeout: float = 300.0,
        close_timeout: float = 1.0,
        wait: float | None = None,
    ) -> None:
        self.servers = dict(servers or {})
        self.project = None if project is None else Path(project).expanduser()
        self.wait = wait
        waited = Limits().wait if wait is None else wait
        self.limits = Limits(connect_timeout, call_timeout, waited, close_timeout)
        self._definitions: Definitions | None = None
        self._owners: dict[Agent, Owner | None] = {}
        self._prompts: dict[Agent, Prompts] = {}
        self._known: KnownWays = {}

    def init_agent(self, agent: Agent) -> None:
        """Add the command and the events."""
        for point in (ELICITATION, RESULT):
            if point.name not in agent.hooks.names:
                agent.hooks.define(point)
        self._owners[agent] = agent.hooks.owner
        about = "List the MCP servers of this session"
        agent.add_command(Command("mcp", about, _list, "[reconnect <server>]"))

    @asynccontextmanager
    async def lifespan(self, agent: Agent) -> AsyncGenerator[None]:
        """At the end no server is left, whoever forgot to close a session."""
        yield
        left = [session.cache.pop(KEY, None) for session in agent.sessions.values()]
        await asyncio.gather(*(servers.aclose() for servers in left if servers is not None))
        self._prompts.pop(agent, None)

    @hook("on_session_start", order=FIRST)
    async def connect(self, ctx: SessionContext) -> None:
        """Start the servers of a session; a sub-agent has its parent's."""
        named = ctx.session.options.pop("mcp_servers", None)  # may hold secrets: never stored
        if ctx.session.parent is not None or KEY in ctx.session.cache:
            return
        if named is None:
            named = getattr(ctx.client, "mcp_servers", None)
        await self._connect(ctx, named)

    async def _connect(self, ctx: SessionContext, named: object) -> None:
        """Start what the client named, and what the session's settings name."""
        own: McpHook = ctx.session.cache.setdefault(OWN, self)
        ctx.session.cache[NAMED] = named
        if not named and not own.servers and own.project is None:
            return
        found, problems = own._found(named)
        for problem in problems:
            await ctx.ui.notify(str(problem), severity="warning")
        if found:
            self._start(ctx, found)

    async def replace(self, ctx: SessionContext, other: McpHook) -> None:
        """Use the servers of another one in a session from now on, in place of these."""
        before: McpHook = ctx.session.cache.get(OWN, self)
        ctx.session.cache[OWN] = other
        if NAMED not in ctx.session.cache or before.same_as(other):
            return
        running = ctx.session.cache.pop(KEY, None)
        if running is not None:
            await running.aclose()
        await self._connect(ctx, ctx.session.cache[NAMED])

    async def take(self, agent: Agent, session: Session, named: object) -> None:
        """Use what the client of an open session names now, if that is something else."""
        cache = session.cache
        if NAMED not in cache or (named or None) == (cache[NAMED] or None):
            return
        running = cache.pop(KEY, None)
        if running is not None:
            await running.aclose()
        ctx = SessionContext(agent, session, source="load")
        owner = self._owners.get(agent)
        ctx.owner = owner.name if owner else self.name
        await self._connect(ctx, named)

    def same_as(self, other: McpHook) -> bool:
        """True where the other one would start the same servers."""
        return self._found(None)[0] == other._found(None)[0]

    def _start(self, ctx: SessionContext, found: Mapping[str, Description]) -> None:
        from crow.extensions.mcp.definitions import Definitions
        from crow.extensions.mcp.prompts import Prompts
        from crow.extensions.mcp.servers import Servers

        agent = ctx.agent
        self._definitions = self._definitions or Definitions()
        if agent not in self._prompts:
            self._prompts[agent] = Prompts(agent, self._owners.get(agent))
        own = SessionContext(agent, ctx.session, source=ctx.source)
        own.owner = ctx.owner
        prompts = self._prompts[agent]
        known = self._known
        servers = Servers(own, found.values(), self.limits, self._definitions, prompts, known)
        ctx.session.cache[KEY] = servers
        servers.start()

    def _found(self, named: object) -> tuple[dict[str, Description], list[DescriptionError]]:
        from crow.extensions.mcp.description import (
            DescriptionError,
            from_client,
            from_project,
            from_table,
        )

        described = [*from_client(named), *from_table(self.servers, "settings")]
        if self.project is not None:
            described += from_project(self.project)
        found: dict[str, Description] = {}
        problems: list[DescriptionError] = []
        for each in described:
            if isinstance(each, DescriptionError):
                problems.append(each)
            else:
                found.setdefault(each.name, each)
        return found, problems

    @hook("before_run", order=FIRST, timeout=LONGEST_WAIT)
    async def await_prompt(self, ctx: RunContext) -> None:
        """A server's prompt may be typed before the server is there: wait for it a moment."""
        servers = _servers(ctx.session)
        if servers is not None and text_of(ctx.prompt).startswith("/mcp__"):
            await servers.settle(patiently=self._is_patient(ctx))
            await servers.offer_prompts()

    @hook("before_llm_request", order=FIRST, timeout=LONGEST_WAIT)
    async def offer(self, ctx: TurnContext) -> None:
        """Between two turns: what has changed in the servers' lists reaches the model."""
        servers = _servers(ctx.session)
        if servers is None:
            return
        await servers.settle(patiently=self._is_patient(ctx))
        if await servers.show():
            ctx.tools = list(ctx.agent.tool_specs(ctx.session))

    def _is_patient(self, ctx: Context) -> bool:
        return self.wait is None and bool(getattr(ctx.client, "waits_for_servers", False))

    @hook("before_tool")
    def judge(self, ctx: ToolContext) -> Ask | None:
        """Ask about a tool that was used before and has become another one since."""
        change = getattr(ctx.tool, "change", "")
        return Ask(f"{ctx.name} {change}", rule=CHANGED) if change else None


def _servers(session: Session) -> Servers | None:
    return session.cache.get(KEY)


async def _list(ctx: CommandContext) -> Answer:
    from crow.extensions.mcp.command import listed

    return await listed(_servers(ctx.session), ctx.args)
