"""Permission rules between the settings and whoever judges by them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from crow.project.files import write_atomically
from crow.project.settings import Rule, Rules
from crow.project.trust import is_trusted, scripts, trust
from crow.settings import Entry, Settings

KEPT_RULES = Path(".claude", "settings.local.json")


def rules_of(settings: Settings) -> Rules:
    """The permissions of the settings; of a file that could not be read every call is asked."""
    lists = settings.permissions
    unknown = [Rule("*", text) for text in settings.unread]
    return Rules(
        tuple(map(_rule, lists.allow)),
        (*map(_rule, lists.ask), *unknown),
        tuple(map(_rule, lists.deny)),
        lists.mode or "default",
        tuple(map(place_of, lists.directories)),
        lists.limits,
        tuple(entry.text for entry in lists.excluded),
    )


def _rule(entry: Entry) -> Rule:
    return Rule(entry.text, str(entry.source), entry.source.root or None)


def scripts_run(settings: Settings) -> list[str]:
    """The project's files that hooks and MCP servers run, the project's and everybody else's."""
    project = Path(settings.project)
    if not settings.project or project == Path.home():
        return []
    from crow.project.scripts import scripts_of

    tables: list[object] = [table for _, table in settings.hooks]
    named = scripts_of([*tables, dict(settings.mcp_servers)], project)
    return list(dict.fromkeys(map(str, (*scripts(project), *named))))


def can_keep_rules(settings: Settings) -> bool:
    """True where a rule that the user gives in a session would hold in the next one."""
    return settings.trusted and bool(settings.project) and Path(settings.project) != Path.home()


def keep_rule(settings: Settings, rule: str, behaviour: str) -> None:
    """Add a rule to the project's local settings, where Claude Code keeps such rules as well.

    A file that cannot be read is left alone. The project stays as trusted as it was. Raises
    ``OSError`` where the file cannot be written.
    """
    project = Path(settings.project)
    path = project / KEPT_RULES
    try:
        table: Any = json.loads(path.read_text("utf-8")) if path.exists() else {}
        rules: list[str] = table.setdefault("permissions", {}).setdefault(behaviour, [])
    except (OSError, ValueError, AttributeError):
        return
    if rule in rules or not is_trusted(project):
        return
    rules.append(rule)
    write_atomically(path, f"{json.dumps(table, indent=2, ensure_ascii=False)}\n")
    trust(project)


def place_of(entry: Entry) -> str:
    """The directory that an entry names, absolute: relative ones start at their project."""
    root = entry.source.root or "."
    return os.path.abspath(Path(root) / Path(entry.text).expanduser())  # noqa: PTH100
