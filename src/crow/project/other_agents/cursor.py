"""Cursor's configuration: servers, commands, skills and agents. Its rules are instructions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

from crow.project.other_agents.files import Table, table
from crow.project.other_agents.item import READ_ONLY, AgentFolders, Brought, ItemFactory

FILES = {"hooks.json": "put them into the hooks of ~/.crow/settings.json: crow hooks"}


def things(place: AgentFolders) -> Iterator[Brought]:
    """All that there is."""
    if (own := place.home / ".cursor").is_dir():
        yield from _folder(own, place, ItemFactory("cursor", is_project=False))
    if place.project is not None and (theirs := place.project / ".cursor").is_dir():
        yield from _folder(theirs, place, ItemFactory("cursor", is_project=True))


def _folder(base: Path, place: AgentFolders, them: ItemFactory) -> Iterator[Brought]:
    yield from them.folders("commands", base / "commands")
    yield from them.folders("skills", base / "skills")
    yield from them.agents(sorted(base.glob("agents/**/*.md")), agent)
    path = base / "mcp.json"
    told, wrong = them.table(path)
    yield from wrong
    for name, each in table(told.get("mcpServers")).items():
        yield them.one("server", path, name, _filled(each, place))
    yield from them.present(base, FILES)


def _filled(told: object, place: AgentFolders) -> object:
    """A server with what its variables stand for; ``${env:NAME}`` as Crow writes it."""
    if isinstance(told, str):
        known = {"workspaceFolder": place.project or place.home, "userHome": place.home}
        for name, value in known.items():
            told = told.replace(f"${{{name}}}", str(value))
        return told.replace("${env:", "${")
    if isinstance(told, list):
        return [_filled(each, place) for each in cast("list[object]", told)]
    named = table(told)
    return {name: _filled(named[name], place) for name in named} if named else told


def agent(path: Path) -> tuple[str, Table] | None:
    """The agent of a file. Raises ``ValueError`` or ``OSError``."""
    from crow.project.frontmatter import FrontMatter

    front = FrontMatter.parse(path.read_text("utf-8-sig", "replace"))
    description, prompt = front.text("description"), front.body.strip()
    if not (description and prompt):
        raise ValueError("it has no description, or no prompt")
    made: Table = {"description": description, "prompt": prompt}
    if front.flag("readonly"):
        made["disallowedTools"] = list(READ_ONLY)
    return front.text("name") or path.stem, made
