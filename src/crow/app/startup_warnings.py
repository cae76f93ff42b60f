"""Warnings of settings and extensions, for a person to read before the first prompt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from crow.app.composer import UNTRUSTED
from crow.app.plugins import plugins_of
from crow.core.agent import Agent
from crow.core.errors import nearest
from crow.core.support.validation import implementing
from crow.ports.extensions import WarningProvider
from crow.settings import Settings

UNREAD = "the rules of a settings file are not known, so every call is asked about"


def startup_warnings(settings: Settings, agent: Agent | None = None) -> Iterator[str]:
    """What a person should know before the first prompt, one line each."""
    yield from of_settings(settings)
    yield from plugins_of(settings)[1]
    yield from of_extensions(agent.extensions if agent else {})
    yield from unknown_extensions(settings, agent)
    for found in agent.found if agent else ():
        yield from found.problems
        if found.error and found.error != UNTRUSTED:
            yield f"the extension {found.name} ({found.source}) is broken: {found.error}"


def of_extensions(used: Mapping[str, Any]) -> Iterator[str]:
    """What extensions find wrong with what they were given, one line each."""
    for each in implementing(used.values(), WarningProvider):
        if not isinstance(each, ModuleType):  # which may have imported Python's own
            yield from each.warnings


def of_settings(settings: Settings) -> Iterator[str]:
    """What is wrong with the files, what is not known, and what is left out for want of trust."""
    yield from settings.problems
    if settings.unread:
        yield UNREAD
    yield from of_trust(settings)


def of_trust(settings: Settings) -> Iterator[str]:
    """What is left out for want of trust, in a line."""
    if settings.trusted:
        return
    from crow.app.trust_summary import summary

    if left_out := summary(settings):
        yield f"the project is not trusted, so these are left out: {left_out} (crow trust)"


def unknown_extensions(settings: Settings, agent: Agent | None) -> Iterator[str]:
    """Names under ``extensions`` in the settings that no extension has, one line each."""
    if agent is None:
        return
    known = {*agent.extensions, *[found.name for found in agent.found]}
    named = {entry.text: str(entry.source) for entry in settings.disabled}
    for name in settings.extensions:
        start = f"extensions.{name}."
        origin = (str(by) for path, by in settings.origins.items() if path.startswith(start))
        named.setdefault(name, next(origin, "the settings"))
    for name, source in named.items():
        if name not in known:
            near = nearest(name, known)
            hint = f"; did you mean {near!r}?" if near else " (crow ext list)"
            yield f"{source}: there is no extension {name!r}{hint}"
