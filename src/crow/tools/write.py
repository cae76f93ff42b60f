"""Write: creates a file, or replaces one that the model has read."""

from __future__ import annotations

from typing import Annotated

from crow.core.calls import Diff, ToolResult
from crow.core.ports import Bench
from crow.tools import files, patch, paths
from crow.tools.errors import ToolError
from crow.tools.function import tool


@tool(
    name="Write",
    kind="edit",
    title="Write {file_path}",
    locations=paths.file_location,
    prepare=paths.with_absolute_path,
)
async def write(
    ctx: Bench,
    file_path: Annotated[str, "Path of the file, best absolute; folders are made."],
    content: Annotated[str, "The whole new text of the file."],
) -> ToolResult:
    """Create a file, or replace the whole of one that you have read in this session.

    To change a part of a file, use Edit.
    """
    path = paths.absolute(file_path, ctx.cwd)
    try:
        real = paths.place_to_write(path, ctx.roots)
        ledger = files.Ledger.of(ctx)
        async with ledger.lock(real):
            before = await files.load(ctx, path, real)
            if before is not None:
                ledger.demand_seen(before, path)
            note = await files.store(ctx, path, real, content, before)
    except (OSError, ValueError) as error:
        raise ToolError(f"{path} cannot be written: {error}.") from error
    return result(path, before.text if before else None, content, note)


def result(path: str, old: str | None, new: str, note: str) -> ToolResult:
    """What the model and the hooks are told of a file that was written."""
    found = patch.hunks(old, new) if old is not None else []
    lines = new.count("\n") + (not new.endswith("\n") and new != "")
    text = f"Created {path} ({lines} lines)." if old is None else f"Replaced {path}"
    if old is not None:
        text += f" ({patch.count(found)})."
    data = {
        "type": "create" if old is None else "update",
        "filePath": path,
        "content": new,
        "structuredPatch": found,
        "originalFile": old,
    }
    return ToolResult(
        f"{text} {note}".rstrip(),
        data=data,
        diffs=(Diff(path, old, new),),
        locations=paths.file_location({"file_path": path}, path),
    )
