"""Write: creates a file, or replaces one that the model has read."""

from __future__ import annotations

import asyncio

from crow.core.ports.tool import ToolEnvironment
from crow.core.tools import ToolResult
from crow.tools.change import Change, bare_diff, plan_change, preview_change
from crow.tools.errors import ToolError, reason_of
from crow.tools.files import SeenFiles, store
from crow.tools.patch import hunks, line_counts
from crow.tools.paths import absolute, place_to_write


async def preview(ctx: ToolEnvironment, file_path: str, content: str) -> ToolResult:
    """The change, or why there will be none."""
    path = absolute(file_path, ctx.cwd)
    try:
        return await preview_change(
            ctx, path, lambda _: (content, 1, 1), lambda: bare_diff(path, content)
        )
    except (OSError, ValueError) as error:
        raise _cannot(path, error) from error


async def run(ctx: ToolEnvironment, file_path: str, content: str) -> ToolResult:
    """Write a file."""
    path = absolute(file_path, ctx.cwd)
    try:
        real = place_to_write(path, ctx.roots)
        async with SeenFiles.of(ctx).lock(real):
            made = await plan_change(ctx, path, lambda _: (content, 1, 1))
            note = await store(ctx, path, real, content, made.before)
    except (OSError, ValueError) as error:
        raise _cannot(path, error) from error
    return await asyncio.to_thread(_result, made, note)


def _cannot(path: str, error: OSError | ValueError) -> ToolError:
    return ToolError(f"{path} cannot be written: {reason_of(error)}.")


def _result(made: Change, note: str) -> ToolResult:
    """What the model and the hooks are told of a file that was written."""
    old, new = made.old, made.new
    found = hunks(old, new) if old is not None else []
    lines = new.count("\n") + (not new.endswith("\n") and new != "")
    size = "1 line" if lines == 1 else f"{lines} lines"
    text = f"Created {made.path} ({size})." if old is None else f"Replaced {made.path}"
    if old is not None:
        text += f" ({line_counts(found)})."
    data = {
        "type": "create" if old is None else "update",
        "filePath": made.path,
        "content": new,
        "structuredPatch": found,
        "originalFile": old,
    }
    return made.result(text, note, data)
