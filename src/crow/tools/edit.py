"""Edit: replaces an exact piece of a file; everything else stays byte for byte."""

from __future__ import annotations

import asyncio
from typing import Any

from crow.core.ports.tool import ToolEnvironment
from crow.core.tools import Diff, ToolResult
from crow.tools.change import Change, Rewrite, bare_diff, plan_change, preview_change
from crow.tools.errors import ToolError, reason_of
from crow.tools.files import Document, SeenFiles, store
from crow.tools.patch import hunks, line_counts
from crow.tools.paths import absolute, missing, place_to_write
from crow.tools.replacement import replaced

_SAME = "old_string and new_string are the same: nothing to change."


async def preview(
    ctx: ToolEnvironment,
    file_path: str,
    old_string: str,
    new_string: str,
    replace_all: bool = False,
) -> ToolResult:
    """The change, or why there will be none."""
    path = absolute(file_path, ctx.cwd)
    rewrite = _rewrite(path, ctx.cwd, old_string, new_string, every=replace_all)

    def bare() -> Diff:
        named = Diff(path, old_string, new_string)
        return named if old_string else bare_diff(path, new_string)

    try:
        return await preview_change(ctx, path, rewrite, bare)
    except (OSError, ValueError) as error:
        raise _cannot(path, error) from error


async def run(
    ctx: ToolEnvironment, file_path: str, old_string: str, new_string: str, replace_all: bool
) -> ToolResult:
    """Change a file."""
    path = absolute(file_path, ctx.cwd)
    rewrite = _rewrite(path, ctx.cwd, old_string, new_string, every=replace_all)
    try:
        real = place_to_write(path, ctx.roots)
        async with SeenFiles.of(ctx).lock(real):
            made = await plan_change(ctx, path, rewrite)
            note = await store(ctx, path, real, made.new, made.before)
    except (OSError, ValueError) as error:
        raise _cannot(path, error) from error
    data = {
        "filePath": path,
        "oldString": old_string,
        "newString": new_string,
        "originalFile": made.old or "",
        "structuredPatch": await asyncio.to_thread(hunks, made.old or "", made.new),
        "userModified": False,
        "replaceAll": replace_all,
    }
    return await asyncio.to_thread(_result, made, note, data)


def _cannot(path: str, error: OSError | ValueError) -> ToolError:
    return ToolError(f"{path} cannot be edited: {reason_of(error)}.")


def _rewrite(path: str, cwd: str, old: str, new: str, *, every: bool) -> Rewrite:
    """What becomes of the file's text. Raises `ToolError` at once for what changes nothing."""
    if old == new:
        raise ToolError(_SAME)

    def rewrite(before: Document | None) -> tuple[str, int, int]:
        if before is None and old:
            raise ToolError(missing(path, cwd))
        if before is not None and old:
            return replaced(before.text, old, new, path, every=every)
        if before is not None and before.text:
            raise ToolError(f"{path} is not empty: say in old_string what is to be replaced.")
        return new, 1, 1

    return rewrite


def _result(made: Change, note: str, data: dict[str, Any]) -> ToolResult:
    if made.before is None:
        text = f"Created {made.path}."
    else:
        line, count = made.line, made.count
        where = f"at line {line}" if count == 1 else f"in {count} places, first at line {line}"
        text = f"Edited {made.path} {where} ({line_counts(data['structuredPatch'])})."
    return made.result(text, note, data)
