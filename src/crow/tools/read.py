"""Read: a file's lines with their numbers, or an image."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from crow.core.ports.tool import ToolEnvironment
from crow.core.tools import ToolResult
from crow.tools.disk import LARGEST, opened
from crow.tools.encoding import decode
from crow.tools.errors import ToolError, reason_of
from crow.tools.files import Document, SeenFiles, load
from crow.tools.hidden import may_tell
from crow.tools.images import LARGEST_IMAGE, demand_small_image, image_result, recognise
from crow.tools.lines import KEPT, Page, read_page
from crow.tools.paths import absolute, file_location, missing, place_to_read
from crow.tools.spill import boundary

LINES = 2000
LINE_LENGTH = 2000
SIZE = 80_000
_ROOM = LINE_LENGTH - 50


async def preview(
    ctx: ToolEnvironment, file_path: str, offset: int = 1, limit: int = LINES
) -> ToolResult | None:
    """Nothing but why it cannot be read."""
    path = absolute(file_path, ctx.cwd)
    if await asyncio.to_thread(may_tell, ctx, path):
        await _look(ctx, path, offset, limit)
    return None


async def run(ctx: ToolEnvironment, file_path: str, offset: int, limit: int) -> ToolResult:
    """Show a file, and remember what was seen of it."""
    result, document = await _look(ctx, absolute(file_path, ctx.cwd), offset, limit)
    if document is not None:
        SeenFiles.of(ctx).remember(document)
    return result


async def _look(
    ctx: ToolEnvironment, path: str, offset: int, limit: int
) -> tuple[ToolResult, Document | None]:
    """What is to be shown of a file, and all of it where it is text. Raises `ToolError`."""
    offset, limit = max(offset, 1), max(limit, 1)
    try:
        real = place_to_read(path, ctx.roots)
        async with SeenFiles.of(ctx).lock(real):
            found = await asyncio.to_thread(_special, path, real, offset, limit)
            if found is not None:
                return found, None
            return await _text(ctx, path, real, offset, limit)
    except FileNotFoundError as error:
        raise ToolError(missing(path, ctx.cwd)) from error
    except (OSError, ValueError) as error:
        raise ToolError(f"{path} cannot be read: {reason_of(error)}.") from error


def _special(path: str, real: str, offset: int, limit: int) -> ToolResult | None:
    """Files that no client has as text: images, and those too large to be read whole."""
    if not os.path.exists(real):  # noqa: PTH110
        return None
    with opened(real) as (descriptor, status):
        start = os.pread(descriptor, KEPT, 0)
        image = recognise(start[:16])
        if image:
            return image_result(path, image, _picture(path, descriptor, status.st_size))
        if status.st_size <= LARGEST:
            return None
        if decode(_whole(start)) is None:
            raise ToolError(f"{path} is binary, not text ({status.st_size} bytes).")
        return _piece(path, read_page(descriptor, offset, limit), offset)


def _picture(path: str, descriptor: int, size: int) -> bytes:
    """The bytes of an image that is not too large to be looked at."""
    demand_small_image(path, size)
    return os.pread(descriptor, LARGEST_IMAGE + 1, 0)


def _piece(path: str, page: Page, offset: int) -> ToolResult:
    """What was read of a file that is too large for one piece; it may be edited by no tool."""
    shown: list[str] = []
    for line in page.lines:
        decoded = decode(_whole(line.start) if line.missing else line.start)
        if decoded is None:
            raise ToolError(f"{path} has binary data at line {offset + len(shown)}.")
        more = f"[... {line.missing} bytes more]" if line.missing else ""
        shown.append(f"{decoded[0].removesuffix(chr(13))[:_ROOM]}{more}")
    total = offset + len(shown) - 1 if page.at_end else None
    return _page(path, shown, offset, total, "")


def _whole(data: bytes) -> bytes:
    """Bytes without a character of UTF-8 at their end that may have been cut in two."""
    for back in range(1, min(4, len(data)) + 1):
        if data[-back] >= 0xC0:
            return data[:-back]
    return data


async def _text(
    ctx: ToolEnvironment, path: str, real: str, offset: int, limit: int
) -> tuple[ToolResult, Document]:
    document = await load(ctx, path, real, drafts=True)
    if document is None:
        raise FileNotFoundError(path)
    rows = split(document.text)
    if rows and offset > len(rows):
        raise ToolError(f"{path} has {len(rows)} lines; offset {offset} is behind its end.")
    chosen = rows[offset - 1 : offset - 1 + limit]
    return _page(path, chosen, offset, len(rows), document.note), document


def split(text: str) -> list[str]:
    """The lines of a text without their ends; only newlines end a line."""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _page(path: str, rows: list[str], offset: int, total: int | None, note: str) -> ToolResult:
    numbered, shown = _numbered(rows, offset)
    end = offset + shown - 1
    notes = [note] if note else []
    if not rows:
        notes.append("The file is empty.")
    elif total is None or end < total:
        of = f" of {total}" if total is not None else ""
        notes.append(f"Lines {offset} to {end}{of} are shown; go on with offset {end + 1}.")
    text = "\n".join([numbered, *(f"({each})" for each in notes)]).lstrip("\n")
    file: dict[str, Any] = {
        "filePath": path,
        "content": "\n".join(map(_short, rows[:shown])),
        "numLines": shown,
        "startLine": offset,
        "totalLines": end if total is None else total,
    }
    return ToolResult(
        text,
        data={"type": "text", "file": file},
        locations=file_location({"file_path": path, "offset": offset}, path),
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
