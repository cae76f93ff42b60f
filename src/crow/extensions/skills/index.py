"""The skills of one session: read once each, their folders looked at again before every prompt."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import field, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

from crow import CrowError
from crow.dataclasses import frozen, mutable
from crow.project import foreign_folders, reason, repository_folders

if TYPE_CHECKING:
    from crow import Agent
    from crow.extensions.skills.skill import Scope, Skill
    from crow.project import Plugin

FILE = "SKILL.md"
Stamp = tuple[str, int, int]
DEEPEST = 4
"""Folders in folders in which skills of another agent's are looked for."""
Files: TypeAlias = "list[tuple[SkillFolder, Stamp]]"
"""The files of skills that there are, each with the place where it was found."""


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

    def stamps(self) -> list[Stamp]:
        """Every SKILL.md by path, time of its last change and size; nothing for no folder."""
        try:
            names = self._deep() if self.another else self._names()
        except OSError:
            return []
        found: list[Stamp] = []
        for name in ("", *names) if self.plugin else names:
            path = os.path.join(self.folder, name, FILE)  # noqa: PTH118 - called for every prompt
            try:
                status = os.stat(path)  # noqa: PTH116
            except OSError:
                continue
            found.append((path, status.st_mtime_ns, status.st_size))
        return found

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
) -> list[SkillFolder]:
    """The places: the project's from the directory at work upwards, the user's, the installed.

    The home is no project. In a project are those of ``others``, too: other agents by name.
    """
    chain = [folder for folder in repository_folders(cwd) if folder != home]
    found: list[SkillFolder] = []
    for base in chain:
        found += [SkillFolder(base / folder, "project", base, chain[-1]) for folder in folders]
        for agent, folder in foreign_folders(base, "skills", others):
            found.append(SkillFolder(folder, "project", base, chain[-1], another=agent))
    found += [SkillFolder(home / folder, "user") for folder in folders]
    return found + [SkillFolder(folder, "installed") for folder in installed]


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


def files_in(places: Iterable[SkillFolder]) -> Files:
    """The files of skills as they are now."""
    return [(place, stamp) for place in places for stamp in place.stamps()]


@mutable
class SkillIndex:
    """The ``skills`` by name; ``faults`` are lines for a person, each told once.

    ``listed`` are the names that the model knows of, None before the system prompt was asked for.
    ``matched`` are the skills whose text stands behind the prompt that is being answered.
    ``refused`` are files that a hook wants left out as they are now. ``commands`` take back those
    that are offered.
    """

    skills: dict[str, Skill] = field(default_factory=dict[str, "Skill"])
    faults: list[str] = field(default_factory=list[str])
    told: set[str] = field(default_factory=set[str])
    listed: set[str] | None = None
    matched: list[Skill] = field(default_factory=list["Skill"])
    commands: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    begun: bool = False
    refused: set[Stamp] = field(default_factory=set[Stamp])
    _files: Files | None = None

    def changed(self, files: Files) -> list[Stamp]:
        """Those of these files that are new or changed since they were read."""
        known = {stamp for _, stamp in self._files or ()}
        return [stamp for _, stamp in files if stamp not in known]

    def refresh(self, files: Files) -> bool:
        """Read what is new or changed; False where nothing is."""
        if files == self._files:
            return False
        self._files = files
        self.skills, self.faults = {}, []
        seen: set[str] = set()
        for place, stamp in files:
            path = stamp[0]
            if stamp in self.refused:
                self.faults.append(f"{path} is left out: a hook refuses its change")
                continue
            real = os.path.realpath(path)
            if real not in seen:
                seen.add(real)
                self._add(place, Path(path), Path(real))
        return True

    def _add(self, place: SkillFolder, path: Path, real: Path) -> None:
        if place.border is not None and not real.is_relative_to(place.border.resolve()):
            self.faults.append(f"{path} is not read: it is outside of the project {place.border}")
            return
        from crow.extensions.skills.skill import read

        try:
            skill, faults = read(path, place.scope, place.base, place.plugin)
            skill = replace(skill, another=place.another)
        except (CrowError, OSError, ValueError, RecursionError) as error:
            self.faults.append(f"{path} is left out: {reason(error)}")
            return
        if not place.another:  # it is as that agent takes it
            self.faults += [f"{path}: {fault}" for fault in faults]
        first = self.skills.setdefault(skill.name, skill)
        if first is not skill and (place.plugin is not None or place.another):
            return
        if first is not skill:
            self.faults.append(f"{path} is hidden by {first.path}, which has the same name")

    def meant(self, name: str) -> list[Skill]:
        """The skills that a name means: one, or all of several plugins whose name it is."""
        from crow.project import matching_names

        names = matching_names(name, self.skills)
        by_title = [skill for skill in self.skills.values() if name in skill.titles]
        return [self.skills[each] for each in names] or by_title

    def news(self) -> list[str]:
        """The faults that nobody was told of yet."""
        fresh = [fault for fault in self.faults if fault not in self.told]
        self.told.update(fresh)
        return fresh

    def for_model(self) -> list[Skill]:
        """The skills that the model may use by itself, by name."""
        found = [skill for skill in self.skills.values() if skill.for_model]
        return sorted(found, key=lambda skill: skill.name)
