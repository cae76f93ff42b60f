"""What pi has: prompts, skills, instructions. It has no MCP servers and agents of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from crow.project.elsewhere.files import Table, texts
from crow.project.elsewhere.thing import Brought, Place, Things

LEFT_OUT = {
    "defaultThinkingLevel": "crow run --effort, or /think in a conversation",
    "packages": "its packages are programs for pi",
    "extensions": "its extensions are programs for pi",
    "theme": "how a terminal looks is not carried over",
}
FILES = {
    "models.json": "providers are in Crow's settings, without keys: crow models",
    "SYSTEM.md": "crow --system-prompt does this",
    "extensions": "its extensions are programs for pi",
    "keybindings.json": "how a terminal looks is not carried over",
    "auth.json": "keys are not copied: crow login",
}


def things(place: Place) -> Iterator[Brought]:
    """All that there is."""
    own = place.own("PI_CODING_AGENT_DIR", ".pi/agent")
    if own.is_dir():
        them = Things("pi", is_project=False)
        yield from them.instructions(own / "AGENTS.md", own / "CLAUDE.md")
        yield from _folder(own, them)
    if place.project is not None and (theirs := place.project / ".pi").is_dir():
        yield from _folder(theirs, Things("pi", is_project=True))


def _folder(base: Path, them: Things) -> Iterator[Brought]:
    yield from them.instructions(base / "APPEND_SYSTEM.md")
    path = base / "settings.json"
    told, wrong = them.table(path)
    yield from wrong
    yield from them.folders("commands", base / "prompts", *_named(told, "prompts", base, them))
    yield from them.folders("skills", base / "skills", *_named(told, "skills", base, them))
    yield from them.unused(told, path, LEFT_OUT)
    yield from them.present(base, FILES)


def _named(told: Table, key: str, base: Path, them: Things) -> Iterator[Path]:
    """The folders that the user's settings name; a project's are in places that are watched."""
    for text in () if them.is_project else texts(told.get(key)):
        yield Path(os.path.normpath(base / os.path.expanduser(text)))
