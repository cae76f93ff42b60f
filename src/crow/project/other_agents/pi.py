"""pi's configuration: servers, prompts, skills and instructions. It has no agents of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from crow.project.other_agents.files import Table, pairs, table, texts
from crow.project.other_agents.item import AgentFolders, Brought, ItemFactory

LEFT_OUT = {
    "defaultThinkingLevel": "crow run --effort, or /think in a conversation",
    "packages": "its packages are programs for pi",
    "extensions": "its extensions are programs for pi",
    "theme": "how a terminal looks is not carried over",
}
FILES = {
    "models.json": "providers are in Crow's settings, without keys: crow models",
    "SYSTEM.md": "crow --system-prompt does this",
    "extensions": "its extensions are programs for pi",
    "keybindings.json": "how a terminal looks is not carried over",
    "auth.json": "keys are not copied: crow login",
}


def things(place: AgentFolders) -> Iterator[Brought]:
    """All that there is."""
    own = place.own("PI_CODING_AGENT_DIR", ".pi/agent")
    if own.is_dir():
        them = ItemFactory("pi", is_project=False)
        names = ("AGENTS.override.md", "AGENTS.md", "CLAUDE.md")
        yield from them.instructions(*(own / name for name in names))
        yield from _folder(own, them)
    if place.project is not None and (theirs := place.project / ".pi").is_dir():
        yield from _folder(theirs, ItemFactory("pi", is_project=True))


def _folder(base: Path, them: ItemFactory) -> Iterator[Brought]:
    yield from them.instructions(base / "APPEND_SYSTEM.md")
    path = base / "settings.json"
    told, wrong = them.table(path)
    yield from wrong
    yield from them.folders("commands", base / "prompts", *_named(told, "prompts", base, them))
    yield from them.folders("skills", base / "skills", *_named(told, "skills", base, them))
    yield from them.unused(told, path, LEFT_OUT)
    yield from _servers(base / "mcp.json", them)
    yield from them.present(base, FILES)


def _servers(path: Path, them: ItemFactory) -> Iterator[Brought]:
    told, wrong = them.table(path)
    yield from wrong
    for name, each in table(told.get("mcpServers")).items():
        values = [
            *pairs(table(each).get("env")).values(),
            *pairs(table(each).get("headers")).values(),
        ]
        if any(value.startswith("!") for value in values):
            yield them.left(path, f"MCP server {name}", "a command gives one of its values")
        else:
            yield them.one("server", path, name, _at_home(each))


def _at_home(told: object) -> object:
    """A server with the home in the place of ``~/``."""
    if isinstance(told, str):
        return os.path.expanduser(told) if told.startswith("~/") else told
    if isinstance(told, list):
        return [_at_home(each) for each in cast("list[object]", told)]
    named = table(told)
    return {name: _at_home(named[name]) for name in named} if named else told


def _named(told: Table, key: str, base: Path, them: ItemFactory) -> Iterator[Path]:
    """The folders that the user's settings name; a project's are in places that are watched."""
    for text in () if them.is_project else texts(told.get(key)):
        yield Path(os.path.normpath(base / os.path.expanduser(text)))
