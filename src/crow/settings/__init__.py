"""Settings files as one typed object, every value with the file that it came from.

Read from, the stronger later: the user's, the project's, the project's local, the command line's,
the managed ones; in each place ``.claude`` before ``.crow``. Of a project that the user has not
trusted only deny and ask rules are taken.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from crow.core.support.frozen import frozen
from crow.project.files import stamp
from crow.project.trust import is_trusted, project_of, state_file
from crow.settings.effective import settings_of
from crow.settings.files import (
    DROP_INS,
    Memory,
    asked_for,
    machine,
    parse,
    parse_file,
    places,
    shared_rules,
    why,
)
from crow.settings.merged import RULES, MergedSettings
from crow.settings.settings import Settings
from crow.settings.values import Entry as Entry
from crow.settings.values import Permissions as Permissions
from crow.settings.values import SettingsError, Source, Table
from crow.settings.values import Unused as Unused
from crow.settings.values import Withheld as Withheld


def load(
    cwd: str | os.PathLike[str] = ".",
    *,
    file: str | None = None,
    flags: Mapping[str, Any] | None = None,
    home: Path | None = None,
    managed: tuple[Path, ...] | None = None,
    layers: frozenset[str] | None = None,
) -> Settings:
    """The settings that hold in a directory.

    ``file`` is one more settings file (or a JSON object), ``flags`` are the command line's options
    in the shape of a settings file. With ``layers`` only these of ``user``, ``project`` and
    ``local`` are read, and the managed ones. Raises `SettingsError` where ``file`` cannot be read;
    what is wrong in the others is said in ``problems``.
    """
    return Reader(file, flags or {}, home or Path.home(), managed, layers).load(cwd)


@frozen
class Reader:
    """Reads settings, once more when they have changed; the fields are `load`'s."""

    file: str | None
    flags: Mapping[str, Any]
    home: Path
    managed: tuple[Path, ...] | None
    layers: frozenset[str] | None = None

    def load(self, cwd: str | os.PathLike[str], memory: Memory | None = None) -> Settings:
        """The settings that hold in a directory.

        What ``memory`` knows of files that are broken now still holds. Raises `SettingsError`.
        """
        memory = memory or Memory()
        project = project_of(Path(cwd).absolute(), self.home)
        managed = machine() if self.managed is None else self.managed
        own = self._counting(list(places(project, self.home, managed)))
        memory.stamps.clear()
        for path in (state_file(), *(folder / DROP_INS for folder in managed)):
            memory.stamps[str(path)] = stamp(str(path))
        merged = MergedSettings()
        found = [(each, merged.read(each, memory)) for each in own if memory.look(each.path)]
        # Asked when all is read: what was read is what is trusted.
        trusted = project == self.home or is_trusted(project)
        shared = shared_rules(project, self.home)
        for source, table in found:
            if shared is not None and source.path == str(shared):
                is_safe = trusted and is_trusted(shared.parent.parent)
                merged.take(source, _rules_alone(table), trusted=is_safe)
            elif source.layer != "managed":
                safe = trusted or source.layer not in ("project", "local")
                merged.take(source, table, trusted=safe)
        own += self._take_command_line(merged, project, memory)
        for source, table in found:
            if source.layer == "managed":
                merged.take(source, table, trusted=True)
        merged.settle_options()
        return settings_of(merged, project, own, trusted=trusted, reader=self, memory=memory)

    def _counting(self, places: list[Source]) -> list[Source]:
        """Those of the layers that count."""
        if self.layers is None:
            return places
        layers = {*self.layers, "managed"}
        return [each for each in places if each.layer in layers]

    def _take_command_line(
        self, merged: MergedSettings, project: Path, memory: Memory
    ) -> Iterator[Source]:
        """What ``--settings`` and the options say; the file among them."""
        if self.file is not None:
            more = asked_for(self.file)
            yield more
            merged.take(more, _asked_for(more, self.file, merged, memory), trusted=True)
        if self.flags:
            merged.take(Source("command line", root=str(project)), self.flags, trusted=True)


def _rules_alone(table: Table) -> Table:
    """What worktrees of one repository share: what was allowed, and what is asked or refused."""
    permissions = table.get("permissions")
    if not isinstance(permissions, dict):
        return {}
    rules = cast(Table, permissions)
    return {"permissions": {name: rules[name] for name in RULES if name in rules}}


def _asked_for(source: Source, file: str, merged: MergedSettings, memory: Memory) -> Table:
    """What the file of ``--settings`` says. Raises `SettingsError` where it was never readable."""
    if not source.path:
        try:
            return parse(file)
        except (ValueError, SettingsError) as error:
            raise SettingsError(f"--settings: {why(error)}") from None
    known = memory.known(source.path)
    memory.stamps[source.path] = stamp(source.path)
    if known is not None:
        return merged.read(source, memory)
    try:
        memory.good[source.path] = table = parse_file(Path(source.path))
    except (OSError, ValueError, SettingsError) as error:
        raise SettingsError(f"{file}: {why(error)}") from None
    return table
