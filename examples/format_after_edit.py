"""A formatter after every edit, and a next edit that does not fail because of it.

    crow run --extension examples/format_after_edit.py "Add a function to main.py"

What the formatter changed is told, or the model would search for lines that are not there any more;
`refresh_file` says that the file is as it should be, or Edit would want it to be read again.
"""

import asyncio
import difflib
from asyncio.subprocess import PIPE, STDOUT
from dataclasses import dataclass
from pathlib import Path

from crow import ToolContext
from crow.tools import refresh_file


@dataclass
class FormatAfterEdit:
    command: str = "ruff format"
    """The formatter; the file's name is put behind it."""

    suffix: str = ".py"

    async def after_tool(self, ctx: ToolContext) -> str | None:
        diffs = ctx.result.diffs if ctx.result is not None else ()
        told = [
            await self.format(ctx, each.path) for each in diffs if each.path.endswith(self.suffix)
        ]
        return "\n".join(filter(None, told)) or None

    async def format(self, ctx: ToolContext, path: str) -> str:
        before = Path(path).read_text()
        command = (*self.command.split(), path)
        formatter = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=STDOUT)
        said, _ = await formatter.communicate()
        if formatter.returncode:
            return f"{path} could not be formatted: {said.decode(errors='replace').strip()}"
        after = Path(path).read_text()
        if after == before:
            return ""
        await refresh_file(ctx, path)
        changed = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1)
        return "\n".join([f"{path} was formatted after your edit:", *list(changed)[2:]])
