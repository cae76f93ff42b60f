"""A tool of a server, as the loop calls it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crow.core.calls import ToolKind, ToolResult
from crow.core.ports import Bench
from crow.extensions.mcp import schema
from crow.extensions.mcp.definitions import fingerprint
from crow.extensions.mcp.failure import Gone, Refused, plain
from crow.extensions.mcp.naming import full_name
from crow.extensions.mcp.result import of_call

if TYPE_CHECKING:
    from jsonschema_rs import Validator
    from mcp.types import Tool, ToolAnnotations

    from crow.extensions.mcp.server import Server

LONGEST = 2048
TITLE = 80
SOURCES = {"client": "dynamic", "settings": "user", "project": "project"}


class McpTool:
    """A tool by the name ``mcp__server__tool``; what it is, is its server and its ``raw_name``.

    ``fingerprint`` is another one where the server says something else of the tool. What it says
    of itself (that it only reads, say) decides nothing.
    """

    def __init__(self, server: Server, told: Tool) -> None:
        self.server = server
        self.raw_name = told.name
        self.name = full_name(server.name, told.name)
        about = plain(told.description or told.title or told.name)[:LONGEST]
        self.description = f"[MCP server {server.name}] {about}"
        unneeded = ("$schema", "$id")
        self.parameters = {k: v for k, v in told.input_schema.items() if k not in unneeded}
        self.kind: ToolKind = kind_of(told.annotations)
        self.label = _label(told)
        self.fingerprint = fingerprint(
            told.model_dump(mode="json", include={"description", "input_schema", "annotations"})
        )
        self._validator: Validator | None = None

    @property
    def mcp_server(self) -> dict[str, str]:
        """Where it comes from, as hooks are told: the server's name, and who configured that."""
        name, source = self.server.name, SOURCES[self.server.description.source]
        return {"name": name, "source": "plugin" if name.startswith("plugin:") else source}

    @property
    def has_changed(self) -> bool:
        """True for a tool that was in use and was described differently then."""
        known = self.server.name, self.raw_name, self.fingerprint
        return self.server.definitions.has_changed(*known)

    def title(self, args: dict[str, Any]) -> str:
        """What a person reads."""
        return f"{self.server.name}: {self.label}"

    def check(self, args: dict[str, Any]) -> str | None:
        """What is wrong with arguments."""
        self._validator = self._validator or schema.compiled(self.parameters)
        return schema.mismatch(self._validator, args)

    async def run(self, args: dict[str, Any], ctx: Bench) -> ToolResult:
        """Call it; a server that fails is an error that the model is told of."""
        server = self.server
        server.definitions.accept(server.name, self.raw_name, self.fingerprint)
        try:
            return of_call(server.name, await server.call(self.raw_name, args, ctx))
        except (Gone, Refused) as error:
            return ToolResult.failure(str(error))


def kind_of(told: ToolAnnotations | None) -> ToolKind:
    """A sort of tool, for whoever looks on."""
    if told is None or not told.read_only_hint:
        return "other"
    return "fetch" if told.open_world_hint else "read"


def _label(told: Tool) -> str:
    title = told.title or (told.annotations.title if told.annotations else None) or ""
    text = " ".join(plain(title).split())[:TITLE]
    return f"{text} ({told.name})" if text and text != told.name else plain(told.name)
