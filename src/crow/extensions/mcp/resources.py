"""The resources of servers as two tools: one lists them, one reads them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from crow import ToolEnvironment, ToolResult
from crow.extensions.mcp.failure import Gone, Refused
from crow.extensions.mcp.result import labelled, of_resource
from crow.tools import ToolKind

if TYPE_CHECKING:
    from crow.extensions.mcp.server import Server

Find = Callable[[], "Mapping[str, Server]"]
LIST, READ = "ListMcpResourcesTool", "ReadMcpResourceTool"


class ListMcpResources:
    """Lists what the connected servers can be asked to read."""

    name = LIST
    kind: ToolKind = "search"
    description = (
        "List the resources that the connected MCP servers offer, with their URIs."
        " Read one with ReadMcpResourceTool."
    )

    def __init__(self, find: Find) -> None:
        self._find = find
        about = "Only those of this server; all servers where it is left out."
        self.parameters: dict[str, Any] = {
            "type": "object",
            "properties": {"server": {"type": "string", "description": about}},
            "additionalProperties": False,
        }

    def title(self, args: dict[str, Any]) -> str:
        """What a person reads."""
        return f"List MCP resources of {args.get('server') or 'all servers'}"

    async def preview(self, args: dict[str, Any], ctx: ToolEnvironment) -> ToolResult | None:
        """Nothing but why there are none."""
        wanted, servers = args.get("server"), self._find()
        return None if wanted is None or wanted in servers else unknown(wanted, servers)

    async def run(self, args: dict[str, Any], ctx: ToolEnvironment) -> ToolResult:
        """List them; a server that fails is named among the others."""
        servers = self._find()
        wanted = args.get("server")
        if wanted is not None and wanted not in servers:
            return unknown(wanted, servers)
        listed: list[dict[str, Any]] = []
        for server in [servers[wanted]] if wanted else servers.values():
            try:
                found = await server.resources()
            except (Gone, Refused) as error:
                found = [{"error": str(error)}]
            listed += [{"server": server.name, **each} for each in found]
        text = "\n".join(json.dumps(each, ensure_ascii=False) for each in listed)
        return ToolResult(
            labelled(wanted or "all", [{"type": "text", "text": text or "no resources"}]),
            data=listed,
        )


class ReadMcpResource:
    """Reads a resource of a server."""

    name = READ
    kind: ToolKind = "read"
    description = "Read a resource of an MCP server by its URI."

    def __init__(self, find: Find) -> None:
        self._find = find
        self.parameters: dict[str, Any] = {
            "type": "object",
            "properties": {
                "server": {"type": "string", "description": "The name of the server."},
                "uri": {"type": "string", "description": "The URI of the resource."},
            },
            "required": ["server", "uri"],
            "additionalProperties": False,
        }

    def title(self, args: dict[str, Any]) -> str:
        """What a person reads."""
        return f"{args.get('server')}: {args.get('uri')}"

    async def preview(self, args: dict[str, Any], ctx: ToolEnvironment) -> ToolResult | None:
        """Nothing but why it cannot be read."""
        wanted, servers = args["server"], self._find()
        return None if wanted in servers else unknown(wanted, servers)

    async def run(self, args: dict[str, Any], ctx: ToolEnvironment) -> ToolResult:
        """Read it."""
        server = self._find().get(args["server"])
        if server is None:
            return unknown(args["server"], self._find())
        try:
            return of_resource(server.name, await server.read(args["uri"]))
        except (Gone, Refused) as error:
            return ToolResult.failure(str(error))


def unknown(name: str, servers: Mapping[str, Server]) -> ToolResult:
    """There is no such server."""
    known = ", ".join(servers) or "none"
    return ToolResult.failure(f"there is no MCP server {name!r} with resources; there are: {known}")
