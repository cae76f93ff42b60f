"""Servers of the Model Context Protocol: their tools, prompts and resources in a session.

They come from the client (for its session alone), from the settings, from what Claude Code keeps
for the project in ``~/.claude.json``, from the ``.mcp.json`` of a project that the user trusts,
from the rest of ``~/.claude.json``, and from what its user has for other agents; of two with the
same name the first in this order counts.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from crow import (
    Agent,
    Answer,
    Ask,
    Command,
    CommandContext,
    Context,
    RunContext,
    Session,
    SessionContext,
    ToolContext,
    TurnContext,
    hook,
)
from crow.dataclasses import frozen
from crow.extensions.mcp.events import ELICITATION, RESULT
from crow.extensions.mcp.events import ElicitationContext as ElicitationContext
from crow.extensions.mcp.events import ElicitationResultContext as ElicitationResultContext
from crow.extensions.mcp.limits import Limits, LogLevel, McpOptions
from crow.hooks import FIRST
from crow.keys import CLIENT_SERVERS, Key
from crow.messages import text_of
from crow.ports import (
    ServerBringer,
    ServerClient,
    implementing,
    implements,
    waits_for_servers,
)
from crow.project import ServerPolicy, from_home

if TYPE_CHECKING:
    from crow.extensions.mcp.claude_json import ClaudeServers
    from crow.extensions.mcp.definitions import Definitions
    from crow.extensions.mcp.description import Description, DescriptionError
    from crow.extensions.mcp.server import KnownWays
    from crow.extensions.mcp.servers import Servers
    from crow.extensions.mcp.session_servers import SessionServers
    from crow.project import Brought, ProjectSettings

HELD: Key[Held] = Key("mcp.servers")
LONGEST_WAIT = 24 * 3600.0
"""Seconds of a hook that waits: each server has a limit of its own."""
CHANGED = "mcp: the definition of a tool has changed"


class McpHook:
    """Connects to MCP servers and lends their tools, prompts and resources to the session.

    ``servers`` maps names to descriptions as in ``.mcp.json``: ``command``, ``args``, ``env`` and
    ``cwd``, or ``type`` (``http`` or ``sse``), ``url`` and ``headers``; or to servers of this
    process, which are objects of the library (``mcp.server.MCPServer``). ``project`` is a trusted
    project's directory, whose ``.mcp.json`` counts; ``claude`` is a directory for which the
    servers of Claude Code's ``~/.claude.json`` count; those ``brought`` along from other agents
    come last; ``only`` are the names of servers beside which there are to be no others, ``policy``
    says which of all may be used. Extensions
    name servers of theirs in the same way, in an attribute ``mcp_servers``; clients as a list: in
    their attribute ``mcp_servers``, or in the session's option of that name; later ones in the
    session's cache (`CLIENT_SERVERS`).

    All connect in the background; the first request waits ``wait`` seconds for them, and each gets
    ``connect_timeout``. Where ``wait`` is not given, a client with a true ``waits_for_servers``
    (`crow run` is one) waits until each of them is there or has failed. A call may be silent for
    ``call_timeout``. A process gets half of ``close_timeout`` to end with its input, and the other
    half after SIGTERM. All in seconds.
    """

    name = "mcp"
    order = 160
    serves_mcp = True
    options = McpOptions

    def __init__(
        self,
        servers: Mapping[str, Any] | None = None,
        *,
        project: str | Path | None = None,
        claude: str | Path | None = None,
        connect_timeout: float = 60.0,
        call_timeout: float = 300.0,
        close_timeout: float = 1.0,
        wait: float | None = None,
        log_level: LogLevel = "info",
        only: Sequence[str] | None = None,
        brought: Sequence[Brought] = (),
        off: Sequence[str] = (),
        policy: ServerPolicy | None = None,
    ) -> None:
        self.servers = dict(servers or {})
        self.project = None if project is None else Path(os.path.expanduser(project))
        self.claude = None if claude is None else Path(claude)
        self.wait = wait
        waited = Limits().wait if wait is None else wait
        self.limits = Limits(
            connect_timeout, call_timeout, waited, close_timeout, log_level=log_level
        )
        self.only = None if only is None else frozenset(only)
        self.brought = [each for each in brought if each.kind == "server"]
        self.off = frozenset(off)
        self.policy = policy
        self._definitions: Definitions | None = None
        self._known: KnownWays = {}

    @classmethod
    def options_from(cls, settings: ProjectSettings, own: Mapping[str, Any]) -> dict[str, Any]:
        """The options, with all settings' servers; an untrusted project starts none."""
        policy = settings.server_policy
        written: dict[str, Any] = {} if policy.only_plugins else own.get("servers") or {}
        servers: dict[str, Any] = {**settings.mcp_servers, **written}
        project = settings.project if settings.trusted else None
        more = {"project": project, "claude": settings.project, "brought": settings.brought}
        return {**own, "servers": servers, "policy": policy, **more}

    def init_agent(self, agent: Agent) -> None:
        """Add the command and the events."""
        for point in (ELICITATION, RESULT):
            if point.name not in agent.hooks.names:
                agent.hooks.define(point)
        agent.add_command(COMMAND)

    def init_session(self, session: Session) -> None:
        """Add the command; the events are the agent's."""
        session.add_command(COMMAND)

    @asynccontextmanager
    async def lifespan(self, host: Agent | Session) -> AsyncGenerator[None]:
        """At the end no server is left, whoever forgot to close a session."""
        yield
        sessions = [host] if isinstance(host, Session) else host.sessions.values()
        left = [HELD.pop(session) for session in sessions]
        await asyncio.gather(*(held.aclose() for held in left if held is not None))

    def brings_tools(self, session: Session) -> bool:
        """True where servers may bring tools in the middle of a session."""
        held = HELD.get(session.root)
        return held is not None and held.servers is not None

    def mentions(self, session: Session) -> list[str]:
        """What can stand behind ``@`` in a prompt: ``server:uri`` of the resources."""
        servers = self.servers_in(session)
        return [] if servers is None else servers.mentions()

    def offers_in(self, session: Session) -> dict[str, list[Any]]:
        """The servers of a session, as programs are told of them."""
        servers = self.servers_in(session)
        wrong = [
            {"name": each.name, "status": "failed", "error": each.reason}
            for each in self.misdescribed()
            if each.name
        ]
        return {"mcp_servers": [*(servers.offered() if servers is not None else ()), *wrong]}

    async def arrive(self, session: Session) -> None:
        """Wait for the servers of a session as its first request does."""
        ctx = SessionContext(cast("Agent", session.agent), session)
        servers = await self._bring(ctx)
        if servers is not None:
            await servers.settle(patiently=self._is_patient(ctx))
            await servers.show()

    @hook("on_session_start", order=FIRST)
    async def connect(self, ctx: Context) -> None:
        """Start the servers of a session; a sub-agent has its parent's."""
        await self._bring(ctx)

    def _held(self, session: Session) -> Held | None:
        """What a session holds, as long as it is what the session should have."""
        held = HELD.get(session)
        is_right = held is not None and held.by is self and held.named == wanted_in(session)
        return held if is_right else None

    async def _bring(self, ctx: Context) -> Servers | None:
        """The servers that a session should have now; those that run stay if none has changed."""
        session = ctx.session.root
        if (held := self._held(session)) is not None:
            return held.servers
        named, held = wanted_in(session), HELD.get(session)
        own = SessionContext(cast("Agent", session.agent), session)
        own.owner = ctx.owner
        every, problems = self._found(named)
        found = {name: each for name, each in every.items() if not self.refusal(each)}
        for problem in problems:
            await own.ui.notify(str(problem), severity="warning")
        if held is not None and held.found != found:
            await held.aclose()
        servers = None if held is None or held.found != found else held.servers
        if servers is not None and held is not None and held.by is not self:
            servers.hide()  # what another one has hung goes with it, and comes again
        if found and servers is None:
            await asyncio.to_thread(import_module, "crow.extensions.mcp.servers")
            servers = self._started(own, found)
        HELD.set(session, Held(self, named, found, servers))
        return servers

    def described(self) -> list[Description]:
        """The servers of every session, but those of clients."""
        return list(self._found((None, {}))[0].values())

    def misdescribed(self) -> list[DescriptionError]:
        """What is wrong with descriptions of servers, but those of clients."""
        return self._found((None, {}))[1]

    def refusal(self, server: Description) -> str:
        """Why a server may not be used; empty where it may."""
        if self.policy in (None, ServerPolicy()):
            return ""
        from crow.extensions.mcp.policy import refusal

        return refusal(self.policy, server)

    def servers_in(self, session: Session) -> Servers | None:
        """The servers of a session; None where it has none."""
        held = HELD.get(session.root)
        return None if held is None else held.servers

    def own_servers(
        self, described: Mapping[str, Any], source: str, may_have: Callable[[str], bool]
    ) -> SessionServers:
        """Who connects to further servers in one session alone, such as an agent's.

        ``described`` are descriptions by name, of the file ``source``; ``may_have`` says which
        of their tools there are. Nothing here asks whether its user trusts that.
        """
        from crow.extensions.mcp.session_servers import SessionServers

        only = {n: it for n, it in described.items() if self.only is None or n in self.only}
        return SessionServers(self._started, self._is_patient, only, source, may_have)

    def _started(self, ctx: SessionContext, found: Mapping[str, Description]) -> Servers:
        from crow.extensions.mcp.auth.credential_store import CredentialStore
        from crow.extensions.mcp.definitions import Definitions
        from crow.extensions.mcp.servers import Servers

        self._definitions = self._definitions or Definitions()
        vault = CredentialStore()
        used = [each for each in found.values() if not self.refusal(each)]
        servers = Servers(ctx, used, self.limits, self._definitions, self._known, vault)
        servers.start()
        return servers

    def _found(
        self, named: tuple[object, Mapping[str, object]]
    ) -> tuple[dict[str, Description], list[DescriptionError]]:
        client, lent = named
        kept, file = _of_claude(self.claude), _shared_file(self.project)
        if not (client or self.servers or lent or kept or file or self.brought):
            return {}, []  # mostly, and nothing is imported
        from crow.extensions.mcp.description import (
            DescriptionError,
            from_client,
            from_project,
            from_table,
        )

        described = [
            *from_client(client),
            *from_table(self.servers, "settings"),
            *from_table(lent, "extension"),
        ]
        described += kept.local if kept else ()
        if file is not None:
            shared = from_project(file)
            off = {*self.off, *(kept.off if kept else ())}
            described += (each for each in shared if getattr(each, "name", "") not in off)
        described += kept.user if kept else ()
        for each in self.brought:
            described += from_table({each.name: each.value}, from_home(each.path))
        found: dict[str, Description] = {}
        problems: list[DescriptionError] = []
        for each in described:
            if isinstance(each, DescriptionError):
                problems.append(each)
            elif self.only is None or each.name in self.only:
                found.setdefault(each.name, each)
        return found, problems

    @hook("before_run", order=FIRST, timeout=LONGEST_WAIT)
    async def await_prompt(self, ctx: RunContext) -> None:
        """A server's prompt may be typed before the server is there: wait for it a moment.

        What the prompt names as ``@server:uri`` is read, and follows it.
        """
        servers = await self._bring(ctx)
        if servers is None:
            return
        text = text_of(ctx.prompt)
        if text.startswith("/mcp__"):
            await servers.settle(patiently=self._is_patient(ctx))
            await servers.offer_prompts()
        if ctx.session.parent is None:
            await servers.attach(ctx, text)

    @hook("before_llm_request", order=FIRST, timeout=LONGEST_WAIT)
    def offer(self, ctx: TurnContext) -> Awaitable[None] | None:
        """Between two turns: what has changed in the servers' lists reaches the model."""
        held = self._held(ctx.session.root)
        return None if held is not None and held.servers is None else self._offer(ctx)

    async def _offer(self, ctx: TurnContext) -> None:
        servers = await self._bring(ctx)
        if servers is None or ctx.session.parent is not None:
            return
        await servers.settle(patiently=self._is_patient(ctx))
        if await servers.show():
            ctx.tools = list(ctx.agent.tool_specs(ctx.session))

    def _is_patient(self, ctx: Context) -> bool:
        return self.wait is None and waits_for_servers(ctx.client)

    @hook("before_tool", order=FIRST, timeout=LONGEST_WAIT)
    def look(self, ctx: ToolContext) -> Awaitable[None] | None:
        """Servers that settings do not name any more end before anything is called."""
        return self.connect(ctx) if self._held(ctx.session.root) is None else None

    @hook("before_tool")
    def judge(self, ctx: ToolContext) -> Ask | None:
        """Ask about a tool that was used before and has become another one since."""
        from crow.ports import ChangedTool

        change = ctx.tool.change if implements(ctx.tool, ChangedTool) else ""
        return Ask(f"{ctx.name} {change}", rule=CHANGED) if change else None


