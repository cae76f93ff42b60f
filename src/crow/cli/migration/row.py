"""One line of what becomes of another agent's configuration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Any, Literal

from crow.core.support.frozen import frozen
from crow.project.other_agents import AgentFolders, Brought

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


def live(things: Iterable[Brought], place: AgentFolders) -> Iterator[Row]:
    """What becomes of what Crow reads where it is, or leaves out."""
    for each in things:
        fate: Fate = "left out" if each.kind == "left out" else "read live"
        what = each.label
        if each.kind == "server" and each.value.get("enabled") is False:
            fate, what = "left out", f"{what} (it is switched off)"
        yield Row(what, fate, each.why, place.shown(each.path))


def model_row(provider: str, model: str, file: str, *, is_project: bool) -> Row:
    """What becomes of a model: it is taken where its provider is known here by that name."""
    from crow.llm.presets import PRESETS

    name = f"{provider}/{model}"
    if provider not in PRESETS:
        why = f"name it with its provider, which Crow may call otherwise: {name}"
        return Row("model", "left out", why, file)
    return Row("model", "changed", f"it is {name} here", file, ("model",), name, is_project)
