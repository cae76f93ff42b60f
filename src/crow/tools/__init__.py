"""What a coding agent is born with, and what is needed to make more of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crow.core.tools import Diff, Location, Outcome, ToolKind, ToolName
from crow.tools.errors import ToolError
from crow.tools.function import FunctionTool, tool
from crow.tools.schema import Arg
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
    from crow.tools.background import bash_output, kill_shell
    from crow.tools.bash import bash
    from crow.tools.edit import edit
    from crow.tools.glob import glob
    from crow.tools.grep import grep
    from crow.tools.ls import ls
    from crow.tools.read import read
    from crow.tools.write import write

    return (read, write, edit, bash, bash_output, kill_shell, glob, grep, ls)
