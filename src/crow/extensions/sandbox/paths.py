"""From settings and permission rules to a policy: which paths a command may touch."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from crow.dataclasses import frozen
from crow.extensions.sandbox.mounts import PRIVATE, is_below
from crow.extensions.sandbox.policy import Limits, Policy, Proxy, Ring
from crow.extensions.sandbox.protected import (
    IN_REPOSITORY,
    all_secrets,
    protected_paths,
)
from crow.extensions.sandbox.repositories import shared_repository

if TYPE_CHECKING:
    from crow.project import SandboxSettings

MOST = 20_000
"""Entries of a root that are looked at for the names that a rule keeps from being read."""
SKIPPED = frozenset({".git", "node_modules", ".venv", "__pycache__"})
WILD = frozenset("*?[]!\\")
READING = ("Read",)
WRITING = ("Edit", "Write")


@frozen
class Around:
    """The surroundings of a command: its ring, the session's folders, the temporary one, limits."""

    ring: Ring
    roots: tuple[str, ...]
    tmp: str
    limits: Limits


def policy(settings: SandboxSettings, rules: Any, around: Around) -> Policy:
    """What a command may touch."""
    ring, limits = around.ring, around.limits
    roots = tuple(dict.fromkeys((*around.roots, *(rules.directories if rules else ()))))
    shared = [folder for root in roots if (folder := shared_repository(root)) is not None]
    protected = [path for root in roots for path in protected_paths(root)]
    protected += [os.path.join(folder, name) for folder in shared for name in IN_REPOSITORY]  # noqa: PTH118
    denied = [*settings.deny_write, *plain_paths(rules, "deny", WRITING), *left_out(rules, roots)]
    widened = [*settings.allow_write, *plain_paths(rules, "allow", WRITING)] if rules else []
    writable = [path for path in widened if path not in roots] + shared
    return Policy(
        ring,
        roots,
        around.tmp,
        writable=tuple(dict.fromkeys(writable)) if ring == "workspace" else (),
        read_only=tuple(dict.fromkeys((*protected, *denied))),
        masked=tuple(dict.fromkeys(unreadable(settings, rules))),
        by_name=tuple(dict.fromkeys(named(rules, roots))),
        readable=(*settings.allow_read, *programs()),
        network=network(settings, rules) if ring == "workspace" else "none",
        limits=limits,
    )


def left_out(rules: Any, roots: tuple[str, ...]) -> Iterator[str]:
    """What is no part of the working directories, though it lies in one."""
    for text in rules.excluded if rules else ():
        yield from (os.path.normpath(Path(root, os.path.expanduser(text))) for root in roots)


def programs() -> Iterator[str]:
    """Where programs may lie in a folder that a command has to itself, such as ``/tmp``.

    A virtual environment of Python or Node is the folder around its ``bin``.
    """
    yield from (sys.prefix, os.path.dirname(__file__))  # noqa: PTH120
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if is_below(folder, PRIVATE) and folder not in PRIVATE:
            above = os.path.dirname(folder.rstrip("/"))  # noqa: PTH120
            yield folder if above in PRIVATE else above


def unreadable(settings: SandboxSettings, rules: Any) -> Iterator[str]:
    """What no command may read: secrets, and what settings and deny rules keep from it."""
    allowed = set(settings.allow_read)
    yield from (path for path in all_secrets() if path not in allowed)
    yield from settings.deny_read
    yield from plain_paths(rules, "deny", READING)


def named(rules: Any, roots: tuple[str, ...]) -> Iterator[str]:
    """What deny rules keep from being read by its name, wherever it is in the roots."""
    names = [*_names(rules)]
    if names:
        yield from (path for root in roots for path in _found(root, names))


def network(settings: SandboxSettings, rules: Any) -> Literal["none"] | Proxy:
    """The domains that can be reached."""
    allowed = (*settings.allowed_domains, *_domains(rules, "allow"))
    if not allowed:
        return "none"
    return Proxy(allowed, (*settings.denied_domains, *_domains(rules, "deny")))


# rules


def plain_paths(rules: Any, behaviour: str, tools: tuple[str, ...]) -> Iterator[str]:
    """The absolute paths that rules name without wildcards; with a folder goes all in it."""
    for text, root in _specifiers(rules, behaviour, tools):
        path = _absolute(text.removesuffix("/**").removesuffix("/"), root)
        if path is not None:
            yield path


def _absolute(text: str, root: str) -> str | None:
    """What a rule's path means; None where that is more than one."""
    if WILD.intersection(text) or not text:
        return None
    if text.startswith("//"):
        return os.path.normpath(text[1:])
    if text.startswith("~/"):
        return os.path.expanduser(text)
    if text.startswith("/"):
        return os.path.normpath(root + text) if root else None
    return os.path.normpath(Path(root, text)) if "/" in text and root else None


def _names(rules: Any) -> Iterator[str]:
    """The names, be they patterns, that deny rules keep from being read wherever they are."""
    for text, _ in _specifiers(rules, "deny", READING):
        name = text.removeprefix("**/").removeprefix("./").removesuffix("/**")
        if name and "/" not in name and not name.startswith(("!", "~")) and name.strip("*"):
            yield name


def _found(root: str, patterns: list[str]) -> Iterator[str]:
    """Where files of such names are below a root."""
    from fnmatch import fnmatch

    count = 0
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in SKIPPED]
        for name in (*folders, *files):
            if any(fnmatch(name, pattern) for pattern in patterns):
                yield os.path.join(folder, name)  # noqa: PTH118 - for each file of a project
        count += len(files) + len(folders)
        if count > MOST:
            return


def _domains(rules: Any, behaviour: str) -> Iterator[str]:
    for text, _ in _specifiers(rules, behaviour, ("WebFetch",)):
        if text.startswith("domain:"):
            yield text.removeprefix("domain:").strip()


def _specifiers(rules: Any, behaviour: str, tools: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """What stands in the parentheses of rules for some tools, and what ``/`` means in each."""
    for rule in getattr(rules, behaviour, ()):
        name, bracket, rest = rule.text.partition("(")
        if bracket and name.strip() in tools and rest.rstrip().endswith(")"):
            yield rest.rstrip()[:-1].strip(), rule.root or ""
