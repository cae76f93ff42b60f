"""Codex' configuration: its model is taken over, the rest is read where it is, or left out."""

from __future__ import annotations

from collections.abc import Iterator

from crow.cli.migration.row import Row, live, model_row
from crow.project.other_agents import AgentFolders
from crow.project.other_agents.codex import things
from crow.project.other_agents.item import ItemFactory


def rows(place: AgentFolders) -> Iterator[Row]:
    """What becomes of it."""
    yield from live(things(place), place)
    own = place.own("CODEX_HOME", ".codex")
    for base, is_project in ((own, False), (place.project, True)):
        if base is not None:
            path = (base / ".codex" if is_project else base) / "config.toml"
            told, _ = ItemFactory("codex", is_project).table(path)
            yield from _model(told, place.shown(path), is_project=is_project)


def _model(told: dict[str, object], file: str, *, is_project: bool) -> Iterator[Row]:
    model, provider = told.get("model"), told.get("model_provider", "openai")
    if not isinstance(model, str):
        return
    yield model_row(str(provider), model, file, is_project=is_project)