@frozen
class Held:
    """The servers of a session: those that were ``found``, for ``by``, and what was ``named``."""

    by: McpHook
    named: object
    found: Mapping[str, Description]
    servers: Servers | None

    async def aclose(self) -> None:
        """End them all."""
        if self.servers is not None:
            await self.servers.aclose()


def _shared_file(project: Path | None) -> Path | None:
    """The ``.mcp.json`` of a project, or the file in its place; None where there is none."""
    if project is None:
        return None
    file = project / ".mcp.json" if project.is_dir() else project
    return file if os.path.lexists(file) else None


def _of_claude(project: Path | None) -> ClaudeServers | None:
    """The servers of Claude Code; None, and nothing imported, where it was never here."""
    file = Path.home() / ".claude.json"
    if project is None or not file.exists():
        return None
    from crow.extensions.mcp.claude_json import from_claude

    return from_claude(project, file)


async def _list(ctx: CommandContext) -> Answer:
    from crow.extensions.mcp.command import listed

    held = HELD.get(ctx.session.root)
    return await listed(None if held is None else held.servers, ctx.args)


COMMAND = Command(
    "mcp", "List the MCP servers of this session", _list, "[reconnect|login|log <server>]"
)


def wanted_in(session: Session) -> tuple[object, Mapping[str, object]]:
    """What a session's client names, and what an agent lends it."""
    return (_named(session), _lent(session))


def _named(session: Session) -> object:
    """The servers that the client names; they may hold secrets and are never stored."""
    cache, asked = session.cache, session.options.pop("mcp_servers", None)
    if asked is not None or CLIENT_SERVERS not in cache:
        client = session.client
        cache[CLIENT_SERVERS] = asked or (
            client.mcp_servers if implements(client, ServerClient) else None
        )
    return cache[CLIENT_SERVERS]


def _lent(session: Session) -> dict[str, object]:
    """The servers that extensions bring along, by name."""
    agent: Any = session.agent
    extensions = agent.extensions_of(session).values()
    lent: dict[str, object] = {}
    for each in implementing(extensions, ServerBringer):
        lent.update(each.mcp_servers or {})
    return lent
