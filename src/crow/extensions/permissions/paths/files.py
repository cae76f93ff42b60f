"""The decision of the rules on reading or writing one path."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from crow.dataclasses import frozen
from crow.extensions.permissions.paths.disk import Disk, ResolvedPath, inside, place
from crow.extensions.permissions.paths.protected import INSTALLED, is_protected, is_started
from crow.extensions.permissions.programs.lookup import Lookup
from crow.extensions.permissions.rules.pattern import CHILD
from crow.extensions.permissions.rules.rule import EDITORS, READERS, PermissionRule
from crow.extensions.permissions.settings import NO_LIMITS, Limits

Kind = Literal["deny", "ask", "guard", "allow", "none"]
SEARCHERS = frozenset({"Glob", "Grep", "LS"})
PUBLIC = frozenset({"/etc/os-release", "/usr/lib/os-release", "/etc/debian_version"})
WALKED = 4000
PLAIN_NAME = re.compile(r"[^\s'\"\\]+")


@frozen
class Finding:
    """A finding on one path. ``guard``: nothing but the user may approve it."""

    kind: Kind
    reason: str
    rule: str | None = None


@frozen
class Files:
    """The path rules, for one working directory.

    ``roots`` are the directories that are worked in, ``base`` is what ``/`` means in rules
    without a root of their own. ``accepts`` is true where edits in the roots need no question,
    ``frozen`` where nothing is to be edited. ``scripts`` gives what hooks and servers
    run. ``lookup`` finds programs.
    """

    disk: Disk
    cwd: str
    base: str
    roots: tuple[str, ...]
    lookup: Lookup
    allow: tuple[PermissionRule, ...]
    ask: tuple[PermissionRule, ...]
    deny: tuple[PermissionRule, ...]
    accepts: bool = False
    frozen: bool = False
    limits: Limits = NO_LIMITS
    scripts: Callable[[], Iterable[str]] = tuple

    @property
    def has_read_limits(self) -> bool:
        """Whether any deny or ask rule, or a limit, speaks of paths that may be read."""
        return self.limits.blocks_reads or any(
            rule.path is not None for rule in (*self.deny, *self.ask)
        )

    @property
    def has_write_limits(self) -> bool:
        """Whether any deny or ask rule, or a limit, speaks of paths that may be written."""
        return self.limits.blocks_writes or self.has_read_limits

    def read(self, where: ResolvedPath, *, deep: bool = False, tool: str = "Read") -> Finding:
        """Judge a read; ``deep`` is for a directory together with what is directly in it.

        A bare allow rule for the ``tool`` that reads counts, beside the rules for ``Read``.
        """
        found = self._refusal(where, READERS, deep=deep)
        if found is not None:
            return found
        if where.real is None:
            return Finding("guard", f"it cannot be told where {where.path} leads")
        if self.limits.blocks_reads and not self.is_inside(where):
            return outside(where, "blockReadsOutsideWorkingDirectories")
        if self.has_read_limits and self.disk.links(where.real) > 1:
            return Finding("guard", f"{where.path} has another name, which may be a denied one")
        if where.path in PUBLIC and where.real in {where.path, *PUBLIC}:
            return Finding("allow", f"{where.path} is the same for everybody")
        return self._permission(where, "Read", tool, deep=deep and tool in SEARCHERS)

    def write(self, where: ResolvedPath, *, tool: str = "Edit", removed: bool = False) -> Finding:
        """Judge writing, creating or removing; a bare allow rule for the ``tool`` counts."""
        found = self._refusal(where, READERS | EDITORS, deep=False)
        if found is not None:
            return found
        if where.real is None:
            return Finding("guard", f"it cannot be told where {where.path} leads")
        if self.limits.blocks_writes and not self.is_inside(where):
            return outside(where, "blockWritesOutsideWorkingDirectories")
        if self.frozen:
            return Finding("guard", "the mode is plan, which edits nothing")
        guard = self._guard(where, where.real)
        if guard:
            return Finding("guard", f"{where.path} {guard}")
        if self.accepts and not removed and self.is_started(*where.names):
            return self._by_rule(where, "Edit", tool)
        return self._permission(where, "Edit", tool)

    def is_started(self, *paths: str) -> bool:
        """Whether something finds and runs what is at a path, without being told its name."""
        return any(is_started(self.below_root(one)) or self.lookup.holds(one) for one in paths)

    def is_installed(self, path: str) -> bool:
        """Whether a path is, or is in, a directory that package managers fill."""
        return not INSTALLED.isdisjoint(self.below_root(path).casefold().split("/"))

    def below_root(self, path: str) -> str:
        """A path without the working directory that it is in."""
        root = max((one for one in self.lookup.roots if inside(path, one)), key=len, default="")
        return path[len(root) :]

    def _guard(self, where: ResolvedPath, real: str) -> str:
        """Why nothing but the user may approve that a path is written; empty for no reason."""
        if any(is_protected(path) for path in where.names):
            return "is protected"
        if self._runs(where):
            return "is, or holds, what a hook or an MCP server runs"
        if self.disk.is_link(where.path):
            return "is a symbolic link"
        return "has another name elsewhere" if self.disk.links(real) > 1 else ""

    def _runs(self, where: ResolvedPath) -> bool:
        """Whether a path is a script, or a directory that has one somewhere below it."""
        told = tuple(self.scripts())
        every = {*told, *self.real(told)}
        names = [path.casefold() for path in where.names]  # there are disks without cases
        return any(inside(script.casefold(), path) for script in every for path in names)

    def _refusal(self, where: ResolvedPath, tools: frozenset[str], *, deep: bool) -> Finding | None:
        for rules, kind in ((self.deny, "deny"), (self.ask, "ask")):
            rule = self.match(rules, where, tools, deep=deep)
            if rule is not None:
                verb = "denies" if kind == "deny" else "asks about"
                return Finding(
                    "deny" if kind == "deny" else "ask",
                    f"the rule {rule.text} {verb} {where.path}",
                    rule.text,
                )
        return None

    def _permission(
        self, where: ResolvedPath, tool: str, used: str, *, deep: bool = False
    ) -> Finding:
        mode = tool == "Read" or self.accepts
        if mode and self.is_inside(where):
            return Finding("allow", f"{where.path} is in a working directory")
        return self._by_rule(where, tool, used, deep=deep)

    def _by_rule(self, where: ResolvedPath, tool: str, used: str, *, deep: bool = False) -> Finding:
        for rule in self.allow:
            if rule.bare and rule.tools is None and (rule.names(tool) or rule.names(used)):
                return Finding("allow", f"the rule {rule.text} allows it", rule.text)
            if rule.tool == tool and rule.path is not None and self._covers(rule, where, deep=deep):
                return Finding("allow", f"the rule {rule.text} allows it", rule.text)
        verb = "read" if tool == "Read" else "write"
        why = ""
        if not self.is_inside(where):
            why = ", which is outside of the working directories"
        elif tool != "Read" and self.accepts:
            why = ", which something runs without being told to"
        return Finding("none", f"no rule allows to {verb} {where.path}{why}")

    def is_inside(self, where: ResolvedPath) -> bool:
        """Whether a path is in a working directory, as written and really."""
        real = self.real(self.roots)
        if any(inside(path, one) for one in self._left_out() for path in where.names):
            return False
        return any(inside(where.path, root) for root in (*self.roots, *real)) and any(
            where.real is not None and inside(where.real, root) for root in real
        )

    def _left_out(self) -> tuple[str, ...]:
        """The directories that are no part of the working directories."""
        named = [
            place(self.disk, root, text).names
            for text in self.limits.excluded
            for root in self.roots
        ]
        return tuple(path for names in named for path in names)

    def real(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Paths with every link followed."""
        return tuple(self.disk.real(path) or path for path in paths)

    def _starts(self, rule: PermissionRule) -> tuple[str, ...]:
        """The directories that a rule's pattern counts from."""
        assert rule.path is not None
        match rule.path.base:
            case "/":
                return ("/",)
            case "~":
                return (self.disk.home,)
            case "root":
                return (rule.root or self.base,)
            case _ if rule.behaviour == "allow":
                return (self.cwd,)
            case _:
                return tuple(dict.fromkeys((self.cwd, self.base, *self.roots)))

    def _covers(self, rule: PermissionRule, where: ResolvedPath, *, deep: bool = False) -> bool:
        """Whether an allow rule means a path, or (``deep``) all that is below it."""
        starts = self._starts(rule)
        starts = (*starts, *self.real(starts))
        pattern = rule.path
        assert pattern is not None
        if all(pattern.matches(path, starts) for path in where.names):
            return True
        return deep and all(
            pattern.matches(f"{path.rstrip('/')}/{below}", starts)
            for path in where.names
            for below in (CHILD, f"{CHILD}/{CHILD}")
        )

    def match(
        self,
        rules: Sequence[PermissionRule],
        where: ResolvedPath,
        tools: frozenset[str],
        *,
        deep: bool,
    ) -> PermissionRule | None:
        """The deny or ask rule that speaks of a path under either of its names."""
        paths = list(where.names)
        if deep:
            paths += [f"{path.rstrip('/')}/{CHILD}" for path in where.names]
        return next((found for path in paths if (found := self._last(rules, path, tools))), None)

    def _last(
        self, rules: Sequence[PermissionRule], path: str, tools: frozenset[str]
    ) -> PermissionRule | None:
        """The rule for one path: negated patterns take back earlier ones of their source."""
        fixed: PermissionRule | None = None
        relative: dict[str, PermissionRule] = {}
        for rule in rules:
            if rule.path is None or rule.tool not in tools:
                continue
            starts = self._starts(rule)
            if not rule.path.matches(path, (*starts, *self.real(starts))):
                continue
            if rule.path.negated:
                relative.pop(rule.source, None)
            elif rule.path.base == "cwd":
                relative[rule.source] = rule
            else:
                fixed = fixed or rule
        return fixed or next(iter(relative.values()), None)

    def denials_below(self, path: str) -> list[PermissionRule]:
        """The deny and ask rules that may speak of reading something below a directory."""
        rules = [rule for rule in (*self.deny, *self.ask) if rule.tool in READERS]
        found: list[PermissionRule] = []
        for rule in rules:
            starts = self._starts(rule) if rule.path is not None else ()
            starts = (*starts, *self.real(starts))
            if rule.path is not None and rule.path.reaches(path, starts):
                found.append(rule)
        return [] if all(rule.path and rule.path.negated for rule in found) else found

    def hides_denied(
        self, where: ResolvedPath, tools: frozenset[str] = READERS
    ) -> str | Literal[True] | None:
        """What speaks against reading something below a directory: a rule, or that it is excluded.

        True where there is too much below it to tell.
        """
        for path in self._below(where):
            if path is None:
                return True
            found = self._last((*self.deny, *self.ask), path, tools)
            if found is not None:
                return found.text
            if self.limits.blocks_reads and not self.is_inside(ResolvedPath(path, path)):
                return "workingDirectoriesExclude"
        return None

    def leads_out(self, where: ResolvedPath) -> bool:
        """Whether a link anywhere below a directory leads to what may not be read, or may."""
        for path in self._below(where):
            if path is None:
                return True
            if self.disk.is_link(path):
                target = ResolvedPath(path, self.disk.real(path))
                if self.has_read_limits or self.read(target).kind != "allow":
                    return True
        return False

    def has_odd_names(self, path: str) -> bool:
        """Whether a name below a directory could be taken for several names, or none."""
        for found in self._below(ResolvedPath(path, path)):
            if found is None or not PLAIN_NAME.fullmatch(found.rpartition("/")[2]):
                return True
        return False

    def has_dashes(self, path: str) -> bool:
        """Whether a name in a directory begins with a dash, or there are too many to tell."""
        names = self.disk.names(path, WALKED)
        return names is None or any(name.startswith("-") for name in names)

    def _below(self, where: ResolvedPath) -> Iterator[str | None]:
        """All paths below a directory; None where there are too many."""
        left = WALKED
        waiting = [where.real or where.path]
        while waiting:
            directory = waiting.pop()
            names = self.disk.names(directory, left)
            if names is None:
                yield None
                return
            left -= len(names) + 1
            for name in names:
                path = f"{directory.rstrip('/')}/{name.rstrip('/')}"
                yield path
                if name.endswith("/") and name != ".git/":
                    waiting.append(path)


def outside(where: ResolvedPath, setting: str) -> Finding:
    """A refusal of what is not in a working directory; ``setting`` is the one that wants it."""
    return Finding(
        "deny", f"{where.path} is outside of the working directories, which {setting} blocks"
    )
