"""Glob: finds files by their names."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from pathlib import Path
from typing import Annotated

from crow.core.calls import ToolResult
from crow.core.ports import Bench
from crow.tools import hidden, paths, ripgrep, walk
from crow.tools.errors import ToolError
from crow.tools.function import tool

MOST = 100
_SCANNED = 100_000


@tool(name="Glob", kind="search", title="Find {pattern}")
async def glob(
    ctx: Bench,
    pattern: Annotated[str, "A glob such as `*.py` (at any depth) or `src/**/*.ts`."],
    path: Annotated[str, "The folder to look in; the session's directory by default."] = "",
) -> ToolResult:
    """Find files by name, the most recently changed first; what .gitignore names is left out."""
    began = time.monotonic()
    folder, pattern = _from(paths.absolute(path or ".", ctx.cwd), pattern)
    top = paths.place_to_read(folder, ctx.roots)
    if not Path(top).is_dir():
        raise ToolError(paths.missing(top, ctx.cwd))
    program = ripgrep.program()
    if program:
        found = await _ask(program, pattern, top)
    else:
        found = await asyncio.to_thread(_walk, pattern, top)
    may_read, kept = hidden.readable(ctx), list[str]()
    if may_read is not None:
        found, kept = await asyncio.to_thread(hidden.split, found, top, may_read)
    return _result(found, ctx.cwd, time.monotonic() - began, len(kept))


def _from(folder: str, pattern: str) -> tuple[str, str]:
    """An absolute pattern as a folder and a pattern below it."""
    if not Path(pattern).is_absolute():
        return folder, pattern
    parts = Path(pattern).parts
    plain = list(itertools.takewhile(lambda part: not set(part) & set("*?[{"), parts[:-1]))
    return str(Path(*plain)), str(Path(*parts[len(plain) :]))


async def _ask(program: str, pattern: str, top: str) -> list[str]:
    with ripgrep.only(pattern) as options:
        argv = [program, *ripgrep.common(), "--files", "--null", "--sortr", "modified", *options]
        answer = await ripgrep.ask(argv, top)
    names = answer.output.decode("utf-8", "surrogateescape").split("\0")[:-1]
    if "--ignore-file" in options:
        names = list(filter(walk.matcher(pattern), names))
    return [os.path.join(top, name) for name in names]  # noqa: PTH118


def _walk(pattern: str, top: str) -> list[str]:
    found = itertools.islice(walk.files(top, pattern), _SCANNED)
    return sorted(found, key=_changed, reverse=True)


def _changed(path: str) -> int:
    try:
        return Path(path).lstat().st_mtime_ns
    except OSError:
        return 0


def _result(found: list[str], cwd: str, seconds: float, kept: int) -> ToolResult:
    shown = [_printable(path) for path in found[:MOST]]
    is_cut = len(found) > MOST
    lines = [paths.shown(path, cwd) for path in shown] or ["No files found."]
    if is_cut:
        lines.append(f"({MOST} of {len(found)} are shown; a narrower pattern shows the rest.)")
    lines += [hidden.note(kept)] if kept else []
    data = {
        "durationMs": round(seconds * 1000),
        "numFiles": len(shown),
        "filenames": shown,
        "truncated": is_cut,
    }
    return ToolResult("\n".join(lines), data=data)


def _printable(path: str) -> str:
    """Names that are no UTF-8 must not break what is stored and sent."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
