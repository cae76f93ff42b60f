"""A summary of what a project would run or change, to read before trusting it.

The texts are a stranger's: each is one line without control characters, and not longer than it
takes to judge it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from crow.app.extension_loader import is_extension
from crow.project.frontmatter import FrontMatter
from crow.project.trust import (
    FOREIGN,
    FOREIGN_FILES,
    HOMES,
    WATCHED,
    WATCHED_FOLDERS,
    what_would_run,
)
from crow.settings import Settings, Withheld
from crow.settings.secrets import hidden

LONGEST = 500
SHOWN_LISTS = frozenset({"allow", "additionalDirectories", "trusted", "ask", "deny"})
FOLDERS: Mapping[str, str] = {
    "extensions": "extension",
    "agents": "sub-agent",
    "commands": "command",
    "skills": "file of a skill",
    "plugins": "file of a plugin",
    "prompts": "command",
    "command": "command",
    "agent": "sub-agent",
    "skill": "file of a skill",
}
SKILLS = frozenset({"skills", "skill"})
SAID_ELSEWHERE = SKILLS | {"commands"}
"""Folders of whose files a session speaks itself."""
Table = Mapping[str, Any]


def project_requests(settings: Settings) -> list[str]:
    """What the settings' project would run or change, were it trusted; nothing where it is."""
    if settings.trusted or not settings.project:
        return []
    project = Path(settings.project)
    lines = [line for each in settings.withheld for line in _settings(each, project)]
    for path in _used(settings, project):
        lines += _file(path, project)
    return [_line(text) for text in dict.fromkeys(lines)]


def _used(settings: Settings, project: Path) -> Iterator[Path]:
    """The files that would run, without those of agents whose things are switched off."""
    off = {f".{name}" for name, is_on in settings.other_agents.items() if not is_on}
    for path in what_would_run(project):
        name = path.relative_to(project).parts[0]
        if name not in off and not (".opencode" in off and name in FOREIGN_FILES):
            yield path


def summary(settings: Settings) -> str:
    """In one line which settings and files are left out; empty where there is nothing.

    Commands say it themselves; skills are there, only their files are asked about.
    """
    if settings.trusted or not settings.project:
        return ""
    project = Path(settings.project)
    files: dict[str, None] = {}
    for path in _used(settings, project):
        name = path.relative_to(project)
        folder = watched_folder(name)
        beside = folder == "extensions" and not is_extension(path)
        if (
            folder not in (SKILLS if name.parts[0] in FOREIGN else SAID_ELSEWHERE)
            and not beside
            and [*_file(path, project)]
        ):
            files[str(name if folder in ("", "extensions") else Path(*name.parts[:2]))] = None
    return "; ".join([*map(str, settings.withheld), *([", ".join(files)] if files else ())])


def _settings(withheld: Withheld, project: Path) -> Iterator[str]:
    """What one settings file wants."""
    for name, value in withheld.table.items():
        match name, value:
            case "hooks", dict():
                yield from _hooks(cast(Table, value))
            case "permissions", dict():
                yield from _permissions(cast(Table, value))
            case "mcpServers", dict():
                yield from _servers(cast(Table, value))
            case "extensions", dict():
                yield from _extensions(cast(Table, value))
            case "env", dict():
                yield f"environment: {', '.join(cast(Table, value))}"
            case "api_key" | "headers", _:
                yield f"setting: {name}"
            case _:
                yield f"setting: {name} = {_short(hidden(name, value))}"


def _hooks(table: Table) -> Iterator[str]:
    for event, groups in table.items():
        for group in _tables(groups):
            for handler in _tables(group.get("hooks")):
                named = (handler.get(key) for key in ("command", "url", "prompt", "tool"))
                what = next((text for text in named if isinstance(text, str)), "?")
                yield f"hook at {event}: {' '.join([what, *_words(handler.get('args'))])}"


def _permissions(table: Table) -> Iterator[str]:
    for rule in table.get("allow", ()):
        yield f"allows without a question: {rule}"
    for folder in table.get("additionalDirectories", ()):
        yield f"works in: {folder}"
    for name in table.get("trusted", ()):
        yield f"lets an extension allow calls: {name}"
    for name, value in table.items():
        if name not in SHOWN_LISTS:
            yield f"setting: permissions.{name} = {_short(value)}"


