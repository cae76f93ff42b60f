"""Plugins: folders in Claude Code's shape, with hooks, skills, commands, sub-agents and servers.

Reading one runs nothing of it. Which are installed and enabled is said in Claude Code's own files.
What it brings is called ``plugin:name``, and by its name alone where only one thing can be meant.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from crow.core.errors import CrowError
from crow.core.support.frozen import frozen
from crow.project.trust import project_of

if TYPE_CHECKING:
    from crow.core.hooks.context import Context

Table = dict[str, Any]
INDEX = Path(".claude-plugin", "marketplace.json")
MANIFEST = Path(".claude-plugin", "plugin.json")
HOOKS = Path("hooks", "hooks.json")
SERVERS = ".mcp.json"
PARTS = ("skills", "commands", "agents")
STYLES = "output-styles"
LANGUAGES = ".lsp.json"
STRICT = "strict"
"""False where a marketplace's entry stands for the manifest: what it lists is all there is."""
CLAUDES = Path(".claude", "plugins")
INLINE = "inline"
"""The marketplace of a plugin that comes from none."""
ROOT, DATA = "CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA"
_ELSE = r"(?::-(?:[^{}]|\{[^{}]*\})*)?"  # what a shell takes where a variable is not set
_PLACEHOLDER = (
    rf"\$\{{(?:(?P<name>CLAUDE_\w+){_ELSE}|user_config\.(?P<option>[\w-]+))\}}"
    rf"|\$(?P<bare>{ROOT})\b"
)


class PluginError(CrowError):
    """A folder is no plugin that can be used; the text says why."""


@frozen
class Plugin:
    """One plugin.

    ``id`` is ``name@marketplace``, ``root`` its folder, ``data`` one that outlives its versions.
    ``options`` are what its user configured, ``secrets`` the names of those that no text may hold.
    ``hooks`` are tables with the file that each stands in; ``parts`` are folders and files of
    ``skills``, ``commands``, ``agents`` and ``output-styles``; ``servers`` are MCP's, ``languages``
    the names of language servers, which nobody starts; ``version`` is empty where it says none.
    """

    id: str
    root: Path
    data: Path
    options: Mapping[str, Any] = field(default_factory=Table)
    hooks: tuple[tuple[Path, Table], ...] = ()
    parts: Mapping[str, tuple[Path, ...]] = field(default_factory=dict[str, tuple[Path, ...]])
    servers: Mapping[str, Any] = field(default_factory=Table)
    secrets: frozenset[str] = frozenset()
    languages: tuple[str, ...] = ()
    version: str = ""

    @property
    def name(self) -> str:
        """Its name, without the marketplace."""
        return self.id.rpartition("@")[0]

    def called(self, *parts: str) -> str:
        """The whole name of something that it brings."""
        return ":".join((self.name, *parts))

    def option(self, name: str) -> str | None:
        """What stands in texts for an option; None where its user said nothing."""
        if name in self.secrets:
            return f"[{name} is a secret of the plugin {self.name}: texts cannot have it]"
        value = self.options.get(name)
        return value if isinstance(value, str | None) else json.dumps(value)

    def folder(self, name: str) -> str | None:
        """The folder that a variable stands for; the one for data is made."""
        if name == DATA:
            with suppress(OSError):
                self.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        return {ROOT: str(self.root), DATA: str(self.data)}.get(name)


def fill_placeholders(text: str, values: Mapping[str, str], plugin: Plugin | None = None) -> str:
    """A text of a command, a skill or an agent with what its placeholders stand for.

    ``values`` are those that do not come from a plugin. What is not known stays as it is.
    """

    def value(found: re.Match[str]) -> str:
        if found["option"]:
            said = plugin.option(found["option"]) if plugin else None
        else:
            name = found["name"] or found["bare"]
            said = values.get(name) or (plugin.folder(name) if plugin else None)
        return found[0] if said is None else said

    return re.sub(_PLACEHOLDER, value, text)


def placeholder_values(ctx: Context) -> dict[str, str]:
    """What placeholders stand for in a session, whatever file they are in."""
    return {
        "CLAUDE_PROJECT_DIR": str(project_of(ctx.cwd)),
        "CLAUDE_SESSION_ID": ctx.session_id,
        "CLAUDE_EFFORT": str(ctx.session.options.get("params", {}).get("reasoning_effort") or ""),
    }


def matching_names(wanted: str, names: Iterable[str]) -> list[str]:
    """The names that a name means: that very one, else all whose last parts it is."""
    known = list(names)
    return [wanted] if wanted in known else [name for name in known if name.endswith(f":{wanted}")]


def is_plugin(folder: Path) -> bool:
    """True where a folder looks like a plugin."""
    parts = (MANIFEST, HOOKS, *PARTS, STYLES, SERVERS)
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
                yield id_, Path(os.path.expanduser(root))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return


def listed(home: Path, id_: str) -> Table:
    """What a marketplace of Claude Code's says of a plugin; nothing where none can be read."""
    name, _, market = id_.rpartition("@")
    index = home / CLAUDES / "marketplaces" / market / INDEX
    with suppress(PluginError, TypeError):
        for entry in _json(index).get("plugins", ()):
            if isinstance(entry, dict) and cast("Table", entry).get("name") == name:
                return cast("Table", entry)
    return {}


