"""Read: a file's lines with their numbers, or an image."""

from __future__ import annotations

import asyncio
import itertools
import os
from typing import Annotated, Any

from crow.core.calls import ToolResult
from crow.core.ports import Bench
from crow.tools import disk, files, images, paths
from crow.tools.encoding import decode
from crow.tools.errors import ToolError
from crow.tools.function import tool
from crow.tools.spill import boundary

LINES = 2000
LINE_LENGTH = 2000
SIZE = 80_000


@tool(
    name="Read",
    kind="read",
    title="Read {file_path}",
    locations=paths.file_location,
    prepare=paths.with_absolute_path,
)
async def read(
    ctx: Bench,
    file_path: Annotated[str, "Path of the file, best absolute."],
    offset: Annotated[int, "The first line to show, counted from 1."] = 1,
    limit: Annotated[int, "How many lines to show."] = LINES,
) -> ToolResult:
    """Read a text file, with line numbers as `cat -n` gives them, or an image.

    By default the first 2000 lines; `offset` and `limit` show others. Read a file before you
    edit or overwrite it.
    """
    path = paths.absolute(file_path, ctx.cwd)
    offset, limit = max(offset, 1), max(limit, 1)
    try:
        real = paths.place_to_read(path, ctx.roots)
        found = await asyncio.to_thread(_special, path, real, offset, limit)
        return found or await _read_text(ctx, path, real, offset, limit)
    except FileNotFoundError as error:
        raise ToolError(paths.missing(path, ctx.cwd)) from error
    except (OSError, ValueError) as error:
        raise ToolError(f"{path} cannot be read: {_reason(error)}.") from error


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _special(path: str, real: str, offset: int, limit: int) -> ToolResult | None:
    """Files that no client has as text: images, and those too large to be read whole."""
    if not os.path.exists(real):  # noqa: PTH110
        return None
    with disk.opened(real) as (descriptor, status):
        image = images.recognise(os.pread(descriptor, 16, 0))
        if image:
            return images.result(path, image, os.pread(descriptor, status.st_size, 0))
        if status.st_size <= disk.LARGEST:
            return None
        with os.fdopen(os.dup(descriptor), "rb") as file:
            chosen = list(itertools.islice(file, offset - 1, offset - 1 + limit))
    decoded = decode(b"".join(chosen))
    if decoded is None:
        raise ToolError(f"{path} is binary, not text ({status.st_size} bytes).")
    return _page(path, decoded[0].splitlines(), offset, None, "")


async def _read_text(ctx: Bench, path: str, real: str, offset: int, limit: int) -> ToolResult:
    document = await files.load(ctx, path, real)
    if document is None:
        raise FileNotFoundError(path)
    files.Ledger.of(ctx).remember(document)
    lines = split(document.text)
    if lines and offset > len(lines):
        raise ToolError(f"{path} has {len(lines)} lines; offset {offset} is behind its end.")
    chosen = lines[offset - 1 : offset - 1 + limit]
    return _page(path, chosen, offset, len(lines), document.note)


def split(text: str) -> list[str]:
    """The lines of a text without their ends; only newlines end a line."""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _page(path: str, lines: list[str], offset: int, total: int | None, note: str) -> ToolResult:
    numbered, shown = _numbered(lines, offset)
    end = offset + shown - 1
    notes = [note] if note else []
    if not lines:
        notes.append("The file is empty.")
    elif total is None or end < total:
        of = f" of {total}" if total is not None else ""
        notes.append(f"Lines {offset} to {end}{of} are shown; go on with offset {end + 1}.")
    text = "\n".join([numbered, *(f"({each})" for each in notes)]).lstrip("\n")
    file: dict[str, Any] = {
        "filePath": path,
        "content": "\n".join(lines[:shown]),
        "numLines": shown,
        "startLine": offset,
        "totalLines": end if total is None else total,
    }
    return ToolResult(
        text,
        data={"type": "text", "file": file},
        locations=paths.file_location({"file_path": path, "offset": offset}, path),
    )


def _numbered(lines: list[str], offset: int) -> tuple[str, int]:
    """The lines as ``cat -n`` shows them, and how many fit."""
    rows: list[str] = []
    size = 0
    for number, line in enumerate(lines, offset):
        row = f"{number:>6}\t{_short(line)}"
        size += len(row) + 1
        if rows and size > SIZE:
            break
        rows.append(row)
    return "\n".join(rows), len(rows)


def _short(line: str) -> str:
    if len(line) <= LINE_LENGTH:
        return line
    cut = boundary(line, LINE_LENGTH)
    return f"{line[:cut]}[... {len(line) - cut} characters more]"
