"""A session for its MCP servers alone: nothing else of the user's runs in it, and no model."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crow.cli.ask import read_line
from crow.cli.options import directory, load_agent, settings_of
from crow.cli.output import Output
from crow.core.agent import Agent
from crow.core.errors import CrowError
from crow.core.events import Event, Notice
from crow.core.ports.client import NullClient, Question
from crow.core.support.validation import implementing
from crow.entry_points import inside
from crow.ports.extensions import ServerBringer
from crow.project.trust import is_trusted

if TYPE_CHECKING:
    from crow.extensions.mcp import McpHook
    from crow.extensions.mcp.server import Server

NEEDED = ("mcp", "sandbox")
"""The extensions that servers need: their own, and who confines them."""


class Person(NullClient):
    """Whoever has typed a command about a server, and wants that."""

    answers = True

    def __init__(self, out: Output, *, opens_pages: bool) -> None:
        self.opens_pages = opens_pages
        self._out = out

    async def update(self, session_id: str, event: Event) -> None:
        """Show what is no part of the answer."""
        if isinstance(event, Notice) and event.severity == "info":
            self._out.note(event.text)

    async def ask(self, session_id: str, question: Question) -> Any:
        """A page is wanted; what is asked about it is typed, and nothing else can be answered."""
        if question.url:
            self._out.note(question.text)
            return question.choices[0]
        if question.kind != "text":
            return question.default
        self._out.note(question.text)
        with suppress(OSError):  # nothing can be typed
            return await read_line() or ""
        return ""


def hook_of(options: argparse.Namespace, out: Output) -> tuple[Agent, McpHook]:
    """The extension that the command line's agent has. Raises `CrowError`."""
    agent = load_agent(options, out)
    hook: Any = agent.extensions.get("mcp")
    if hook is None:
        raise CrowError("the extension mcp is switched off, or broken: crow ext list")
    for each in implementing(agent.extensions.values(), ServerBringer):
        hook.servers.update(each.mcp_servers or {})
    return agent, hook


@asynccontextmanager
async def connected(
    options: argparse.Namespace, out: Output, name: str | None = None
) -> AsyncGenerator[list[Server]]:
    """All servers, or the one of this name, each of them there or failed."""
    held = inside("mcp").HELD
    agent, hook = hook_of(options, out)
    hook.only = None if name is None else frozenset({name})
    used = [each for each in map(agent.extensions.get, NEEDED) if each is not None]
    person = Person(out, opens_pages=not options.no_browser)
    async with Agent(agent.llm, hooks=used, tools=[]) as lone:
        session = await lone.new_session(directory(options), client=person)
        servers = hook.servers_in(session)
        found = [] if servers is None else servers.all
        await asyncio.gather(*(server.settled() for server in found))
        yield found
        if servers is not None:
            held.pop(session)
            await servers.aclose()


def servers_known(options: argparse.Namespace, out: Output) -> list[Mapping[str, object]]:
    """What is known of all servers without connecting; nothing that is secret."""
    _, hook = hook_of(options, out)
    rows: list[Mapping[str, object]] = [each.shown for each in hook.described()]
    names = {row["name"] for row in rows}
    rest = [*broken_servers(hook), *withheld_servers(options)]
    return [*rows, *(row for row in rest if row["name"] not in names)]


def broken_servers(hook: McpHook) -> Iterator[dict[str, str]]:
    """The servers whose description makes no sense, and why."""
    for each in hook.misdescribed():
        about = {"name": each.name, "state": "invalid", "transport": "", "place": ""}
        yield {**about, "source": each.source, "why": each.reason}


def refused_servers(hook: McpHook) -> Iterator[dict[str, str]]:
    """The servers that the settings let nobody use, and why."""
    for each in hook.described():
        if why := hook.refusal(each):
            about = {"name": each.name, "state": "refused", "transport": each.transport}
            yield {**about, "place": each.place, "source": each.source, "why": why}


def withheld_servers(options: argparse.Namespace) -> Iterator[dict[str, str]]:
    """The servers of a project that the user does not trust."""
    from crow.app.plugins import brought_of

    read = inside("mcp", "description")
    settings = settings_of(options)
    project = Path(settings.project)
    if settings.trusted and is_trusted(project):
        return
    tables: list[tuple[Mapping[str, Any], str]] = [
        (each.table.get("mcpServers") or {}, "project") for each in settings.withheld
    ]
    theirs = [each for each in brought_of(settings, trusted=True) if each.kind == "server"]
    tables += [({it.name: it.value}, str(it.path)) for it in theirs if it.is_project]
    told = [one for table, source in tables for one in read.from_table(table, source)]
    for each in (*read.from_project(project), *told):
        if isinstance(each, read.Description):
            about = {"name": each.name, "state": "untrusted", "transport": each.transport}
            more = {"place": each.place, "source": each.source, "why": "crow trust"}
            yield {**about, **more}
