"""Permission rules between the settings and whoever judges by them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from crow.project.files import write_atomically
from crow.project.settings import Rules, SettingsRule
from crow.project.trust import is_trusted, scripts, trust
from crow.settings import Entry, Settings

KEPT_RULES = Path(".claude", "settings.local.json")


def rules_of(settings: Settings) -> Rules:
    """The permissions of the settings; of a file that could not be read every call is asked."""
    lists = settings.permissions
    unknown = [SettingsRule("*", text) for text in settings.unread]
    return Rules(
        tuple(map(_rule, lists.allow)),
        (*map(_rule, lists.ask), *unknown),
        tuple(map(_rule, lists.deny)),
        lists.mode or "default",
        tuple(map(place_of, lists.directories)),
        lists.limits,
        tuple(entry.text for entry in lists.excluded),
    )


def _rule(entry: Entry) -> SettingsRule:
    return SettingsRule(entry.text, str(entry.source), entry.source.root or None)


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
    if settings.has_their_rules:
        return False
    return settings.trusted and bool(settings.project) and Path(settings.project) != Path.home()


def keep_rule(settings: Settings, rule: str, behaviour: str) -> None:
    """Add a rule to the project's local settings, where Claude Code keeps such rules as well.

    Worktrees of one repository share those of the main one. A file that cannot be read is left
    alone. The project stays as trusted as it was. Raises ``OSError`` where the file cannot be
    written.
    """
    project = home_of_rules(settings)
    table = _kept(project)
    lists: Any = table.setdefault("permissions", {}) if table is not None else None
    if not isinstance(lists, dict):
        return
    rules = cast("dict[str, list[str]]", lists).setdefault(behaviour, [])
    if rule not in rules and is_trusted(project):
        rules.append(rule)
        _write(project, table)


def drop_rule(settings: Settings, rule: str) -> bool:
    """Take a rule out of the project's local settings; False where it does not stand there.

    The project stays as trusted as it was. Raises ``OSError`` where the file cannot be written.
    """
    places = dict.fromkeys((home_of_rules(settings), Path(settings.project)))
    return True in [_drop(place, rule) for place in places]


def home_of_rules(settings: Settings) -> Path:
    """The project whose local settings keep rules: the main worktree of its repository, if any."""
    from crow.project.worktree import main_worktree

    project = Path(settings.project)
    main = main_worktree(project)
    counts = main is not None and main != Path.home() and is_trusted(main)
    return main if main is not None and counts else project


def _drop(project: Path, rule: str) -> bool:
    table = _kept(project) or {}
    said: Any = table.get("permissions")
    lists = cast("dict[str, Any]", said) if isinstance(said, dict) else {}
    found = [name for name, rules in lists.items() if isinstance(rules, list) and rule in rules]
    for name in found:
        lists[name].remove(rule)
        if not lists[name]:
            del lists[name]
    if found and not lists:
        del table["permissions"]  # as it was before the first rule
    if found:
        _write(project, table)
    return bool(found)


def _kept(project: Path) -> dict[str, Any] | None:
    """The project's local settings; None where they cannot be read."""
    path = project / KEPT_RULES
    try:
        table: object = json.loads(path.read_text("utf-8")) if path.exists() else {}
    except (OSError, ValueError):
        return None
    return cast("dict[str, Any]", table) if isinstance(table, dict) else None


def _write(project: Path, table: Mapping[str, Any] | None) -> None:
    """Change the project's local settings, and trust it where that was trusted before."""
    was_trusted = is_trusted(project)
    write_atomically(project / KEPT_RULES, f"{json.dumps(table, indent=2, ensure_ascii=False)}\n")
    if was_trusted:
        trust(project)


def place_of(entry: Entry) -> str:
    """The directory that an entry names, absolute: relative ones start at their project."""
    root = entry.source.root or "."
    return os.path.abspath(Path(root) / Path(os.path.expanduser(entry.text)))  # noqa: PTH100
