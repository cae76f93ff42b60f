"""The files of other agents: TOML, JSON and JSON with comments, and folders of Markdown."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from crow.cli.moving.row import Place, Row, Table

TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
TRAILING = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', re.DOTALL)


def read(path: Path) -> Table:
    """A file's table; empty where there is none. Raises ``OSError`` or ``ValueError``."""
    try:
        text = path.read_text("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    if path.suffix == ".toml":
        return tomllib.loads(text)
    return table(json.loads(plain(text) or "{}"))


def plain(text: str) -> str:
    """JSON without comments and without commas that nothing follows."""
    bare = TOKEN.sub(lambda it: it[0] if it[0].startswith('"') else " ", text)
    return TRAILING.sub(lambda it: it[1] or "", bare).strip()


def table(value: object) -> Table:
    """A table; an empty one for anything else."""
    return cast(Table, value) if isinstance(value, dict) else {}


def texts(value: object) -> list[str]:
    """The texts of a list."""
    return (
        [each for each in cast("list[Any]", value) if isinstance(each, str)]
        if isinstance(value, list)
        else []
    )


def pairs(value: object) -> dict[str, str]:
    """A table of texts."""
    return {name: str(each) for name, each in table(value).items()}


def folders(place: Place, kind: str, user: Sequence[str], project: Sequence[str]) -> Iterator[Row]:
    """Folders of commands or skills: the user's are read where they are from now on."""
    for path in (place.home / each for each in user):
        if count := _count(path):
            why = f"{count} files, read where they are"
            value, to = [str(path)], ("extensions", kind, "paths")
            yield Row(kind, "taken", why, place.shown(path), to, value)
    for path in (place.project / each for each in project):
        if count := _count(path):
            why = f"the project's: move or link its {count} files to .crow/{kind}"
            yield Row(kind, "left out", why, place.shown(path))


def _count(folder: Path) -> int:
    return sum(1 for _ in folder.glob("**/*.md")) if folder.is_dir() else 0
