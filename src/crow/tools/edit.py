"""Edit: replaces an exact piece of a file; everything else stays byte for byte."""

from __future__ import annotations

from typing import Annotated, Any

from crow.core.calls import Diff, Location, ToolResult
from crow.core.ports import Bench
from crow.tools import files, patch, paths
from crow.tools.errors import ToolError
from crow.tools.function import tool
from crow.tools.replacement import replaced


@tool(
    name="Edit",
    kind="edit",
    title="Edit {file_path}",
    locations=paths.file_location,
    prepare=paths.with_absolute_path,
)
async def edit(
    ctx: Bench,
    file_path: Annotated[str, "Path of the file, best absolute."],
    old_string: Annotated[str, "The text to replace, exactly as it is in the file."],
    new_string: Annotated[str, "The text that takes its place."],
    replace_all: Annotated[bool, "Replace every occurrence."] = False,
) -> ToolResult:
    """Replace one exact piece of text in a file that you have read in this session.

    `old_string` must match exactly, indentation included and line numbers not, and occur once,
    unless `replace_all` is true. An empty `old_string` creates the file.
    """
    path = paths.absolute(file_path, ctx.cwd)
    if old_string == new_string:
        raise ToolError("old_string and new_string are the same: nothing to change.")
    try:
        real = paths.place_to_write(path, ctx.roots)
        ledger = files.Ledger.of(ctx)
        async with ledger.lock(real):
            before = await files.load(ctx, path, real)
            new, line, count = _change(
                ctx, before, path, (old_string, new_string), every=replace_all
            )
            note = await files.store(ctx, path, real, new, before)
    except (OSError, ValueError) as error:
        raise ToolError(f"{path} cannot be edited: {error}.") from error
    old = before.text if before else None
    data = {
        "filePath": path,
        "oldString": old_string,
        "newString": new_string,
        "originalFile": old or "",
        "structuredPatch": patch.hunks(old or "", new),
        "userModified": False,
        "replaceAll": replace_all,
    }
    return _result(path, old, new, line, count, note, data)


def _change(
    ctx: Bench, before: files.Document | None, path: str, strings: tuple[str, str], *, every: bool
) -> tuple[str, int, int]:
    """The new text, the first line that differs, and how many places were changed."""
    old_string, new_string = strings
    if before is None:
        if old_string:
            raise ToolError(paths.missing(path, ctx.cwd))
        return new_string, 1, 1
    files.Ledger.of(ctx).demand_seen(before, path)
    if old_string == "":
        if before.text:
            raise ToolError(f"{path} is not empty: say in old_string what is to be replaced.")
        return new_string, 1, 1
    return replaced(before.text, old_string, new_string, path, every=every)


def _result(
    path: str,
    old: str | None,
    new: str,
    line: int,
    count: int,
    note: str,
    data: dict[str, Any],
) -> ToolResult:
    if old is None:
        text = f"Created {path}."
    else:
        where = f"at line {line}" if count == 1 else f"in {count} places, first at line {line}"
        text = f"Edited {path} {where} ({patch.count(data['structuredPatch'])})."
    return ToolResult(
        f"{text} {note}".rstrip(),
        data=data,
        diffs=(Diff(path, old, new),),
        locations=(Location(path, line),),
    )
