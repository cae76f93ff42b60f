"""The built-in tools of a coding agent, and what is needed to make more of them.

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crow._lazy import lazy

if TYPE_CHECKING:
    from crow.annotations import Arg as Arg
    from crow.core.support.threads import read_in_thread as read_in_thread
    from crow.core.tools import Diff as Diff
    from crow.core.tools import Location as Location
    from crow.core.tools import Outcome as Outcome
    from crow.core.tools import ToolKind as ToolKind
    from crow.core.tools import ToolName as ToolName
    from crow.tools.declarations import builtin as builtin
    from crow.tools.errors import ToolError as ToolError
    from crow.tools.files import refresh_file as refresh_file
    from crow.tools.function import FunctionTool as FunctionTool
    from crow.tools.function import tool as tool
    from crow.tools.spill import clip as clip
    from crow.tools.text import boundary as boundary
    from crow.tools.text import shortened as shortened

_ROOMS = {
    "crow.annotations": "Arg",
    "crow.core.support.threads": "read_in_thread",
    "crow.core.tools": "Diff Location Outcome ToolKind ToolName",
    "crow.tools.declarations": "builtin",
    "crow.tools.errors": "ToolError",
    "crow.tools.files": "refresh_file",
    "crow.tools.function": "FunctionTool tool",
    "crow.tools.spill": "clip",
    "crow.tools.text": "boundary shortened",
}

if not TYPE_CHECKING:  # a checker takes any name for there where it sees one
    __all__, __getattr__, __dir__ = lazy(__name__, _ROOMS)
