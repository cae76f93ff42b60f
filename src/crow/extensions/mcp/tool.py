"""A tool of a server, as the loop calls it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

from crow import ToolEnvironment, ToolResult
from crow.extensions.mcp.definitions import fingerprint
from crow.extensions.mcp.failure import Gone, Refused, plain
from crow.extensions.mcp.naming import tool_name
from crow.extensions.mcp.result import of_call
from crow.extensions.mcp.schema import compiled, mismatch
from crow.extensions.mcp.schema import model_schema as shown
from crow.tools import ToolKind

if TYPE_CHECKING:
    from jsonschema_rs import Validator
    from mcp.types import CallToolResult, Tool, ToolAnnotations

    from crow.extensions.mcp.definitions import Definitions
    from crow.extensions.mcp.description import Description

LONGEST = 2048
TITLE = 80


class Callee(Protocol):
    """The server of a tool."""

    name: str
    description: Description
    definitions: Definitions

    async def call(
        self, tool: str, args: dict[str, Any], ctx: ToolEnvironment
    ) -> CallToolResult: ...


class McpTool:
    """A tool by the name ``mcp__server__tool``; what it is, is its server and its ``raw_name``.

    ``schema`` is what its arguments must fit, ``parameters`` as much of that as models can be told.

    ``defer_loading`` is true where its definition may wait until the model looks for it.

    ``fingerprint`` is another one where the server says something else of the tool. What it says
    of itself (that it only reads, say) decides nothing.
    """

    def __init__(self, server: Callee, told: Tool) -> None:
        self.server = server
        self.raw_name = told.name
        self.name = tool_name(server.name, told.name)
        about = plain(told.description or told.title or told.name)[:LONGEST]
        self.description = f"[MCP server {server.name}] {about}"
        self.schema = told.input_schema
        self.parameters = shown(told.input_schema)
        self.kind: ToolKind = kind_of(told.annotations)
        self.label = _label(told)
        self.fingerprint = fingerprint(
            told.model_dump(mode="json", include={"description", "input_schema", "annotations"})
        )
        self.defer_loading = not server.description.always_load
        self._validator: Validator | None = None

    @property
    def mcp_server(self) -> dict[str, str]:
        """Where it comes from, as hooks are told: the server's name, and who configured that."""
        return {"name": self.server.name, "source": self.server.description.whose}

    @property
    def change(self) -> str:
        """What is different since the tool, or another of its name, was used; or nothing."""
        known = self.server.definitions
        if known.has_moved(self.name, self.server.name, self.raw_name):
            return "is another tool, or another server's, than what was called so before"
        if known.has_changed(self.server.name, self.raw_name, self.fingerprint):
            return "is described differently by its server than when it was used before"
        return ""

    def title(self, args: dict[str, Any]) -> str:
        """What a person reads."""
        return f"{self.server.name}: {self.label}"

    def prepare(self, args: dict[str, Any], cwd: str) -> dict[str, Any]:
        """The arguments without a null for what may be left out: many models send that."""
        told = cast("dict[str, Any]", self.parameters.get("properties", {}))
        needed = self.parameters.get("required", ())
        return {
            key: value
            for key, value in args.items()
            if value is not None or key in needed or _takes_null(told.get(key))
        }

    def check(self, args: dict[str, Any]) -> str | None:
        """What is wrong with arguments."""
        self._validator = self._validator or compiled(self.schema)
        return mismatch(self._validator, args)

    async def run(self, args: dict[str, Any], ctx: ToolEnvironment) -> ToolResult:
        """Call it; a server that fails is an error that the model is told of."""
        server = self.server
        server.definitions.accept(self.name, server.name, self.raw_name, self.fingerprint)
        try:
            return of_call(server.name, await server.call(self.raw_name, args, ctx))
        except (Gone, Refused) as error:
            return ToolResult.failure(str(error))


def _takes_null(schema: object) -> bool:
    """True where that is said, and where nothing simple is."""
    kind = cast("dict[str, object]", schema).get("type") if isinstance(schema, dict) else None
    return not isinstance(kind, str) or kind == "null"


def kind_of(told: ToolAnnotations | None) -> ToolKind:
    """A sort of tool, for whoever looks on."""
    if told is None or not told.read_only_hint:
        return "other"
    return "fetch" if told.open_world_hint else "read"


def _label(told: Tool) -> str:
    title = told.title or (told.annotations.title if told.annotations else None) or ""
    text = " ".join(plain(title).split())[:TITLE]
    return f"{text} ({told.name})" if text and text != told.name else plain(told.name)
