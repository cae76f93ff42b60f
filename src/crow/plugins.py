"""Plugins: folders in Claude Code's shape, with hooks, skills, commands, sub-agents and servers.

Reading one runs nothing of it. Which are installed and enabled is said in Claude Code's own files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from crow.core.errors import CrowError

Table = dict[str, Any]
MANIFEST = Path(".claude-plugin", "plugin.json")
HOOKS = Path("hooks", "hooks.json")
SERVERS = ".mcp.json"
PARTS = ("skills", "commands", "agents")
CLAUDES = Path(".claude", "plugins")
INLINE = "inline"
"""The marketplace of a plugin that comes from none."""


class PluginError(CrowError):
    """A folder is no plugin that can be used; the text says why."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """One plugin.

    ``id`` is ``name@marketplace``, ``root`` its folder, ``data`` one that outlives its versions.
    ``options`` are what its user configured. ``hooks`` are tables with the file that each stands
    in; ``parts`` are folders of ``skills``, ``commands`` and ``agents``; ``servers`` are MCP's.
    """

    id: str
    root: Path
    data: Path
    options: Mapping[str, Any] = field(default_factory=Table)
    hooks: tuple[tuple[Path, Table], ...] = ()
    parts: Mapping[str, tuple[Path, ...]] = field(default_factory=dict[str, tuple[Path, ...]])
    servers: Mapping[str, Any] = field(default_factory=Table)

    @property
    def name(self) -> str:
        """Its name, without the marketplace."""
        return self.id.rpartition("@")[0]


def is_plugin(folder: Path) -> bool:
    """True where a folder looks like a plugin."""
    parts = (MANIFEST, HOOKS, *PARTS, SERVERS)
    return folder.is_dir() and any((folder / name).exists() for name in parts)


def installed(home: Path, enabled: Mapping[str, Any], project: str) -> Iterator[tuple[str, Path]]:
    """The plugins that Claude Code has installed and that are enabled: ids and folders.

    Of several installations the project's own counts before the user's.
    """
    try:
        table: Any = json.loads((home / CLAUDES / "installed_plugins.json").read_text("utf-8"))
        known = cast("Table", table["plugins"])
        for id_, places in known.items():
            root = _place(places, project) if enabled.get(id_) is True else None
            if root is not None:
                yield id_, root.expanduser()
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return


def _place(places: Any, project: str) -> Path | None:
    """Where a plugin is installed for a project; None where it is not."""
    listed = cast("list[Table]", places if isinstance(places, list) else [places])
    for wanted in (project, None):
        for place in listed:
            if place.get("projectPath") == wanted and isinstance(place.get("installPath"), str):
                return Path(place["installPath"])
    return None


def read(root: Path, *, id_: str = "", configured: Mapping[str, Any], data: Path) -> Plugin:
    """The plugin in a folder. Raises `PluginError`.

    ``configured`` maps ids to what their users configured, as ``{"options": {...}}``. ``data`` is
    the folder for what plugins keep.
    """
    if not root.is_dir():
        raise PluginError("there is no such folder")
    manifest = _json(_inside(root, MANIFEST)) if (root / MANIFEST).exists() else {}
    name = str(manifest.get("name") or root.name)
    id_ = id_ or f"{name}@{INLINE}"
    given: object = configured.get(id_)
    chosen: object = cast("Table", given).get("options") if isinstance(given, dict) else None
    options = {**_defaults(manifest), **(cast("Table", chosen) if chosen else {})}
    parts = {part: tuple(_folders(root, manifest, part)) for part in PARTS}
    return Plugin(
        id_,
        root,
        data / re.sub(r"[^A-Za-z0-9_-]", "-", id_),
        options,
        tuple(_hooks(root, manifest)),
        parts,
        _servers(root, manifest),
    )


def _json(path: Path) -> Table:
    try:
        table: object = json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError) as error:
        raise PluginError(f"{path} cannot be read: {' '.join(str(error).split())}") from None
    if not isinstance(table, dict):
        raise PluginError(f"{path} is no JSON object")
    return cast("Table", table)


def _defaults(manifest: Mapping[str, Any]) -> Table:
    """What options are where their user said nothing."""
    described: object = manifest.get("userConfig")
    if not isinstance(described, dict):
        return {}
    options = cast("dict[str, Any]", described).items()
    return {
        key: option["default"]
        for key, option in options
        if isinstance(option, dict) and "default" in option
    }


def _hooks(root: Path, manifest: Mapping[str, Any]) -> Iterator[tuple[Path, Table]]:
    """The tables of hooks: those of ``hooks/hooks.json``, and what the manifest has or names."""
    written: object = manifest.get("hooks")
    named = cast("list[object]", written) if isinstance(written, list) else [written]
    paths = [_inside(root, HOOKS)] if (root / HOOKS).exists() else []
    paths += [_inside(root, path) for path in named if isinstance(path, str)]
    for path in dict.fromkeys(path.resolve() for path in paths):
        yield path, _hook_table(_json(path))
    for table in named:
        if isinstance(table, dict):
            yield root / MANIFEST, _hook_table(cast("Table", table))


def _hook_table(table: Table) -> Table:
    """The events, which stand below ``hooks`` in files and may stand by themselves inline."""
    inner: object = table.get("hooks", table)
    return cast("Table", inner) if isinstance(inner, dict) else {}


def _folders(root: Path, manifest: Mapping[str, Any], part: str) -> Iterator[Path]:
    written: object = manifest.get(part)
    named = cast("list[object]", written) if isinstance(written, list) else [written]
    paths = [_inside(root, path) for path in (part, *named) if isinstance(path, str)]
    yield from dict.fromkeys(path for path in paths if path.is_dir())


def _servers(root: Path, manifest: Mapping[str, Any]) -> Table:
    """The MCP servers, with the plugin's folder put in for ``${CLAUDE_PLUGIN_ROOT}``."""
    written: object = manifest.get("mcpServers")
    if isinstance(written, str):
        written = _json(_inside(root, written))
    tables = [_json(_inside(root, SERVERS))] if (root / SERVERS).exists() else []
    tables += [cast("Table", written)] if isinstance(written, dict) else []
    servers: Table = {}
    for table in tables:
        servers |= cast("Table", table.get("mcpServers", table))
    text = json.dumps(servers).replace("${CLAUDE_PLUGIN_ROOT}", json.dumps(str(root))[1:-1])
    return cast("Table", json.loads(text))


def _inside(root: Path, path: str | Path) -> Path:
    """A path of the plugin. Raises `PluginError` for one that leads out of it."""
    whole = root / path
    if not whole.resolve().is_relative_to(root.resolve()):
        raise PluginError(f"{path} is outside of it")
    return whole
