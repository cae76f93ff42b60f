"""A notice that is shown once: what was found of another agent's, and what is not used."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import cast

from crow.project.files import write_atomically
from crow.project.home import state_directory
from crow.project.other_agents.item import Brought

MANY = {"server": "MCP servers", "agent": "sub-agents", "command": "commands"}
FILE = "brought.json"
MOST, NAMED = 200, 8


def notices(found: Sequence[Brought]) -> list[str]:
    """A line for each agent of which somebody was not told yet; they are told of it by that."""
    lines = {_mark(found, agent): _line(found, agent) for agent in dict.fromkeys(_agents(found))}
    known = _known()
    fresh = [mark for mark in lines if mark not in known]
    if fresh:
        kept = json.dumps([*known, *fresh][-MOST:])
        with suppress(OSError):
            write_atomically(state_directory() / FILE, kept, private=True)
    return [lines[mark] for mark in fresh]


def _agents(found: Sequence[Brought]) -> Iterator[str]:
    yield from (each.agent for each in found)


def _mark(found: Sequence[Brought], agent: str) -> str:
    """What is another one where something has come or gone."""
    rows = sorted(f"{it.kind}\0{it.name}\0{it.path}" for it in found if it.agent == agent)
    return hashlib.sha256("\n".join([agent, *rows]).encode()).hexdigest()[:32]


def _line(found: Sequence[Brought], agent: str) -> str:
    own = [each for each in found if each.agent == agent]
    counted = Counter(MANY.get(it.kind, it.kind) for it in own if it.kind != "left out")
    used = ", ".join(
        f"{kind} ({n})" if kind in MANY.values() else kind for kind, n in counted.items()
    )
    left = list(dict.fromkeys(each.name for each in own if each.kind == "left out"))
    more = ", …" if len(left) > NAMED else ""
    unused = f"not used: {', '.join(left[:NAMED])}{more}" if left else ""
    told = "; ".join(filter(None, (f"read where it is: {used}" if used else "", unused)))
    return f"{agent}: {told} (crow import --from {agent} says more)"


def _known() -> list[str]:
    try:
        found: object = json.loads((state_directory() / FILE).read_text("utf-8"))
    except (OSError, ValueError):
        return []
    return cast("list[str]", found) if isinstance(found, list) else []
