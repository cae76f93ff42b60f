"""One item of another agent's configuration: its kind, and the file or folder it lies in."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from crow.core.support.frozen import frozen
from crow.project.files import reason
from crow.project.other_agents.files import LARGEST, Table, read

Kind = Literal["instructions", "commands", "command", "skills", "agent", "server", "left out"]
READ_ONLY = ("Edit", "Write", "NotebookEdit")
"""What somebody does not have who only reads."""


@frozen
class Brought:
    """A thing that somebody brings along from another ``agent``, for Crow to use as it is.

    ``kind`` says what: a file of ``instructions``, a folder of ``commands`` or ``skills``, one
    ``command``, ``agent`` or ``server`` by ``name`` with what Crow makes of it as its ``value``, or
    what is ``left out``, and ``why``. ``path`` is the file or folder; ``is_project`` marks what
    belongs to the project and not to the user.
    """

    agent: str
    kind: Kind
    path: Path
    name: str = ""
    value: Any = field(default=None, repr=False)
    why: str = ""
    is_project: bool = False

    @property
    def label(self) -> str:
        """What it is, in a few words."""
        named = {"server": "MCP server", "command": "command", "agent": "sub-agent"}
        return f"{named[self.kind]} {self.name}" if self.kind in named else self.name or self.kind


@frozen
class AgentFolders:
    """The folders of other agents: a home, a project where there is one, an environment."""

    home: Path
    project: Path | None
    env: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def own(self, variable: str, folder: str) -> Path:
        """The user's folder: what a variable names, else that in the home."""
        told = self.env.get(variable)
        return Path(told) if told and os.path.isabs(told) else self.home / folder  # noqa: PTH117

    def shown(self, path: Path) -> str:
        """A path in few words."""
        for base, sign in ((self.project, "."), (self.home, "~")):
            if base is not None and path.is_relative_to(base):
                return f"{sign}/{path.relative_to(base)}"
        return str(path)


@frozen
class ItemFactory:
    """Those of one agent in one place: the user's or the project's."""

    agent: str
    is_project: bool

    def one(self, kind: Kind, path: Path, name: str = "", value: Any = None) -> Brought:
        """A thing."""
        return Brought(self.agent, kind, path, name, value, is_project=self.is_project)

    def left(self, path: Path, name: str, why: str) -> Brought:
        """A thing that Crow does not use."""
        return Brought(self.agent, "left out", path, name, None, why, self.is_project)

    def folders(self, kind: Kind, *paths: Path) -> Iterator[Brought]:
        """Those of some folders that are there."""
        yield from (self.one(kind, path) for path in paths if path.is_dir())

    def instructions(self, *paths: Path) -> Iterator[Brought]:
        """The first of some files that is there."""
        yield from [self.one("instructions", path) for path in paths if path.is_file()][:1]

    def unused(self, told: Table, path: Path, why: Mapping[str, str]) -> Iterator[Brought]:
        """What a file says and Crow does not use: ``why`` names what is worth a word."""
        yield from (self.left(path, name, why[name]) for name in told if name in why)

    def present(self, folder: Path, why: Mapping[str, str]) -> Iterator[Brought]:
        """What lies in a folder and Crow does not use."""
        yield from (self.left(folder / n, n, why[n]) for n in why if (folder / n).exists())

    def agents(self, paths: Iterable[Path], make: Any) -> Iterator[Brought]:
        """The sub-agents of files: ``make`` gives the name and the table of one, None for none."""
        for path in filter(Path.is_file, paths):
            try:
                made = make(path) if path.stat().st_size <= LARGEST else None
            except (OSError, ValueError) as error:
                yield self.left(path, "sub-agent", f"it cannot be read: {reason(error)}")
                continue
            if made is not None:
                yield self.one("agent", path, *made)

    def table(self, path: Path) -> tuple[Table, list[Brought]]:
        """What a file says, or what is wrong with it."""
        try:
            return read(path), []
        except (OSError, ValueError) as error:
            return {}, [self.left(path, "settings", f"it cannot be read: {reason(error)}")]
