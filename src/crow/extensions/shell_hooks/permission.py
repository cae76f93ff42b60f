"""The input and output of a PermissionRequest hook: rules, mode, directories."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from crow import ToolContext


Json = dict[str, Any]
BEHAVIOURS = ("allow", "ask", "deny")
LASTING = frozenset({"localSettings", "projectSettings", "userSettings"})
DANGEROUS = "bypassPermissions"


def suggestions(ctx: ToolContext) -> list[Json]:
    """The changes with which the user would not be asked again."""
    rules = ctx.question.rules if ctx.question else ()
    if not rules:
        return []
    return [
        {
            "type": "addRules",
            "rules": [_split(rule) for rule in rules],
            "behavior": "allow",
            "destination": "localSettings",
        }
    ]


def _split(rule: str) -> Json:
    name, bracket, rest = rule.partition("(")
    return {"toolName": name, "ruleContent": rest[:-1]} if bracket else {"toolName": name}


async def update(ctx: ToolContext, wanted: object) -> list[str]:
    """Make the changes that a hook wants; what cannot be done, in a few words each."""
    updates = cast("list[object]", wanted) if isinstance(wanted, list) else []
    left = [await _change(ctx, each) for each in updates]
    return [why for why in left if why]


async def _change(ctx: ToolContext, wanted: object) -> str:
    told = cast("Json", wanted) if isinstance(wanted, dict) else {}
    kind = str(told.get("type"))
    change = CHANGES.get(kind)
    if change is None:
        return f"{kind} is not done by Crow"
    return await change(ctx, told)


async def _add_rules(ctx: ToolContext, told: Mapping[str, Any]) -> str:
    keep = ctx.question.keep if ctx.question else None
    behaviour = told.get("behavior")
    if keep is None or behaviour not in BEHAVIOURS:
        return "the rules cannot be kept"
    for rule in _texts(told.get("rules")):
        await keep(rule, behaviour, told.get("destination") in LASTING)
    return ""


def _texts(rules: object) -> list[str]:
    """Rules as they stand in settings files."""
    listed = cast("Sequence[object]", rules) if isinstance(rules, list) else ()
    tables = [cast("Json", rule) for rule in listed if isinstance(rule, dict)]
    named = [(table.get("toolName"), table.get("ruleContent")) for table in tables]
    return [f"{name}({content})" if content else name for name, content in named if name]


async def _set_mode(ctx: ToolContext, told: Mapping[str, Any]) -> str:
    mode = told.get("mode")
    if (
        not isinstance(mode, str)
        or mode == DANGEROUS
        or mode not in ctx.agent.modes_of(ctx.session)
    ):
        return f"the mode {mode} is not a hook's to choose"
    return await ctx.agent.configure(ctx.session, mode=mode) or ""


async def _add_directories(ctx: ToolContext, told: Mapping[str, Any]) -> str:
    session = ctx.session
    there = [path for path in _paths(told) if os.path.isdir(path)]  # noqa: PTH112
    session.directories = tuple(dict.fromkeys((*session.directories, *there)))
    return ""


async def _remove_directories(ctx: ToolContext, told: Mapping[str, Any]) -> str:
    gone = _paths(told)
    ctx.session.directories = tuple(d for d in ctx.session.directories if d not in gone)
    return ""


def _paths(told: Mapping[str, Any]) -> list[str]:
    named: object = told.get("directories")
    listed = cast("list[object]", named) if isinstance(named, list) else []
    texts = [path for path in listed if isinstance(path, str)]
    return [os.path.normpath(path) for path in texts if os.path.isabs(path)]  # noqa: PTH117


CHANGES: Mapping[str, Callable[[ToolContext, Mapping[str, Any]], Coroutine[Any, Any, str]]] = {
    "addRules": _add_rules,
    "setMode": _set_mode,
    "addDirectories": _add_directories,
    "removeDirectories": _remove_directories,
}
