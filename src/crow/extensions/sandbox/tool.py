"""The Bash tool with one more argument: by it a model asks to run a command outside."""

from __future__ import annotations

from typing import Any

from crow import Tool, ToolEnvironment, ToolResult
from crow.tools import ToolKind

ESCAPE = "dangerouslyDisableSandbox"


class Escapable:
    """A tool whose calls may ask to run outside; all else is the tool's own."""

    def __init__(self, tool: Tool) -> None:
        self.without_sandbox = tool
        self.name, self.description = tool.name, tool.description
        self.kind: ToolKind = tool.kind
        argument = {ESCAPE: {"type": "boolean"}}  # the line of a refusal says what it is for
        own = tool.parameters
        self.parameters = {**own, "properties": {**own["properties"], **argument}}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.without_sandbox, name)

    def check(self, args: dict[str, Any]) -> str | None:
        """What is wrong with arguments."""
        if not isinstance(args.get(ESCAPE, False), bool):
            return f"{ESCAPE} must be true or false"
        own: Any = self.without_sandbox
        return own.check(without(args))

    def title(self, args: dict[str, Any]) -> str:
        """The command, and whether it is to run outside."""
        own: Any = self.without_sandbox
        outside = "  (outside the sandbox)" if args.get(ESCAPE) is True else ""
        return f"{own.title(without(args))}{outside}"

    async def preview(self, args: dict[str, Any], ctx: ToolEnvironment) -> ToolResult | None:
        """The failure that a call cannot but end in."""
        own: Any = self.without_sandbox
        return await own.preview(without(args), ctx)

    async def run(self, args: dict[str, Any], ctx: ToolEnvironment) -> ToolResult | str:
        """Run the command; where, others have decided."""
        return await self.without_sandbox.run(without(args), ctx)


def without(args: dict[str, Any]) -> dict[str, Any]:
    """The arguments that the tool itself knows."""
    return {name: value for name, value in args.items() if name != ESCAPE}
