"""``/mcp``: the servers of a session, how they are, and what they offer."""

from __future__ import annotations

from collections.abc import Iterator

from crow import Answer
from crow.extensions.mcp.server import Server
from crow.extensions.mcp.servers import Servers

NONE = "This session has no MCP servers."


async def listed(servers: Servers | None, wish: str) -> Answer:
    """List the servers, or connect one again: ``reconnect NAME``, ``login NAME``, ``log NAME``."""
    if servers is None or not (servers.all or servers.refused):
        return Answer(NONE)
    verb, _, name = wish.partition(" ")
    if verb in ("reconnect", "login"):
        return await _reconnect(servers, name.strip(), sign_in=verb == "login")
    if verb == "log":
        return _logged(servers, name.strip())
    lines = [line for server in servers.all for line in _lines(server)]
    return Answer("\n".join([*lines, *(f"! {text}" for text in servers.warnings())]))


async def _reconnect(servers: Servers, name: str, *, sign_in: bool) -> Answer:
    for server in servers.all:
        if server.name == name:
            server.reconnect(sign_in=sign_in)
            await server.settled()
            return Answer("\n".join(_lines(server)))
    return _unknown(servers, name)


def _unknown(servers: Servers, name: str) -> Answer:
    known = ", ".join(server.name for server in servers.all)
    return Answer(f"There is no MCP server {name!r}; there are: {known}")


def _logged(servers: Servers, name: str) -> Answer:
    for server in servers.all:
        if server.name == name:
            return Answer(
                "\n".join(server.logged) or f"The MCP server {name!r} has logged nothing."
            )
    return _unknown(servers, name)


def _lines(server: Server) -> Iterator[str]:
    described = server.description
    state = f"{server.state}: {server.error}" if server.error else server.state
    where = f"{described.transport}, {described.place}, from {described.source}"
    yield f"{server.name} ({where}): {state}"
    if server.tools:
        yield f"  tools: {', '.join(tool.raw_name for tool in server.tools)}"
    if server.prompts:
        yield f"  prompts: {', '.join(prompt.name for prompt in server.prompts)}"
    if server.has_resources:
        yield "  has resources"
