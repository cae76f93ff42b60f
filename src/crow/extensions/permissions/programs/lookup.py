"""The lookup of a program by its name on PATH, and whether it may have been put there.

A command that runs unasked because of its name has to be the program which everybody knows by
that name. In a directory that a session works in, anybody may have written another one.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from functools import lru_cache

from crow.extensions.permissions.paths.disk import Disk, inside

Cwds = tuple[str | None, ...]
"""The directories that a command may run in; None is one that cannot be foreseen."""
BUILT_IN = frozenset(
    "echo printf test [ [[ pwd cd true false : type read wait set exit break continue command "
    "builtin time".split()
)
SYSTEM = frozenset({"/bin", "/usr/bin", "/usr/local/bin"})
STARTS = {"egrep": ("grep",), "fgrep": ("grep",), "git": ("less", "pager")}
"""Programs that start others by name: scripts around them, and what shows long output."""


@dataclass(slots=True)
class Lookup:
    """Looks for programs as the shell does. ``roots`` are worked in.

    ``first`` are directories that a sourced file may have put before all others. ``used`` tells
    that a program was looked for in a directory that may be written, ``written`` that a part of
    the command writes there.
    """

    disk: Disk
    roots: tuple[str, ...]
    first: list[str] = field(default_factory=list[str])
    used: bool = False
    written: bool = False
    _known: tuple[tuple[str, bool], ...] | None = None

    def fault(self, name: str, cwds: Cwds, *, outside: bool = False) -> str | None:
        """Why a name may not be the program that it should be; None where it is.

        ``outside`` of the shell, its built-ins are programs like any others.
        """
        if name in BUILT_IN and not outside:
            return None
        for one in (name, *STARTS.get(name, ())):
            found = self._found(one, cwds)
            if found is not None:
                return f"{one} would be {found}, which may have been put there"
        return None

    def is_systems(self, name: str) -> bool:
        """Whether a name leads to a program in one of the system's own directories."""
        for directory, is_open in self.entries:
            if not is_open and self.disk.settled(f"{directory}/{name}") is not None:
                return directory in SYSTEM
        return False

    def _found(self, name: str, cwds: Cwds) -> str | None:
        """The program, where it is in a directory that is written to."""
        for directory, is_open in self.entries:
            if not is_open:
                real = self.disk.settled(f"{directory}/{name}")
                if real is not None:
                    return real if self._is_open(real) else None
                continue
            self.used = True
            if None in cwds and not directory.startswith("/"):
                return posixpath.join(directory, name)
            for cwd in cwds:
                path = posixpath.join(cwd or "/", directory, name)
                if self.disk.is_program(path):
                    return posixpath.normpath(path)
        return None

    @property
    def entries(self) -> tuple[tuple[str, bool], ...]:
        """The directories that programs are looked for in, and whether they may be written."""
        if self._known is None:
            self._known = entries(self.disk, self.disk.search, self.disk.temporary, self.roots)
        return (*((one, True) for one in self.first), *self._known) if self.first else self._known

    def _is_open(self, path: str) -> bool:
        return is_open(path, self.disk.own, self.disk.temporary, self.roots)

    def holds(self, path: str) -> bool:
        """Whether programs are looked for in a path, directly in it, or somewhere below."""
        return any(
            is_open
            and entry.startswith("/")
            and (posixpath.dirname(path) == entry or inside(entry, path))
            for entry, is_open in self.entries
        )


@lru_cache(maxsize=64)
def entries(
    disk: Disk, search: str, temporary: tuple[str, ...], roots: tuple[str, ...]
) -> tuple[tuple[str, bool], ...]:
    """The directories of a ``PATH``, and which of them may be written."""
    found: list[tuple[str, bool]] = []
    for written in search.split(":"):
        entry = written or "."
        if entry == "~" or entry.startswith("~/"):
            entry = disk.home + entry[1:]
        if not entry.startswith("/"):
            found.append((entry, True))
            continue
        entry = posixpath.normpath(entry)
        names = dict.fromkeys((entry, disk.settled(entry) or entry))
        opened = any(is_open(one, disk.own, temporary, roots) for one in names)
        found += [(one, opened) for one in names]
    return tuple(found)


def is_open(path: str, own: str, temporary: tuple[str, ...], roots: tuple[str, ...]) -> bool:
    """Whether a path is where the session may write, or everybody."""
    if any(root != "/" and inside(path, root) for root in roots):
        return True
    shared = any(inside(path, one) for one in temporary)
    return shared and own not in {path, posixpath.dirname(path)}
