"""Cursor's configuration: it is read where it is, or left out."""

from __future__ import annotations

from collections.abc import Iterator

from crow.cli.migration.row import Row, live
from crow.project.other_agents import AgentFolders
from crow.project.other_agents.cursor import things


def rows(place: AgentFolders) -> Iterator[Row]:
    """What becomes of it."""
    yield from live(things(place), place)
    for base in (place.project,) if place.project else ():
        for name in (".cursorrules", ".cursor/rules"):
            if (base / name).exists():
                yield Row("rules", "read live", "", place.shown(base / name))
