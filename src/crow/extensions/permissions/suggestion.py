"""Rules that would have answered a question: what "always allow" can mean."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from crow.extensions.permissions.builtin import is_safe
from crow.extensions.permissions.domain import host_of
from crow.extensions.permissions.permissions import PATHS, Permissions
from crow.extensions.permissions.rule import EDITORS, READERS, tool_name
from crow.extensions.permissions.script import Simple, Word, walk
from crow.extensions.permissions.wrapper import INTERPRETERS, program, unwrap

MOST = 5
SUBCOMMANDS = frozenset(
    {"git", "npm", "pnpm", "yarn", "bun", "cargo", "go", "docker", "kubectl", "pip", "uv", "poetry"}
    | {
        "npx",
        "pnpx",
        "bunx",
        "uvx",
        "gh",
        "dotnet",
        "mvn",
        "gradle",
        "make",
        "just",
        "rake",
        "bundle",
        "composer",
        "brew",
        "apt",
    }
)
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")
TELLING = frozenset({"-V", "-v", "--version", "-h", "--help"})
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
        plain = [word.text for word in node.words if word.text is not None]
        quoted = " ".join(shlex.quote(word) for word in plain)
        known = len(plain) == len(node.words)
        if known and permissions.judge("Bash", {"command": quoted}, cwd=cwd).decision == "allow":
            continue
        variables, pattern = _variables(node), _pattern(_unwrapped(node.words))
        if variables is None or pattern is None:
            return []
        rule = f"Bash({variables}{pattern})"
        if rule not in rules:
            rules.append(rule)
    return rules if len(rules) <= MOST else []


def _unwrapped(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """The command without ``timeout 5`` and its like, which rules look through."""
    for inner in unwrap(words):
        if inner.plain and not inner.open:
            return _unwrapped(inner.words)
    return words


def _variables(command: Simple) -> str | None:
    """The variables before a command, where one of them could change what runs.

    None where a value is not known.
    """
    if all(map(is_safe, command.assignments)):
        return ""
    values = [(one.name, one.value.text) for one in command.assignments if not one.odd]
    given = [f"{name}={shlex.quote(text)} " for name, text in values if text is not None]
    return "".join(given) if len(given) == len(command.assignments) else None


def _pattern(words: tuple[Word, ...]) -> str | None:
    """``git commit *`` for programs with sub-commands, else the command as it is.

    None where a part of that is not known.
    """
    inner = next((i for i, word in enumerate(words[:3]) if _interprets(word)), None)
    if inner is not None and _reads_its_program(words[inner + 1 :]):
        return None
    texts = [word.text for word in words]
    fixed = 3 if len(words) > 2 and texts[0] in WITH_RUN and texts[1] in {"run", "exec"} else 2
    head = [text for text in texts[:fixed] if text is not None and NAME.fullmatch(text)]
    if inner is None and texts[0] in SUBCOMMANDS and len(head) == fixed:
        return " ".join(head) + " *"
    known = [text for text in texts if text is not None]
    return " ".join(map(shlex.quote, known)) if len(known) == len(texts) else None


def _interprets(word: Word) -> bool:
    name = program(word) or ""
    return name not in SUBCOMMANDS and INTERPRETERS.fullmatch(name) is not None


def _reads_its_program(words: tuple[Word, ...]) -> bool:
    """Whether an interpreter runs whatever comes on its input, which no rule can name."""
    texts = [word.text or "" for word in words]
    return not TELLING.intersection(texts) and all(text.startswith("-") for text in texts)
