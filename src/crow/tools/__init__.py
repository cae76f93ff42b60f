"""The built-in tools of a coding agent, and what is needed to make more of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from crow.annotations.arg import Arg
from crow.core.tools import Diff, Location, Outcome, ToolKind, ToolName
from crow.tools.errors import ToolError
from crow.tools.function import FunctionTool, tool
from crow.tools.spill import clip
from crow.tools.text import boundary, shortened

if TYPE_CHECKING:
    from crow.core.ports.tool import Tool, ToolEnvironment

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
    "refresh_file",
    "shortened",
    "tool",
]


def builtin() -> tuple[Tool, ...]:
    """The tools that every agent has unless it is given others, in the order of the request."""
    from crow.tools.declarations import BUILTIN

    return BUILTIN


async def refresh_file(ctx: ToolEnvironment, path: str) -> None:
    """Let the model go on editing a file that an extension has changed, such as a formatter.

    Without it Edit and Write want the file to be read again. It changes nothing for a file that the
    model has not seen; what was changed is for the extension to tell. Raises `ToolError` for what
    is no text, ``OSError`` for what cannot be read.
    """
    from crow.tools.files import SeenFiles, load

    real = os.path.realpath(path)
    if real in SeenFiles.of(ctx).seen and (document := await load(ctx, path, real)) is not None:
        SeenFiles.of(ctx).remember(document)
