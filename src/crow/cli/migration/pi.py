"""pi's configuration: its model is taken over, the rest is read where it is, or left out."""

from __future__ import annotations

from collections.abc import Iterator

from crow.cli.migration.row import Row, live, model_row
from crow.project.other_agents import AgentFolders
from crow.project.other_agents.item import ItemFactory
from crow.project.other_agents.pi import things


def rows(place: AgentFolders) -> Iterator[Row]:
    """What becomes of it."""
    yield from live(things(place), place)
    own = place.own("PI_CODING_AGENT_DIR", ".pi/agent")
    for base, is_project in ((own, False), (place.project, True)):
        if base is not None:
            path = (base / ".pi" if is_project else base) / "settings.json"
            told, _ = ItemFactory("pi", is_project).table(path)
            model, provider = told.get("defaultModel"), told.get("defaultProvider")
            if isinstance(model, str) and isinstance(provider, str):
                yield model_row(provider, model, place.shown(path), is_project=is_project)
