"""All servers of a session: started together, waited for shortly, closed together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from crow import Context, RunContext, Tool
from crow.events import CommandsChanged
from crow.extensions.mcp.auth.credential_store import CredentialStore
from crow.extensions.mcp.auth.sign_in import NEEDED
from crow.extensions.mcp.definitions import Definitions
from crow.extensions.mcp.description import Description
from crow.extensions.mcp.limits import Limits
from crow.extensions.mcp.mentions import attach, mentioned
from crow.extensions.mcp.naming import server_part, unambiguous
from crow.extensions.mcp.prompts import Prompts
from crow.extensions.mcp.resources import ListMcpResources, ReadMcpResource
from crow.extensions.mcp.server import Server
from crow.extensions.mcp.tool import McpTool
from crow.ports import waits_for_servers
from crow.process import ProcessReaper

if TYPE_CHECKING:
    from crow.extensions.mcp.server import KnownWays

STATES = {"connecting": "pending", "ready": "connected", "failed": "failed"}
"""How a server is, in the words of Claude Code."""
LAST_WORD = 0.5
QUIET = 1.0
"""Seconds that nobody needs to be told of."""


def everything(tool: str) -> bool:
    """True."""
    del tool
    return True


class Servers:
    """The servers of one session, and what the model can see of them.

    Connections belong to the session: its user answers the servers' questions, and they end with
    it. It lies in the session's cache; ``aclose`` ends everything. ``may_have`` says which tools
    there are to be.
    """

    def __init__(
        self,
        ctx: Context,
        descriptions: Iterable[Description],
        limits: Limits,
        definitions: Definitions,
        known: KnownWays,
        vault: CredentialStore,
    ) -> None:
        self.may_have: Callable[[str], bool] = everything
        self._ctx = ctx
        self._limits = limits
        self._prompts = Prompts(ctx.session)
        self._reaper = ProcessReaper()
        self._given: dict[str, Tool] = {}
        self._disposers: list[Callable[[], None]] = []
        self._told: set[str] = set()
        self._has_waited = False
        self._late: set[str] = set()
        alone, ambiguous = unambiguous(descriptions, lambda each: server_part(each.name))
        self.all = [
            Server(each, ctx, limits, definitions, self._reaper, known, vault)
            for each in alone.values()
        ]
        self.refused = [
            f"the MCP servers {', '.join(repr(each.name) for each in same)} are not started:"
            f" their tools would all be called mcp__{part}__..."
            for part, same in ambiguous.items()
        ]
        self._resources = (ListMcpResources(self._readable), ReadMcpResource(self._readable))

    def start(self) -> None:
        """Connect to all of them in the background."""
        for server in self.all:
            server.start()
            self._ctx.session.spawn(self._announce(server))

    async def _announce(self, server: Server) -> None:
        """Its prompts are commands as soon as it is there: before anything is asked."""
        await server.settled()
        if server.name in self._late and server.state == "ready":
            text = (
                f"the MCP server {server.name!r} is there now: its tools come with the next request"
            )
            await self._ctx.ui.notify(text)
            await self.show()
        await self.offer_prompts()
        if not waits_for_servers(self._ctx.client):  # else nobody types there
            await server.list_resources()

    def mentions(self) -> list[str]:
        """The resources, as prompts name them."""
        return [f"{server.name}:{uri}" for server in self.all for uri in server.uris]

    async def attach(self, ctx: RunContext, text: str) -> None:
        """Put the resources that a prompt names behind it."""
        by_name = {server.name: server for server in self.all}
        await attach(ctx, mentioned(text, by_name), by_name)

    async def settle(self, *, patiently: bool = False) -> None:
        """Wait for those that connect, once: a moment, or ``patiently`` until each is there.

        Then what the model sees is brought up to date.
        """
        if not self._has_waited:
            late = await self._late_after(QUIET if patiently else self._limits.wait)
            if late and patiently:
                what = _named("waiting for", late)
                await self._ctx.ui.notify(f"{what}, for up to {self._limits.connect:g} s")
                await self._late_after(None)
            elif late:
                self._late = {server.name for server in late}
                text = f"{_named('still waiting for', late)}: their tools come when they do"
                await self._ctx.ui.notify(text, severity="warning")
            self._has_waited = True
        await asyncio.gather(*(server.refresh() for server in self.all))

    async def _late_after(self, seconds: float | None) -> list[Server]:
        """Those that are neither there nor have failed by then."""
        waiting = {asyncio.ensure_future(each.settled()): each for each in self.all}
        if not waiting:
            return []
        try:
            _, late = await asyncio.wait(waiting, timeout=seconds)
        finally:
            for each in waiting:
                each.cancel()
        return [server for each, server in waiting.items() if each in late]

    async def show(self) -> bool:
        """Put the tools into the session, and the prompts among the commands; True where new."""
        tools = self._tools()
        is_new = list(tools.items()) != list(self._given.items())
        if is_new:
            self._hide()
            self._given = tools
            self._disposers = [self._ctx.session.add_tool(tool) for tool in tools.values()]
        await self.offer_prompts()
        await self._warn()
        return is_new

    def hide(self) -> None:
        """Take tools and prompts out of the session, until they are shown again."""
        self._hide()
        self._prompts.forget()

    def _hide(self) -> None:
        """Take the tools out of the session."""
        for dispose in self._disposers:
            dispose()
        self._disposers, self._given = [], {}

    async def offer_prompts(self) -> None:
        """Put the prompts among the commands, and tell the client where they have changed."""
        if self._prompts.offer(self._ctx.agent, self.all):
            await self._ctx.emit(CommandsChanged())

    def _tools(self) -> dict[str, Tool]:
        alone, _ = self._by_name()
        taken = set(self._ctx.agent.tools_of(self._ctx.session)) - set(self._given)
        tools: dict[str, Tool] = {n: tool for n, tool in alone.items() if n not in taken}
        if self._readable():
            tools |= {each.name: each for each in self._resources if each.name not in taken}
        return {name: tool for name, tool in tools.items() if self.may_have(name)}

    def _by_name(self) -> tuple[dict[str, McpTool], dict[str, list[McpTool]]]:
        every = [tool for server in self.all for tool in server.tools]
        return unambiguous(every, lambda tool: tool.name)

    def _readable(self) -> Mapping[str, Server]:
        return {server.name: server for server in self.all if server.has_resources}

    def offered(self) -> list[dict[str, Any]]:
        """The servers as programs are told of them, in Claude Code's words."""
        return [told_of(server) for server in self.all]

    def warnings(self) -> list[str]:
        """What is left out, and why."""
        found = list(self.refused)
        found += [
            f"the tool {tool!r} of the MCP server {server.name!r} is left out: {reason}"
            for server in self.all
            for tool, reason in server.dropped.items()
        ]
        alone, ambiguous = self._by_name()
        for name, same in ambiguous.items():
            which = ", ".join(repr(f"{tool.server.name}/{tool.raw_name}") for tool in same)
            found.append(f"the MCP tools {which} are left out: each would be called {name}")
        found += [
            f"an MCP tool is left out: there is a tool {name} already"
            for name in alone
            if name in self._ctx.agent.tools
        ]
        return found

    async def _warn(self) -> None:
        for text in self.warnings():
            if text not in self._told:
                self._told.add(text)
                await self._ctx.ui.notify(text, severity="warning")

    async def aclose(self) -> None:
        """Close all connections, each in its own task, and wait for that a bounded time."""
        tasks = {server.task for server in self.all if server.task is not None}
        for seconds in (2 * self._limits.close, LAST_WORD):
            tasks = {task for task in tasks if not task.done()}
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks, timeout=seconds)
        self.hide()
        await asyncio.to_thread(self._reaper.close)


def told_of(server: Server) -> dict[str, Any]:
    """How a server is, where it is described, and the tools that it has."""
    status = STATES[server.state]
    if status == "failed" and NEEDED in server.error:
        status = "needs-auth"
    source = "sdk" if server.description.transport == "client" else server.description.whose
    told: dict[str, Any] = {"name": server.name, "status": status, "source": source}
    if server.error:
        told["error"] = server.error
    if about := server.about:
        told["serverInfo"] = {key: about.get(key, "") for key in ("name", "version")}
    if status == "connected":
        told["tools"] = [
            {"name": each.raw_name, "description": each.description} for each in server.tools
        ]
    return told


def _named(what: str, servers: Iterable[Server]) -> str:
    names = [repr(server.name) for server in servers]
    return f"{what} the MCP server{'s' if len(names) > 1 else ''} {', '.join(names)}"
