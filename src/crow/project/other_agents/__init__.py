"""Configurations of other agents - Codex, opencode, pi, Cursor - read where they are.

Nothing is run and nothing is written by reading it. What belongs to a project is marked; whoever
uses it asks for its user's trust.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib import import_module

from crow.project.other_agents.files import table
from crow.project.other_agents.item import AgentFolders, Brought

__all__ = ["AGENTS", "AgentFolders", "Brought", "brought_along"]

AGENTS = ("codex", "opencode", "pi", "cursor")
TEXTS = ("skills", "instructions")
SAID = ("enabled", "tools", "withoutTools")
"""What a project says of a server of its user's."""


def brought_along(
    place: AgentFolders, agents: Iterable[str] = AGENTS, *, trusted: bool = True
) -> list[Brought]:
    """All that these agents have for a user and a project; of a name the project's comes first.

    Of a project that is not ``trusted`` texts alone are there.
    """
    found: list[Brought] = [
        each
        for agent in agents
        for each in import_module(f"crow.project.other_agents.{agent}").things(place)
    ]
    if not trusted:
        found = [each for each in found if not each.is_project or each.kind in TEXTS]
    found.sort(key=lambda each: not each.is_project)
    return [*_servers_once(found)]


def _servers_once(found: Iterable[Brought]) -> Iterator[Brought]:
    """Of an agent's servers of one name the project's: one that says not where it is says more.

    So does a project switch a server of its user's off there, and on.
    """
    taken: dict[tuple[str, str], Brought] = {}
    others: list[Brought] = []
    for each in found:
        first = taken.get((each.agent, each.name)) if each.kind == "server" else None
        told = table(first.value) if first else {}
        if each.kind != "server":
            others.append(each)
        elif first is None:
            taken[each.agent, each.name] = each
        elif not (told.get("command") or told.get("url")):
            said = {name: told[name] for name in SAID if name in told}
            taken[each.agent, each.name] = replace(first, value={**table(each.value), **said})
    yield from others
    yield from taken.values()
