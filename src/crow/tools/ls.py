"""LS: lists one directory."""

from __future__ import annotations

import fnmatch
import os
from typing import Annotated

from crow.core.calls import ToolResult
from crow.core.ports import Bench
from crow.tools import hidden, paths
from crow.tools.errors import ToolError
from crow.tools.function import tool

MOST = 1000


@tool(name="LS", kind="read", title="List {path}")
async def ls(
    ctx: Bench,
    path: Annotated[str, "The directory; the session's by default."] = ".",
    ignore: Annotated[list[str] | None, "Globs of names to leave out."] = None,
) -> ToolResult:
    """List the names in a directory; directories end with a slash, links show where they lead."""
    top = paths.absolute(path, ctx.cwd)
    try:
        with os.scandir(paths.place_to_read(top, ctx.roots)) as entries:
            names = [_name(entry) for entry in entries if not _matches(entry.name, ignore or [])]
    except FileNotFoundError as error:
        raise ToolError(paths.missing(top, ctx.cwd)) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ToolError(f"{top} cannot be listed: {reason}.") from error
    may_read, kept = hidden.readable(ctx), list[str]()
    if may_read is not None:
        real = {name: name.partition(" -> ")[0].rstrip("/") for name in names}
        kept = [name for name in names if not may_read(f"{top.rstrip('/')}/{real[name]}")]
        names = [name for name in names if name not in kept]
    names.sort(key=lambda name: (not name.endswith("/"), name))
    shown = names[:MOST]
    lines = [f"{top}:", *(shown or ["(empty)"])]
    if len(names) > MOST:
        lines.append(f"({MOST} of {len(names)} names are shown.)")
    lines += [hidden.note(len(kept))] if kept else []
    data = {"path": top, "entries": shown, "truncated": len(names) > MOST}
    return ToolResult("\n".join(lines), data=data)


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
