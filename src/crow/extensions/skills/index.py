"""The skills of one session: read once each, looked for again before every prompt."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import field, replace
from pathlib import Path
from typing import TypeAlias

from crow import CrowError, mutable
from crow.extensions.skills.folders import SkillFolder, Stamp
from crow.extensions.skills.skill import Skill, read
from crow.project import matching_names, reason

Files: TypeAlias = "list[tuple[SkillFolder, Stamp]]"
"""The files of skills that there are, each with the place where it was found."""


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

    skills: dict[str, Skill] = field(default_factory=dict[str, Skill])
    faults: list[str] = field(default_factory=list[str])
    told: set[str] = field(default_factory=set[str])
    listed: set[str] | None = None
    matched: list[Skill] = field(default_factory=list[Skill])
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
