"""The folders of skills: each has folders with a SKILL.md; the strongest come first."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from crow import frozen
from crow.extensions.skills.skill import FILE, Scope
from crow.project import Plugin, foreign_folders, repository_folders

if TYPE_CHECKING:
    from crow import Agent

Stamp = tuple[str, int, int]
DEEPEST = 4
"""Folders in folders in which skills of another agent's are looked for."""


@frozen
class SkillFolder:
    """A folder of skills.

    A project's lies below the directory ``base``, and nothing of it may lead out of ``border``.
    One of a ``plugin`` may be a skill itself. One of ``another`` agent's may have folders in it.
    """

    folder: Path
    scope: Scope
    base: Path | None = None
    border: Path | None = None
    plugin: Plugin | None = None
    another: str = ""

    def stamps(self) -> Iterator[Stamp]:
        """Every SKILL.md by path, time of its last change and size; nothing for no folder."""
        try:
            names = self._deep() if self.another else self._names()
        except OSError:
            return
        for name in ("", *names) if self.plugin else names:
            path = os.path.join(self.folder, name, FILE)  # noqa: PTH118 - called for every prompt
            try:
                status = os.stat(path)  # noqa: PTH116
            except OSError:
                continue
            yield path, status.st_mtime_ns, status.st_size

    def _names(self) -> list[str]:
        with os.scandir(self.folder) as entries:
            return sorted(each.name for each in entries if not each.name.startswith("."))

    def _deep(self) -> list[str]:
        """The folders that have a skill, however deep they are."""
        found: list[str] = []
        for place, folders, files in os.walk(self.folder, followlinks=True):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            if FILE in files or place.count(os.sep) - str(self.folder).count(os.sep) > DEEPEST:
                folders.clear()
            if FILE in files:
                found.append(os.path.relpath(place, self.folder))
        return found


def places(
    cwd: Path,
    home: Path,
    folders: Sequence[Path],
    installed: Iterable[Path],
    others: Collection[str] = (),
) -> Iterator[SkillFolder]:
    """The places: the project's from the directory at work upwards, the user's, the installed.

    The home is no project. In a project are those of ``others``, too: other agents by name.
    """
    chain = [folder for folder in repository_folders(cwd) if folder != home]
    for base in chain:
        yield from [SkillFolder(base / folder, "project", base, chain[-1]) for folder in folders]
        for agent, folder in foreign_folders(base, "skills", others):
            yield SkillFolder(folder, "project", base, chain[-1], another=agent)
    yield from [SkillFolder(home / folder, "user") for folder in folders]
    yield from (SkillFolder(folder, "installed") for folder in installed)


def of_plugins(plugins: Sequence[Plugin]) -> Iterator[SkillFolder]:
    """The places of plugins."""
    for plugin in plugins:
        for folder in plugin.parts.get("skills", ()):
            yield SkillFolder(folder, "plugin", plugin=plugin)


def folders_of_extensions(agent: Agent) -> Iterator[Path]:
    """The folder ``skills`` of every package that an extension in use comes from."""
    used = [name for found in agent.found if found.source != "crow" for name in found.names]
    for thing in (agent.extensions[name] for name in used if name in agent.extensions):
        name = thing.__name__ if isinstance(thing, ModuleType) else thing.__module__
        package = sys.modules.get(getattr(sys.modules.get(name), "__package__", None) or "")
        for path in getattr(package, "__path__", ()):
            yield Path(path, "skills")
