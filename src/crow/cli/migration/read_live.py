"""Codex, pi and Cursor: a model is taken over, the rest is read where it is, or left out."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import NamedTuple

from crow.cli.migration.row import Row, live, model_row
from crow.project.other_agents import AgentFolders
from crow.project.other_agents.item import ItemFactory


class Model(NamedTuple):
    """The place of a model: a file in a folder that a ``variable`` names, and what it is there."""

    variable: str
    home: str
    project: str
    file: str
    name: str
    provider: str
    otherwise: str | None = None


MODELS = {
    "codex": Model(
        "CODEX_HOME", ".codex", ".codex", "config.toml", "model", "model_provider", "openai"
    ),
    "pi": Model(
        *("PI_CODING_AGENT_DIR", ".pi/agent", ".pi"),
        *("settings.json", "defaultModel", "defaultProvider"),
    ),
}
RULES = {"cursor": (".cursorrules", ".cursor/rules")}


def rows(agent: str, place: AgentFolders) -> Iterator[Row]:
    """What becomes of it."""
    yield from live(import_module(f"crow.project.other_agents.{agent}").things(place), place)
    project = [place.project] if place.project else []
    if (model := MODELS.get(agent)) is not None:
        bases = [(place.own(model.variable, model.home), False)]
        bases += [(base / model.project, True) for base in project]
        for base, is_project in bases:
            path = base / model.file
            told, _ = ItemFactory(agent, is_project).table(path)
            name, provider = told.get(model.name), told.get(model.provider, model.otherwise)
            if isinstance(name, str) and isinstance(provider, str):
                yield model_row(provider, name, place.shown(path), is_project=is_project)
    for path in (base / name for base in project for name in RULES.get(agent, ())):
        if path.exists():
            yield Row("rules", "read live", "", place.shown(path))
