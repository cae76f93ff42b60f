"""The demonstration's fence: tools that reach nothing outside of its folder, whatever hooks say.

It does not judge commands, it makes them: of a command line in a tiny grammar it takes the
program and the paths, maps ``/tmp`` to a folder of the demonstration's own, expands the patterns
there itself, and runs the real tool with the absolute paths that came out. What does not fit the
grammar is refused.
"""

from __future__ import annotations

import glob
import os
import re
import shlex
from pathlib import Path
from typing import Any

from crow.core.ports.tool import Tool, ToolEnvironment
from crow.core.tools import ToolKind, ToolResult

COMMAND = re.compile(r"(rm|ls)((?: +-[a-zA-Z]+)*)((?: +[\w./*?][\w./*?-]*)+) *", re.ASCII)


class OutsideError(Exception):
    """A command or a path that the fence does not let through."""


class Fence:
    """The fence of the demonstration: ``project`` and ``tmp``, which stands for ``/tmp``."""

    def __init__(self, project: Path, tmp: Path) -> None:
        self.project = Path(os.path.realpath(project))
        self.tmp = Path(os.path.realpath(tmp))

    def command(self, line: str) -> str:
        """The command line to run in place of another. Raises `OutsideError`."""
        match = COMMAND.fullmatch(line.strip())
        if match is None:
            raise OutsideError(
                "the demonstration's shell knows `rm` and `ls` with plain paths only"
            )
        program, flags, words = match[1], match[2].split(), match[3].split()
        paths = [path for word in words for path in self.expand(word)]
        return shlex.join([program, *flags, "--", *paths])

    def expand(self, word: str) -> list[str]:
        """The absolute paths that a word stands for, each inside. Raises `OutsideError`."""
        where = self.mapped(word)
        found = glob.glob(str(where)) if glob.has_magic(word) else []  # noqa: PTH207
        return [str(self.inside(Path(path))) for path in found or [str(where)]]

    def mapped(self, word: str) -> Path:
        """A path as it was written, moved into the folder. Raises `OutsideError`."""
        parts = Path(word).parts
        if ".." in parts:
            raise OutsideError(f"{word} leads upwards")
        path = self.project / word
        if self.project in path.parents or self.tmp in path.parents:
            return path
        return self.tmp.joinpath(*parts[2:]) if parts[:2] == ("/", "tmp") else path

    def inside(self, path: Path) -> Path:
        """An absolute path that really lies inside. Raises `OutsideError`."""
        real = Path(os.path.realpath(path.parent), path.name)
        if self.project in real.parents or self.tmp in real.parents:
            return real
        raise OutsideError(f"{path} is outside of the demonstration's folder")


class FencedTool:
    """A real tool that gets only arguments that the fence has let through."""

    def __init__(self, tool: Tool, fence: Fence) -> None:
        self.tool = tool
        self.fence = fence
        self.name: str = tool.name
        self.description: str = tool.description
        self.parameters: dict[str, Any] = tool.parameters
        self.kind: ToolKind = tool.kind

    def __getattr__(self, name: str) -> Any:
        """What else a tool may have: its title, its locations."""
        if name == "tool":
            raise AttributeError(name)
        return getattr(self.tool, name)

    async def run(self, args: dict[str, Any], ctx: ToolEnvironment) -> ToolResult | str:
        """Run the tool inside, or say why not."""
        try:
            args = self.fenced(args)
        except OutsideError as error:
            return ToolResult.failure(f"refused: {error}")
        return await self.tool.run(args, ctx)

    def fenced(self, args: dict[str, Any]) -> dict[str, Any]:
        """The arguments to run with. Raises `OutsideError`."""
        if "command" in args:
            return {"command": self.fence.command(str(args["command"]))}
        path = self.fence.mapped(str(args.get("file_path", "")))
        return {**args, "file_path": str(self.fence.inside(path))}


def fenced_tools(fence: Fence) -> list[Tool]:
    """The built-in tools; those that change anything behind the fence."""
    from crow.tools import builtin

    tools: list[Tool] = []
    for tool in builtin():
        if tool.name in ("Bash", "Write", "Edit"):
            tools.append(FencedTool(tool, fence))
        elif tool.kind in ("read", "search"):
            tools.append(tool)
    return tools
