"""What a coding agent is born with, and what is needed to make more of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crow.annotations.arg import Arg
from crow.core.tools import Diff, Location, Outcome, ToolKind, ToolName
from crow.tools.errors import ToolError
from crow.tools.function import FunctionTool, tool
from crow.tools.spill import clip
from crow.tools.text import boundary, shortened

if TYPE_CHECKING:
    from crow.core.ports import Tool

__all__ = [
    "Arg",
    "Diff",
    "FunctionTool",
    "Location",
    "Outcome",
    "ToolError",
    "ToolKind",
    "ToolName",
    "boundary",
    "builtin",
    "clip",
    "shortened",
    "tool",
]


def builtin() -> tuple[Tool, ...]:
    """The tools that every agent has unless it is given others, in the order of the request."""
    from crow.tools.declarations import BUILTIN

    return BUILTIN
