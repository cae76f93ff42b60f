"""The servers that Claude Code keeps in ``~/.claude.json``: its user's, and those of a project."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from crow.dataclasses import frozen
from crow.extensions.mcp.description import Description, DescriptionError, from_table

SOURCE = "~/.claude.json"
Found = Description | DescriptionError
Table = Mapping[str, Any]


@frozen
class ClaudeServers:
    """The servers of the file: for everywhere, for one project, and which are off there."""

    user: tuple[Found, ...] = ()
    local: tuple[Found, ...] = ()
    off: frozenset[str] = frozenset()
    """Servers of a project's ``.mcp.json`` that its user has switched off."""


def from_claude(project: Path, file: Path) -> ClaudeServers:
    """The servers of Claude Code for a project. The file is never written."""
    try:
        read: object = json.loads(file.read_text("utf-8-sig"))
    except FileNotFoundError:
        return ClaudeServers()
    except (OSError, ValueError) as error:
        return ClaudeServers((DescriptionError(f"{SOURCE} is left out: {error}"),))
    told = _table(read)
    own = _table(_table(told.get("projects")).get(str(project)))
    disabled = _names(own.get("disabledMcpServers"))
    return ClaudeServers(
        tuple(_servers(told, disabled)),
        tuple(_servers(own, disabled)),
        disabled | _names(own.get("disabledMcpjsonServers")),
    )


def _servers(told: Table, disabled: frozenset[str]) -> Iterator[Found]:
    servers = _table(told.get("mcpServers"))
    used = {name: each for name, each in servers.items() if name not in disabled}
    return from_table(used, SOURCE)


def _names(value: object) -> frozenset[str]:
    listed = cast("list[object]", value) if isinstance(value, list) else []
    return frozenset(each for each in listed if isinstance(each, str))


def _table(value: object) -> Table:
    return cast(Table, value) if isinstance(value, Mapping) else {}
