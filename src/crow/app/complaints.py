"""What a person should know of settings and extensions before the first prompt."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

from crow.app.composer import ON_REQUEST, UNTRUSTED
from crow.app.plugins import plugins_of
from crow.core.agent import Agent
from crow.settings import Settings

LEFT_OUT = (".mcp.json", ".crow/agents", ".claude/agents", ".crow/plugins")
"""What is said to be left out of a project that nobody has trusted; commands say it themselves."""


def complaints(settings: Settings, agent: Agent | None = None) -> Iterator[str]:
    """What a person should know before the first prompt, one line each."""
    yield from settings.problems
    if settings.withheld:
        names = "; ".join(map(str, settings.withheld))
        yield f"the project is not trusted, so these settings are left out: {names} (crow trust)"
    if settings.project and not settings.trusted:
        there = [name for name in LEFT_OUT if Path(settings.project, name).exists()]
        if there:
            names = ", ".join(there)
            yield f"the project is not trusted, so these are left out: {names} (crow trust)"
    yield from plugins_of(settings)[1]
    for name in ("permissions", "shell_hooks"):
        used = agent.extensions.get(name) if agent else None
        yield from getattr(used, "warnings", ())
    yield from unknown_extensions(settings, agent)
    for found in agent.found if agent else ():
        if found.error == UNTRUSTED:
            yield f"the extension {found.name} ({found.source}) is left out: {UNTRUSTED}"
        elif found.error:
            yield f"the extension {found.name} ({found.source}) is broken: {found.error}"


def unknown_extensions(settings: Settings, agent: Agent | None) -> Iterator[str]:
    """Names under ``extensions`` in the settings that no extension has, one line each."""
    if agent is None:
        return
    known = {*ON_REQUEST, *agent.extensions, *(found.name for found in agent.found)}
    named = {entry.text: str(entry.source) for entry in settings.disabled}
    named |= {name: "the settings" for name in settings.extensions if name not in named}
    for name, source in named.items():
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else " (crow ext list)"
            yield f"{source}: there is no extension {name!r}{hint}"
