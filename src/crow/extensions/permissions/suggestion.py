"""Rules that would have answered a question: what "always allow" can mean."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from posixpath import join, normpath
from typing import Any

from crow.extensions.permissions.paths.arguments import PATHS
from crow.extensions.permissions.paths.command_paths import SINKS
from crow.extensions.permissions.permissions import Permissions
from crow.extensions.permissions.rules.domain import host_of
from crow.extensions.permissions.rules.rule import EDITORS, READERS, tool_name
from crow.extensions.permissions.shell.builtin import is_safe
from crow.extensions.permissions.shell.command_prefix import prefix_of
from crow.extensions.permissions.shell.commands import script_of
from crow.extensions.permissions.shell.judge import DESCRIPTOR, HERE
from crow.extensions.permissions.shell.script import Group, Redirect, Simple, Word, walk
from crow.extensions.permissions.shell.secret import holds_secret
from crow.extensions.permissions.shell.wrapper import INTERPRETERS, SHELLS, program, unwrap

MOST = 5
TELLING = frozenset({"-V", "-v", "--version", "-h", "--help"})
WRITES = frozenset({">", ">>", ">|", "&>", "&>>", ">&"})


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
        return _path_rule(name, path)
    if name == "WebFetch":
        host = host_of(str(args.get("url", "")))
        return f"WebFetch(domain:{host})" if host else None
    if name in {"Skill", "Agent"}:
        value = args.get("skill") or args.get("subagent_type")
        return f"{name}({value})" if isinstance(value, str) else None
    return str(name)


def _path_rule(name: str, path: str) -> str | None:
    """The rule for one file, an absolute path; None where a pattern would mean others too."""
    plain = not any(mark in path for mark in "*?[]\\!()")
    return f"{'Read' if name in READERS else 'Edit'}(/{path})" if plain else None


def _commands(permissions: Permissions, text: str, cwd: str) -> list[str]:
    """A rule for each command of a script, and each file of a redirect, that none covers yet."""
    rules: list[str] = []
    for node in walk(script_of(text)):
        wanted: list[str | None] = []
        if isinstance(node, Simple) and node.words and not _is_allowed(permissions, node, cwd):
            wanted.append(_rule_of(node))
        if isinstance(node, Simple | Group):
            wanted += _redirected(permissions, node.redirects, cwd)
        if None in wanted:
            return []
        rules += [rule for rule in wanted if rule is not None and rule not in rules]
    return rules if len(rules) <= MOST else []


def _is_allowed(permissions: Permissions, command: Simple, cwd: str) -> bool:
    plain = [word.text for word in command.words if word.text is not None]
    text = " ".join(map(shlex.quote, plain))
    known = len(plain) == len(command.words) and all(map(is_safe, command.assignments))
    return known and permissions.judge("Bash", {"command": text}, cwd=cwd).decision == "allow"


def _redirected(
    permissions: Permissions, redirects: Sequence[Redirect], cwd: str
) -> Iterator[str | None]:
    """Rules for the files that output goes to and input comes from."""
    for one in redirects:
        path = one.target.text
        if path in SINKS or one.op not in {"<", *WRITES} or DESCRIPTOR.fullmatch(path or ""):
            continue
        if path is None or one.target.globbed or path.startswith("~"):
            yield None
            continue
        name = "Read" if one.op == "<" else "Edit"
        where = normpath(join(cwd, path))
        if permissions.judge(name, {"file_path": where}, cwd=cwd).decision != "allow":
            yield _path_rule(name, where)


def _rule_of(command: Simple) -> str | None:
    """The rule that allows a command; None where that would be too much, or kept a secret."""
    words = _unwrapped(command.words)
    fed = words[0].text != "tee" and any(one.op in HERE for one in command.redirects)
    variables, pattern = _variables(command), _pattern(words, fed=fed)
    if variables is None or pattern is None:
        return None
    rule = variables + pattern
    return None if holds_secret(shlex.split(rule)) else f"Bash({rule})"


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


def _pattern(words: tuple[Word, ...], *, fed: bool) -> str | None:
    """``git commit *`` for commands that may have any further words, else the one as it is.

    None where a part of that is not known, or where what it is ``fed`` could be another thing.
    """
    texts = [word.text for word in words]
    if head := prefix_of(texts):
        return " ".join(head) + " *"
    if fed or any(map(_reads_its_program, [words, *(one.words for one in unwrap(words))])):
        return None
    known = [text for text in texts if text is not None]
    return " ".join(map(shlex.quote, known)) if len(known) == len(texts) else None


def _reads_its_program(words: tuple[Word, ...]) -> bool:
    """Whether an interpreter runs whatever comes on its input, which no rule can name."""
    name = program(words[0]) or ""
    if name == "bun" or not (name in SHELLS or INTERPRETERS.fullmatch(name)):
        return False
    texts = [word.text or "" for word in words[1:]]
    return not TELLING.intersection(texts) and all(text.startswith("-") for text in texts)
