"""Grep: searches the contents of files."""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from crow.core.ports.tool import ToolEnvironment
from crow.core.support.frozen import frozen
from crow.core.support.threads import read_in_thread
from crow.core.tools import Location, ToolResult
from crow.tools.disk import demand_searchable, irregular
from crow.tools.errors import ToolError
from crow.tools.hidden import Readable, excluding, left_out, may_tell, readable, split_readable
from crow.tools.paths import absolute, missing, place_to_read, short_path
from crow.tools.recency import newest_first
from crow.tools.ripgrep import (
    common_options,
    listing_options,
    matcher,
    only_glob,
    run_ripgrep,
    search_options,
)
from crow.tools.spill import clip, outputs

LIMIT = 30_000
_NUMBER = re.compile(r"\d+([:-])")
COLUMNS = 500
_EMPTY = "pattern: it is empty."
_LONGEST = COLUMNS + 100

Mode = Literal["content", "files_with_matches", "count"]
Line = tuple[str, str]
"""The file's name as seen from the searched folder, and the rest with its separator."""


@frozen
class Search:
    """A search: what is sought, where, and how the answer shall look."""

    pattern: str
    path: str
    glob: str
    type: str
    mode: Mode
    ignores_case: bool
    shows_numbers: bool
    before: int
    after: int
    spans_lines: bool


@frozen
class Found:
    """The answer's lines; ``why`` there may be more, ``kept`` files must not be read."""

    lines: list[Line]
    why: str
    kept: int


async def preview(ctx: ToolEnvironment, pattern: str, path: str = "", **_: Any) -> None:
    """Nothing but why it cannot be searched."""
    if not pattern:
        raise ToolError(_EMPTY)
    if await asyncio.to_thread(may_tell, ctx, absolute(path or ".", ctx.cwd)):
        await _top(ctx, path)


async def run(ctx: ToolEnvironment, search: Search, head_limit: int) -> ToolResult:
    """Search the contents of files; ``search.path`` as the model wrote it."""
    if not search.pattern:
        raise ToolError(_EMPTY)
    search = replace(search, path=await _top(ctx, search.path))
    found = await _find(search, readable(ctx))
    return await read_in_thread(_result, search, found, head_limit, ctx)


async def _top(ctx: ToolEnvironment, path: str) -> str:
    """The folder or file to search in. Raises `ToolError`."""
    top = place_to_read(absolute(path or ".", ctx.cwd), ctx.roots)
    await asyncio.to_thread(_demand_searchable, top, ctx.cwd)
    return top


def _demand_searchable(top: str, cwd: str) -> None:
    """Raise `ToolError` for what is neither a folder nor a regular file: it may never end."""
    if not Path(top).exists():
        raise ToolError(missing(top, cwd))
    if not Path(top).is_dir() and not Path(top).is_file():
        raise ToolError(irregular(top))
    demand_searchable(top)


async def _find(search: Search, may_read: Readable | None) -> Found:
    """Search, without the files that must not be read."""
    globs, kept = list[str](), 0
    if may_read and not Path(search.path).is_dir():
        return Found([], "", 1) if not may_read(search.path) else await _find(search, None)
    if may_read:
        names = await _names(search)
        shown, left = await read_in_thread(split_readable, names, search.path, may_read)
        globs, kept = await read_in_thread(excluding, shown, left), len(left)
    lines, why = await _ask(search, [each for one in globs for each in ("--glob", one)])
    return Found(await _ordered(search, lines), why, kept)


async def _ordered(search: Search, lines: list[Line]) -> list[Line]:
    """Names by their files' age; the other answers are in the order of the paths already."""
    if search.mode != "files_with_matches":
        return lines
    folder, _ = _split(search.path)
    names = [name for name, _ in lines]
    return [(name, "") for name in await read_in_thread(newest_first, names, folder)]


async def _names(search: Search) -> list[str]:
    """All files that a search would open."""
    with only_glob(search.glob, by_type=not search.type) as only:
        types = ["--type", search.type] if search.type else []
        argv = [*listing_options(), "--null", *types, *only]
        answer = await run_ripgrep(argv, search.path)
    if answer.is_cut:
        raise ToolError("There are too many files here; name a folder further down.")
    return answer.output.decode("utf-8", "surrogateescape").split("\0")[:-1]