def _place(places: Any, project: str) -> Path | None:
    """Where a plugin is installed for a project; None where it is not."""
    every = cast("list[Table]", places if isinstance(places, list) else [places])
    for wanted in (project, None):
        for place in every:
            if place.get("projectPath") == wanted and isinstance(place.get("installPath"), str):
                return Path(place["installPath"])
    return None


def read(
    root: Path,
    *,
    id_: str = "",
    configured: Mapping[str, Any],
    data: Path,
    said: Mapping[str, Any] | None = None,
) -> Plugin:
    """The plugin in a folder. Raises `PluginError`.

    ``configured`` maps ids to what their users configured, as ``{"options": {...}}``. ``data`` is
    the folder for what plugins keep. ``said`` stands in for a manifest that is not there.
    """
    if not root.is_dir():
        raise PluginError("there is no such folder")
    manifest = _json(_inside(root, MANIFEST)) if (root / MANIFEST).exists() else {**(said or {})}
    name = str(manifest.get("name") or root.name)
    id_ = id_ or f"{name}@{INLINE}"
    given: object = configured.get(id_)
    chosen: object = cast("Table", given).get("options") if isinstance(given, dict) else None
    options = {**_defaults(manifest), **(cast("Table", chosen) if chosen else {})}
    named = {STYLES: manifest.get("outputStyles"), **manifest}
    parts = {part: tuple(_parts(root, named, part)) for part in (*PARTS, STYLES)}
    kept = data / re.sub(r"[^A-Za-z0-9_-]", "-", id_)
    hooks = tuple(_hooks(root, manifest))
    plugin = Plugin(id_, root, kept, options, hooks, parts, secrets=frozenset(_secrets(manifest)))
    languages = tuple(dict.fromkeys(_languages(root, manifest)))
    version = str(manifest.get("version") or "")
    return replace(plugin, servers=_servers(plugin, manifest), languages=languages, version=version)


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
    return {key: table["default"] for key, table in _described(manifest) if "default" in table}


def _secrets(manifest: Mapping[str, Any]) -> Iterator[str]:
    """The options that are secrets."""
    return (key for key, table in _described(manifest) if table.get("sensitive") is True)


def _described(manifest: Mapping[str, Any]) -> Iterator[tuple[str, Table]]:
    """The options that a manifest describes."""
    described: object = manifest.get("userConfig")
    options = cast("Table", described) if isinstance(described, dict) else {}
    return ((key, cast("Table", each)) for key, each in options.items() if isinstance(each, dict))


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


def _parts(root: Path, manifest: Mapping[str, Any], part: str) -> Iterator[Path]:
    """The folders and files of a part; a manifest's stand in for the usual folder, skills' add."""
    written: object = manifest.get(part)
    named = cast("list[object]", written) if isinstance(written, list) else [written]
    paths = [path for path in named if isinstance(path, str)]
    adds = part == "skills" and manifest.get(STRICT) is not False
    usual = [part] if adds or not paths else []
    found = (_inside(root, path) for path in (*usual, *paths))
    yield from (path for path in dict.fromkeys(found) if path.is_dir() or path.suffix == ".md")


def _servers(plugin: Plugin, manifest: Mapping[str, Any]) -> Table:
    """The MCP servers, with what their placeholders stand for."""
    root = plugin.root
    written: object = manifest.get("mcpServers")
    if isinstance(written, str):
        written = _json(_inside(root, written))
    tables = [_json(_inside(root, SERVERS))] if (root / SERVERS).exists() else []
    tables += [cast("Table", written)] if isinstance(written, dict) else []
    servers: Table = {}
    for table in tables:
        servers |= cast("Table", table.get("mcpServers", table))
    told = replace(plugin, secrets=frozenset())  # what starts a server is no text
    return {name: _exported(_served(server, told), plugin) for name, server in servers.items()}


def _languages(root: Path, manifest: Mapping[str, Any]) -> Iterator[str]:
    """The names of language servers; what cannot be read has none, for nobody starts them."""
    written: object = manifest.get("lspServers")
    named = cast("list[object]", written) if isinstance(written, list) else [written]
    for each in (LANGUAGES, *named):
        if isinstance(each, dict):
            yield from cast("Table", each)
        elif isinstance(each, str):
            with suppress(PluginError):
                yield from _json(_inside(root, each))


def _exported(server: Any, plugin: Plugin) -> Any:
    """A server with the plugin's folders in its environment, where it is a program."""
    if not isinstance(server, dict) or "command" not in server:
        return cast("Any", server)
    env: object = cast("Table", server).get("env")
    own = cast("Table", env) if isinstance(env, dict) else {}
    places = {ROOT: str(plugin.root), DATA: str(plugin.data)}
    return {**cast("Table", server), "env": {**places, **own}}


def _served(value: Any, plugin: Plugin) -> Any:
    if isinstance(value, str):
        return fill_placeholders(value, {}, plugin)
    if isinstance(value, dict):
        return {key: _served(one, plugin) for key, one in cast("Table", value).items()}
    if isinstance(value, list):
        return [_served(one, plugin) for one in cast("list[Any]", value)]
    return value


def _inside(root: Path, path: str | Path) -> Path:
    """A path of the plugin. Raises `PluginError` for one that leads out of it."""
    whole = root / path
    if not whole.resolve().is_relative_to(root.resolve()):
        raise PluginError(f"{path} is outside of it")
    return whole
