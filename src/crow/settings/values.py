"""Values of settings files, typed: each with the file that it came from."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal

from crow.core.errors import CrowError
from crow.core.support.frozen import frozen

Layer = Literal["user", "project", "local", "command line", "managed"]
Dialect = Literal["crow", "claude"]
Table = dict[str, Any]


class SettingsError(CrowError):
    """A settings file that was asked for by name cannot be used."""


@frozen
class Source:
    """The source of a setting. ``root`` is what its rules' paths that begin with ``/`` mean.

    ``dialect`` says whom the file is written for: of Claude Code's only some keys are taken.
    """

    layer: Layer
    path: str = ""
    root: str = ""
    dialect: Dialect = "crow"

    def __str__(self) -> str:
        return self.path or self.layer


@frozen
class Entry:
    """One entry of a list that all files add to: a permission rule, a directory, a name."""

    text: str
    source: Source


@frozen
class Permissions:
    """The lists of all files joined, the strongest file's first, and the mode to begin with.

    ``excluded`` are no part of the working directories; ``limits`` names the switches that are on,
    such as ``denyInsteadOfPrompting``.
    """

    allow: tuple[Entry, ...] = ()
    ask: tuple[Entry, ...] = ()
    deny: tuple[Entry, ...] = ()
    directories: tuple[Entry, ...] = ()
    trusted: tuple[Entry, ...] = ()
    mode: str | None = None
    excluded: tuple[Entry, ...] = ()
    limits: frozenset[str] = frozenset()


@frozen
class Withheld:
    """The wishes of one file of a project that its user has not trusted."""

    source: Source
    table: Table = field(default_factory=Table, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The settings, the permission lists by themselves."""
        permissions = tuple(f"permissions.{key}" for key in self.table.get("permissions", ()))
        return (*(key for key in self.table if key != "permissions"), *permissions)

    def __str__(self) -> str:
        return f"{self.source}: {', '.join(self.names)}"


@frozen
class Unused:
    """A part of a file that does not count, by name; ``why`` says what is against it.

    Of hooks, the events of a file whose hooks a switch turns off.
    """

    source: Source
    table: Table = field(repr=False)
    why: str = ""
