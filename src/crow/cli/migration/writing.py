"""The writer of settings files: each row goes to one; what a user has written stays."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import cast

from crow.cli.migration.row import Row, Table
from crow.core.errors import CrowError
from crow.project.files import write_atomically
from crow.project.other_agents import AgentFolders
from crow.settings.files import parse_file, why

Files = dict[Path, Table]


def planned(rows: Iterable[Row], place: AgentFolders) -> tuple[list[Row], Files]:
    """The rows as they turn out, and the files as they would be; only those that change."""
    before: Files = {}
    after: Files = {}
    turned: list[Row] = []
    for row in rows:
        if row.is_written:
            path = target(row, place)
            if path not in before:
                before[path] = _read(path)
                after[path] = copy.deepcopy(before[path])
            row = _laid(row, after[path], place.shown(path))  # noqa: PLW2901
        turned.append(row)
    return turned, {path: told for path, told in after.items() if told != before[path]}


def target(row: Row, place: AgentFolders) -> Path:
    """The settings file that a row belongs into."""
    if row.is_project and place.project is not None:
        return place.project / ".crow" / "settings.local.json"
    return place.home / ".crow" / "settings.json"


def write(files: Files) -> None:
    """Put the files in place. Raises `CrowError`."""
    for path, told in files.items():
        try:
            write_atomically(path, f"{json.dumps(told, indent=2, ensure_ascii=False)}\n")
        except OSError as error:
            raise CrowError(f"{path} cannot be written: {error.strerror}") from error


def _read(path: Path) -> Table:
    if path.with_suffix(".toml").exists():
        raise CrowError(f"{path.with_suffix('.toml')} is there: crow import writes JSON alone")
    if not path.exists():
        return {}
    try:
        return parse_file(path)
    except (OSError, ValueError, CrowError) as error:
        raise CrowError(f"{path}: {why(error)}, so nothing is written") from error


def _laid(row: Row, told: Table, shown: str) -> Row:
    """Lay the value of a row into a table, where nothing stands in its way."""
    *outer, last = row.path
    inner = told
    for key in outer:
        found: object = inner.setdefault(key, {})
        if not isinstance(found, dict):
            return replace(row, fate="left out", why=f"{shown} has something else there", path=())
        inner = cast(Table, found)
    there, value = inner.get(last), cast(object, row.value)
    listed = cast("list[object]", there) if isinstance(there, list) else None
    if there == row.value or (listed and row.value[0] in listed):
        return replace(row, fate="there", why=f"in {shown}", path=())
    if listed is not None and isinstance(value, list):
        listed += cast("list[object]", value)
    elif last in inner:
        return replace(row, fate="left out", why=f"{shown} has its own", path=())
    else:
        inner[last] = copy.deepcopy(row.value)
    return row