def _servers(table: Table) -> Iterator[str]:
    for name, server in table.items():
        told: Table = cast(Table, server) if isinstance(server, dict) else {}
        what = str(told.get("command") or told.get("url") or "?")
        yield f"MCP server {name}: {' '.join([what, *_words(told.get('args'))])}"


def _extensions(table: Table) -> Iterator[str]:
    for name, options in table.items():
        if name == "disable":
            yield f"switches off: {', '.join(map(str, cast('Iterable[object]', options)))}"
        else:
            yield from _options(f"extensions.{name}", options)


def _options(path: str, value: object) -> Iterator[str]:
    """Each option by itself, however deep: none is cut off for the length of another."""
    if isinstance(value, dict) and value:
        for name, each in cast(Table, value).items():
            yield from _options(f"{path}.{name}", each)
    else:
        yield f"setting: {path} = {_short(hidden(path, value))}"


def _file(path: Path, project: Path) -> Iterator[str]:
    """What a file that is no settings file would do."""
    name = path.relative_to(project)
    if path.name == ".mcp.json" and len(name.parts) == 1:
        yield from _servers(_read(path))
        return
    if name.parts[0] in (*FOREIGN, *FOREIGN_FILES):
        yield from _foreign(path, project)
        return
    folder = watched_folder(name)
    if path.suffix == ".md":
        yield from _front_matter(path)
    if folder == "extensions" and not (len(name.parts) > 3 or is_extension(path)):
        yield f"file beside extensions: {name}"
    elif folder in FOLDERS and not (folder == "skills" and path.name == "SKILL.md"):
        yield f"{FOLDERS[folder]}: {name}"
    elif folder not in WATCHED_FOLDERS and path.name not in WATCHED:
        yield f"script: {name}"


def _foreign(path: Path, project: Path) -> Iterator[str]:
    """What a file of another agent's brings."""
    from crow.project.other_agents import AgentFolders, brought_along

    name = path.relative_to(project)
    if folder := watched_folder(name):
        is_skill = path.name == "SKILL.md"
        yield from () if is_skill else (f"{FOLDERS.get(folder, folder)}: {name}",)
        return
    agent = "opencode" if name.name in FOREIGN_FILES else name.parts[0].removeprefix(".")
    found = brought_along(AgentFolders(Path(os.devnull), project, {}), (agent,))
    inside = [each for each in found if each.path == path]
    yield from _servers({each.name: each.value for each in inside if each.kind == "server"})
    yield from (each.label for each in inside if each.kind in ("command", "agent"))


def _front_matter(path: Path) -> Iterator[str]:
    """The hooks that a skill or a sub-agent brings, and a sub-agent's servers."""
    try:
        table = FrontMatter.parse(path.read_text("utf-8-sig", errors="replace")).table
    except OSError:
        return
    hooks, servers = table.get("hooks"), table.get("mcpServers")
    if isinstance(hooks, dict):
        yield from _hooks(cast(Table, hooks))
    for each in _tables(cast("list[object]", servers) if isinstance(servers, list) else [servers]):
        yield from _servers(each)


def watched_folder(name: Path) -> str:
    """The folder of a project's ``.crow`` or the like that a relative path is in; else empty."""
    parts = name.parts
    return parts[1] if len(parts) > 2 and parts[0] in (*HOMES, *FOREIGN) else ""


def _read(path: Path) -> Table:
    try:
        table: Any = json.loads(path.read_text("utf-8-sig"))
        return dict(table["mcpServers"])
    except (OSError, ValueError, TypeError, KeyError):
        return {}


def _tables(value: object) -> Iterator[Table]:
    for each in cast("list[object]", value) if isinstance(value, list) else ():
        if isinstance(each, dict):
            yield cast(Table, each)


def _words(value: object) -> Iterator[str]:
    return map(str, hidden("", value)) if isinstance(value, list) else iter(())


def _short(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _line(text: str) -> str:
    flat = " ".join(hidden("", text).split())
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in flat)
    more = len(shown) - LONGEST
    return shown if more <= 0 else f"{shown[:LONGEST]}… and {more} characters more"
