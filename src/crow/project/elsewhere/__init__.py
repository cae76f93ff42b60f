"""What people have for other agents - Codex, opencode, pi, Cursor - read where it is.

Nothing is run and nothing is written by reading it. What belongs to a project is marked; whoever
uses it asks for its user's trust.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from crow.project.elsewhere.thing import Brought, Place

__all__ = ["AGENTS", "Brought", "Place", "brought_along"]

AGENTS = ("codex", "opencode", "pi", "cursor")


def brought_along(place: Place, agents: Iterable[str] = AGENTS) -> list[Brought]:
    """All that these agents have for a user and a project; of a name the project's comes first."""
    found = [
        each
        for agent in agents
        for each in import_module(f"crow.project.elsewhere.{agent}").things(place)
    ]
    return sorted(found, key=lambda each: not each.is_project)
