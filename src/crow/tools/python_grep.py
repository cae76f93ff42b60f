"""Grep without ripgrep: Python's regular expressions, ripgrep's form of an answer."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from crow.tools.errors import ToolError
from crow.tools.ripgrep import PATIENCE, TOO_LONG, TOO_MUCH
from crow.tools.walk import text_of, walk_files

if TYPE_CHECKING:
    from crow.tools.hidden import Readable
    from crow.tools.search import Line, Search

_MOST = 100_000
_COLUMNS = 500
_TYPES = {
    "c": "*.{c,h}",
    "cpp": "*.{cpp,cc,cxx,hpp,hh,hxx,h}",
    "css": "*.{css,scss}",
    "go": "*.go",
    "html": "*.{html,htm}",
    "java": "*.java",
    "js": "*.{js,jsx,mjs,cjs,vue}",
    "json": "*.{json,jsonl}",
    "md": "*.{md,markdown}",
    "py": "*.{py,pyi}",
    "rust": "*.rs",
    "sh": "*.{sh,bash,zsh}",
    "toml": "*.toml",
    "ts": "*.{ts,tsx,mts,cts}",
    "yaml": "*.{yaml,yml}",
}


def scan(search: Search, may_read: Readable) -> tuple[list[Line], str]:
    """The answer's lines, in the order of the paths, and why there may be more.

    They come from files that ``may_read`` lets through. Raises `ToolError` for a bad pattern.
    """
    flags = re.IGNORECASE if search.ignores_case else 0
    if search.spans_lines:
        flags |= re.DOTALL
    try:
        pattern = re.compile(search.pattern, flags | re.MULTILINE)
    except re.error as error:
        raise ToolError(f"pattern: no regular expression: {error}") from error
    found: list[Line] = []
    end = monotonic() + PATIENCE
    for path in filter(may_read, sorted(_files(search), key=lambda path: Path(path).parts)):
        text = text_of(path)
        new = list(_lines_of(search, pattern, path, text)) if text is not None else []
        has_context = search.mode == "content" and (search.before or search.after)
        found += [("", "--")] if found and new and has_context else []
        found += new
        if len(found) > _MOST:
            return found, TOO_MUCH
        if monotonic() > end:
            return found, TOO_LONG
    return found, ""


def _files(search: Search) -> Iterator[str]:
    if search.type and search.type not in _TYPES:
        raise ToolError(f"type: {search.type} is unknown; there are {', '.join(_TYPES)}")
    wanted = set(walk_files(search.path, _TYPES[search.type])) if search.type else None
    for path in walk_files(search.path, search.glob):
        if wanted is None or path in wanted:
            yield path


def _lines_of(search: Search, pattern: re.Pattern[str], path: str, text: str) -> Iterator[Line]:
    top = search.path if Path(search.path).is_dir() else str(Path(search.path).parent)
    name = os.path.relpath(path, top)
    hits = _hits(search, pattern, text)
    if not hits:
        return
    match search.mode:
        case "files_with_matches":
            yield name, ""
        case "count":
            yield name, f":{sum(1 for _ in pattern.finditer(text))}"
        case "content":
            yield from _context(search, name, _rows(text), hits)


def _rows(text: str) -> list[str]:
    return text.removesuffix("\n").replace("\r\n", "\n").split("\n")


def _hits(search: Search, pattern: re.Pattern[str], text: str) -> set[int]:
    """Numbers of the lines that a match touches, from 0."""
    if not search.spans_lines:
        return {n for n, line in enumerate(_rows(text)) if pattern.search(line)}
    hits: set[int] = set()
    for match in pattern.finditer(text):
        first = text.count("\n", 0, match.start())
        hits |= set(range(first, first + match[0].rstrip("\n").count("\n") + 1))
    return hits


def _context(search: Search, name: str, rows: list[str], hits: set[int]) -> Iterator[Line]:
    last: int | None = None
    for number, row in enumerate(rows):
        near = range(number - search.after, number + search.before + 1)
        if not any(each in hits for each in near):
            continue
        if (search.before or search.after) and last is not None and number > last + 1:
            yield "", "--"
        mark = ":" if number in hits else "-"
        told = f"{number + 1}{mark}" if search.shows_numbers else ""
        yield name, f"{mark}{told}{_cut(row)}"
        last = number


def _cut(row: str) -> str:
    """A row as ripgrep shows a long one."""
    return row if len(row) <= _COLUMNS else f"{row[:_COLUMNS]} [... omitted end of long line]"
