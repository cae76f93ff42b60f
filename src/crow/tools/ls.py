"""LS: lists one directory."""

from __future__ import annotations

import asyncio
import fnmatch
import itertools
import os

from crow.core.ports.tool import ToolEnvironment
from crow.core.tools import ToolResult
from crow.tools.errors import ToolError, reason_of
from crow.tools.hidden import left_out, may_tell, readable
from crow.tools.paths import absolute, missing, place_to_read

MOST = 1000
_SCANNED = 100_000


async def preview(ctx: ToolEnvironment, path: str = "", ignore: list[str] | None = None) -> None:
    """Nothing but why it cannot be listed."""
    top = absolute(path, ctx.cwd)
    if await asyncio.to_thread(may_tell, ctx, top):
        await asyncio.to_thread(_names, top, ctx, ignore or [], 1)


async def run(ctx: ToolEnvironment, path: str, ignore: list[str]) -> ToolResult:
    """List the names in a directory."""
    top = absolute(path, ctx.cwd)
    names = _names(top, ctx, ignore, _SCANNED)
    may_read, kept, is_cut = readable(ctx), 0, len(names) == _SCANNED
    if may_read is not None:
        real = {name: name.partition(" -> ")[0].rstrip("/") for name in names}
        shown = [name for name in names if may_read(f"{top.rstrip('/')}/{real[name]}")]
        names, kept = shown, len(names) - len(shown)
    names.sort(key=lambda name: (not name.endswith("/"), name))
    shown = names[:MOST]
    lines = [f"{top}:", *(shown or ["(empty)"])]
    if len(names) > MOST:
        count = f"more than {len(names)}" if is_cut else len(names)
        lines.append(f"({MOST} of {count} names are shown.)")
    lines += [left_out(kept)] if kept else []
    data = {"path": top, "entries": shown, "truncated": len(names) > MOST}
    return ToolResult("\n".join(lines), data=data)


def _names(top: str, ctx: ToolEnvironment, ignore: list[str], most: int) -> list[str]:
    """The names that are not to be ignored, of so many entries. Raises `ToolError`."""
    try:
        with os.scandir(place_to_read(top, ctx.roots)) as entries:
            some = itertools.islice(entries, most)
            return [_name(entry) for entry in some if not _matches(entry.name, ignore)]
    except FileNotFoundError as error:
        raise ToolError(missing(top, ctx.cwd)) from error
    except (OSError, ValueError) as error:
        raise ToolError(f"{top} cannot be listed: {reason_of(error)}.") from error


def _matches(name: str, globs: list[str]) -> bool:
    return any(fnmatch.fnmatch(name, glob) for glob in globs)


def _name(entry: os.DirEntry[str]) -> str:
    name = os.fsencode(entry.name).decode("utf-8", "replace")
    try:
        if entry.is_symlink():
            return f"{name} -> {os.fsencode(os.readlink(entry.path)).decode('utf-8', 'replace')}"  # noqa: PTH115
        return f"{name}/" if entry.is_dir() else name
    except OSError:
        return name
