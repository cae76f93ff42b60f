"""Claude Code's configuration: Crow reads it where it is, so there is nothing to write.

What its settings have that is for nobody here is named, with what to do instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from crow.app.plugins import plugins_of
from crow.cli.ignored_settings import first_keys, ignored
from crow.cli.migration.row import Row
from crow.project.other_agents import AgentFolders
from crow.project.other_agents.files import read, table
from crow.project.plugins import CLAUDES
from crow.settings import Settings, load

FILES = ("settings.json", "settings.local.json", "CLAUDE.md")
FOLDERS = ("skills", "commands", "agents", "rules", "output-styles")
LEFT_OUT = {
    "keybindings.json": "how a terminal looks is not carried over",
    ".credentials.json": "keys are not copied: crow login",
}


def rows(place: AgentFolders) -> Iterator[Row]:
    """What becomes of it."""
    folders = [place.home, *([place.project] if place.project else [])]
    for base in (folder / ".claude" for folder in folders):
        for name in (*FILES, *FOLDERS):
            if (base / name).exists():
                yield Row(name, "read live", "", place.shown(base / name))
        for name, why in LEFT_OUT.items():
            if (base / name).exists():
                yield Row(name, "left out", why, place.shown(base / name))
    for name in (".mcp.json", "CLAUDE.md", "CLAUDE.local.md"):
        if place.project is not None and (place.project / name).exists():
            yield Row(name, "read live", "", place.shown(place.project / name))
    yield from _servers(place)
    settings = load(place.project or place.home)
    yield from _plugins(settings, place)
    yield from _left(settings, place)


def _left(settings: Settings, place: AgentFolders) -> Iterator[Row]:
    for each in ignored(settings):
        file = place.shown(Path(each.source.path))
        yield Row("settings", "left out", f"{first_keys(list(each.table))}: {each.why}", file)


def _plugins(settings: Settings, place: AgentFolders) -> Iterator[Row]:
    plugins, problems = plugins_of(settings)
    for plugin in plugins:
        if plugin.root.is_relative_to(place.home / CLAUDES):
            yield Row(f"plugin {plugin.id}", "read live", "", place.shown(plugin.root))
    for problem in problems:
        yield Row("plugin", "left out", problem, place.shown(place.home / CLAUDES))
    known = {plugin.id for plugin in plugins}
    for id_, is_on in settings.enabled_plugins.items():
        origin = settings.origins.get(f"enabledPlugins.{id_}")
        if is_on and id_ not in known and origin is not None:
            why = "it is not installed (crow plugin add)"
            yield Row(f"plugin {id_}", "left out", why, place.shown(Path(origin.path)))


def _servers(place: AgentFolders) -> Iterator[Row]:
    path = place.home / ".claude.json"
    try:
        told = read(path)
    except (OSError, ValueError) as error:
        yield Row("MCP servers", "left out", f"it cannot be read: {error}", place.shown(path))
        return
    own = table(table(told.get("projects")).get(str(place.project)))
    for each in (told, own):
        for name in table(each.get("mcpServers")):
            yield Row(f"MCP server {name}", "read live", "", place.shown(path))
