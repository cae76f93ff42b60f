"""One line of what becomes of another agent's configuration."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from crow.core.frozen import frozen

Fate = Literal["taken", "changed", "read live", "left out", "there"]
Table = dict[str, Any]


@frozen
class Row:
    """A thing that a file names: what it is, what becomes of it, and why.

    ``path`` is where ``value`` goes in the settings, key by key; a list there is added to. With
    ``is_project`` these are the project's, else the user's.
    """

    what: str
    fate: Fate
    why: str = ""
    file: str = ""
    path: tuple[str, ...] = ()
    value: Any = field(default=None, repr=False)
    is_project: bool = False

    @property
    def is_written(self) -> bool:
        """True for what is to stand in Crow's settings."""
        return bool(self.path)


@frozen
class Place:
    """Where an agent's configuration lies: the home and the project of who moves."""

    home: Path
    project: Path

    def shown(self, path: Path) -> str:
        """A path in few words."""
        for base, sign in ((self.project, "."), (self.home, "~")):
            if path.is_relative_to(base):
                return f"{sign}/{path.relative_to(base)}"
        return str(path)
