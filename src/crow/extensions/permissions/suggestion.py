"""Rules that would have answered a question: what "always allow" can mean."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from crow.extensions.permissions.domain import host_of
from crow.extensions.permissions.permissions import PATHS, Permissions
from crow.extensions.permissions.rule import EDITORS, READERS, tool_name
from crow.extensions.permissions.script import Simple, walk

MOST = 5
SUBCOMMANDS = frozenset(
    {"git", "npm", "pnpm", "yarn", "bun", "cargo", "go", "docker", "kubectl", "pip", "uv", "poetry"}
    | {"gh", "dotnet", "mvn", "gradle", "make", "just", "rake", "bundle", "composer", "brew", "apt"}
)
WITH_RUN = frozenset({"npm", "pnpm", "yarn", "bun", "uv", "poetry", "cargo"})


def suggest(permissions: Permissions, tool: str, args: Mapping[str, Any], *, cwd: str) -> list[str]:
    """The rules with which a call would run unasked; none where no rule can do that."""
    name = tool_name(tool)
    if name == "Bash":
        rules = _commands(permissions, str(args.get("command", "")), cwd)
    else:
        rules = [rule] if (rule := _rule(name, args)) else []
    changed = permissions
    for rule in rules:
        changed = changed.with_rule(rule)
    return rules if changed.judge(tool, args, cwd=cwd).decision == "allow" else []


def _rule(name: str, args: Mapping[str, Any]) -> str | None:
    if name in READERS | EDITORS:
        path = next((args[key] for key in PATHS if isinstance(args.get(key), str)), None)
        if path is None or not path.startswith("/"):
            return None
        plain = not any(mark in path for mark in "*?[]\\!()")
        return f"{'Read' if name in READERS else 'Edit'}(/{path})" if plain else None
    if name == "WebFetch":
        host = host_of(str(args.get("url", "")))
        return f"WebFetch(domain:{host})" if host else None
    if name in {"Skill", "Agent"}:
        value = args.get("skill") or args.get("subagent_type")
        return f"{name}({value})" if isinstance(value, str) else None
    return name


def _commands(permissions: Permissions, text: str, cwd: str) -> list[str]:
    """A rule for each command of a script that nothing covers yet."""
    rules: list[str] = []
    for node in walk(permissions.read(text)):
        if not isinstance(node, Simple) or not node.words:
            continue
        words = [word.text for word in node.words]
        plain = [word for word in words if word is not None]
        if len(plain) != len(words):
            return []
        quoted = " ".join(shlex.quote(word) for word in plain)
        if permissions.judge("Bash", {"command": quoted}, cwd=cwd).decision == "allow":
            continue
        rule = f"Bash({_pattern(plain)})"
        if rule not in rules:
            rules.append(rule)
    return rules if len(rules) <= MOST else []


def _pattern(words: list[str]) -> str:
    """``git commit *`` for programs with sub-commands, else the command as it is."""
    fixed = 3 if len(words) > 2 and words[0] in WITH_RUN and words[1] in {"run", "exec"} else 2
    head = words[:fixed]
    if (
        words[0] in SUBCOMMANDS
        and len(words) >= 2
        and all(w.replace("-", "a").isalnum() for w in head)
    ):
        return " ".join(head) + " *"
    return " ".join(shlex.quote(word) for word in words)
