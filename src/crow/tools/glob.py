"""Glob: finds files by their names."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path

from crow.core.ports.tool import ToolEnvironment
from crow.core.support.threads import read_in_thread
from crow.core.tools import ToolResult
from crow.tools.disk import demand_searchable
from crow.tools.errors import ToolError
from crow.tools.hidden import Readable, left_out, may_tell, readable, split_readable
from crow.tools.paths import absolute, missing, place_to_read, short_path
from crow.tools.recency import newest_first
from crow.tools.ripgrep import listing_options, matcher, only_glob, run_ripgrep

MOST = 100


async def preview(ctx: ToolEnvironment, pattern: str, path: str = "") -> None:
    """Nothing but why it cannot be looked for."""
    folder, _ = _from(absolute(path or ".", ctx.cwd), pattern)
    if await asyncio.to_thread(may_tell, ctx, folder):
        _top(ctx, folder)


async def run(ctx: ToolEnvironment, pattern: str, path: str) -> ToolResult:
    """Find files by name."""
    began = time.monotonic()
    folder, pattern = _from(absolute(path or ".", ctx.cwd), pattern)
    top = _top(ctx, folder)
    found, why = await _ask(pattern, top)
    shown, count, kept = await read_in_thread(_chosen, found, top, readable(ctx))
    return _result(shown, count, ctx.cwd, time.monotonic() - began, kept, why)


def _top(ctx: ToolEnvironment, folder: str) -> str:
    """Where to look, really. Raises `ToolError`."""
    top = place_to_read(folder, ctx.roots)
    if not Path(top).is_dir():
        there = os.path.lexists(top)
        raise ToolError(f"{top} is no directory." if there else missing(top, ctx.cwd))
    demand_searchable(top)
    return top


def _from(folder: str, pattern: str) -> tuple[str, str]:
    """An absolute pattern as a folder and a pattern below it."""
    if not Path(pattern).is_absolute():
        return folder, pattern
    parts = Path(pattern).parts
    plain = list(itertools.takewhile(lambda part: not set(part) & set("*?[{"), parts[:-1]))
    return str(Path(*plain)), str(Path(*parts[len(plain) :]))


async def _ask(pattern: str, top: str) -> tuple[list[str], str]:
    """The files, and why not all of them were looked at."""
    with only_glob(pattern) as options:
        answer = await run_ripgrep([*listing_options(), "--null", *options], top)
    wanted = matcher(pattern) if "--ignore-file" in options else None
    return await read_in_thread(_names, answer.output, top, wanted), answer.why


def _names(output: bytes, top: str, wanted: Callable[[str], bool] | None) -> list[str]:
    """What ripgrep printed; 100,000 names take too long for a loop that others wait for."""
    names = output.decode("utf-8", "surrogateescape").split("\0")[:-1]
    return [os.path.join(top, name) for name in filter(wanted or bool, names)]  # noqa: PTH118


def _chosen(found: list[str], top: str, may_read: Readable | None) -> tuple[list[str], int, int]:
    """The newest of the files that may be told of, how many these are, and how many may not."""
    found, kept = split_readable(found, top, may_read) if may_read else (found, ())
    return newest_first(found, top, MOST), len(found), len(kept)


def _result(
    found: list[str], count: int, cwd: str, seconds: float, kept: int, why: str
) -> ToolResult:
    shown = [_printable(path) for path in found]
    is_cut = count > MOST or bool(why)
    lines = [short_path(path, cwd) for path in shown] or ["No files found."]
    if count > MOST:
        lines.append(f"({MOST} of {count} are shown; a narrower pattern shows the rest.)")
    lines += [f"({why})"] if why else []
    lines += [left_out(kept)] if kept else []
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