async def _ask(search: Search, globs: list[str]) -> tuple[list[Line], str]:
    with only_glob(search.glob, by_type=not search.type) as only:
        folder, name = _split(search.path)
        first = search_options() if name == "." else common_options()
        options = [*first, "--null", *_options(search), *only, *globs]
        argv = [*options, "--regexp", search.pattern, "--", name]
        answer = await run_ripgrep(argv, folder)
    wanted = matcher(search.glob) if "--ignore-file" in only else None
    return await read_in_thread(_lines, answer.output, search, wanted), answer.why


def _lines(output: bytes, search: Search, wanted: Callable[[str], bool] | None) -> list[Line]:
    """What ripgrep printed, which may be 8 MB: too long for a loop that others wait for."""
    end = "\0" if search.mode == "files_with_matches" else "\n"
    lines = [_line(each, search) for each in output.decode("utf-8", "replace").split(end)[:-1]]
    if wanted is None:
        return lines
    is_wanted = functools.cache(wanted)
    return [line for line in lines if not line[0] or is_wanted(line[0])]


def _line(text: str, search: Search) -> Line:
    if search.mode == "files_with_matches":
        return text.removeprefix("./"), ""
    name, end, rest = text.partition("\0")
    if not end:
        return "", short(text)
    number = _NUMBER.match(rest) if search.shows_numbers and search.mode == "content" else None
    return name.removeprefix("./"), short(f"{number[1] if number else ':'}{rest}".rstrip("\r"))


def short(line: str) -> str:
    """A line that is no longer than anybody reads."""
    return line if len(line) <= _LONGEST else f"{line[:COLUMNS]} [... omitted end of long line]"


def _split(path: str) -> tuple[str, str]:
    """The folder to search in, and what in it."""
    if Path(path).is_dir():
        return path, "."
    return str(Path(path).parent), f"./{Path(path).name}"


def _options(search: Search) -> list[str]:
    match search.mode:
        case "files_with_matches":
            options = ["--files-with-matches"]
        case "count":
            options = ["--count-matches", "--with-filename", "--sort", "path"]
        case "content":
            options = _content_options(search)
    if search.ignores_case:
        options.append("--ignore-case")
    if search.spans_lines:
        options += ["--multiline", "--multiline-dotall"]
    if search.type:
        options += ["--type", search.type]
    return options


def _content_options(search: Search) -> list[str]:
    return [
        "--with-filename",
        "--no-heading",
        "--line-number" if search.shows_numbers else "--no-line-number",
        *("--max-columns", str(COLUMNS), "--max-columns-preview"),
        *("--before-context", str(search.before), "--after-context", str(search.after)),
        *("--sort", "path"),
    ]


def _result(search: Search, found: Found, limit: int, ctx: ToolEnvironment) -> ToolResult:
    lines = found.lines
    folder = search.path if Path(search.path).is_dir() else str(Path(search.path).parent)
    chosen = lines[:limit] if limit else lines
    full = {name: str(Path(folder, name)) if name else "" for name, _ in chosen}
    short = {path: short_path(path, ctx.cwd) if path else "" for path in full.values()}
    shown = [(full[name], rest) for name, rest in chosen]
    named = [short[path] + rest for path, rest in shown]
    body, _ = clip("\n".join(named), LIMIT, lambda: outputs(ctx.session_id))
    notes: list[str] = []
    if len(lines) > len(shown):
        notes.append(f"({len(shown)} of {len(lines)} lines are shown; head_limit shows more.)")
    if found.why:
        notes.append(f"({found.why})")
    if found.kept:
        notes.append(left_out(found.kept))
    data = _data(search.mode, shown, body)
    data |= {"appliedLimit": limit} if len(lines) > len(shown) else {}
    text = "\n".join([body or "No matches found.", *notes])
    places = tuple(Location(name) for name in data["filenames"][:20])
    return ToolResult(text, data=data, locations=places)


def _data(mode: Mode, shown: list[Line], body: str) -> dict[str, Any]:
    found = list(dict.fromkeys(name for name, _ in shown if name))
    data: dict[str, Any] = {"mode": mode, "numFiles": len(found), "filenames": found}
    match mode:
        case "content":
            data |= {"content": body, "numLines": len(shown)}
        case "count":
            matches = sum(int(rest[1:]) for _, rest in shown if rest[1:].isdigit())
            data |= {"content": body, "numMatches": matches}
        case "files_with_matches":
            pass
    return data
