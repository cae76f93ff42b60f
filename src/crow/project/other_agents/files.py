"""The files of other agents: TOML, JSON and JSON with comments."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any, cast

Table = dict[str, Any]
LARGEST = 1_000_000
TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
TRAILING = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', re.DOTALL)


def read(path: Path) -> Table:
    """A file's table; empty where there is none. Raises ``OSError`` or ``ValueError``."""
    if not path.is_file():
        return {}
    if path.stat().st_size > LARGEST:
        raise ValueError(f"it has more than {LARGEST:,} bytes")
    text = path.read_text("utf-8-sig")
    try:
        return (
            tomllib.loads(text)
            if path.suffix == ".toml"
            else table(json.loads(plain(text) or "{}"))
        )
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


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
