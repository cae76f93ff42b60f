"""Name rules, for agents and skills: each names one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crow.extensions.permissions.rules.rule import PermissionRule


def name_of(name: str, args: Mapping[str, Any]) -> str:
    """The agent or skill that a call is for, with a skill's arguments."""
    keys = ("subagent_type", "agent", "name") if name == "Agent" else ("skill", "command", "name")
    value = next((args[key] for key in keys if isinstance(args.get(key), str)), "")
    more = args.get("args") if name == "Skill" else None
    return f"{value} {more}".strip() if isinstance(more, str) else str(value).strip()


def means(rule: PermissionRule, value: str) -> bool:
    """Whether an agent's or a skill's rule means this one; a refusal means it with any input."""
    wanted = (rule.specifier or "").strip()
    name = value.split(" ", maxsplit=1)[0]
    if wanted.endswith((" *", ":*")):
        return value.startswith(wanted[:-2]) and name == wanted[:-2].split(" ")[0]
    if rule.behaviour == "allow":
        return value == wanted
    return wanted in {value, name}
