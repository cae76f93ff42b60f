"""What pi has: ``settings.json``, prompts and skills. It has no MCP servers of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from crow.cli.moving.files import folders, read
from crow.cli.moving.row import Place, Row

LEFT_OUT = {
    "defaultThinkingLevel": "crow run --effort, or /think in a conversation",
    "theme": "how a terminal looks is not carried over",
    "packages": "its packages are programs for pi",
    "extensions": "its extensions are programs for pi",
    "skills": "name such folders in extensions.skills.paths",
    "prompts": "name such folders in extensions.commands.paths",
}
OWN = {"defaultProvider", "defaultModel"}
GONE = {
    "auth.json": "keys are not copied: crow login",
    "models.json": "providers are in Crow's settings, without keys: crow models",
    "SYSTEM.md": "crow --system-prompt does this",
    "AGENTS.md": "link it to ~/.crow/AGENTS.md, where it is read",
    "keybindings.json": "how a terminal looks is not carried over",
}


def rows(place: Place) -> Iterator[Row]:
    """What becomes of it."""
    own = Path(os.environ.get("PI_CODING_AGENT_DIR") or place.home / ".pi/agent")
    yield from _file(own / "settings.json", place, is_project=False)
    yield from _file(place.project / ".pi/settings.json", place, is_project=True)
    yield from folders(place, "commands", [str(own / "prompts")], [".pi/prompts"])
    yield from folders(place, "skills", [str(own / "skills")], [".pi/skills"])
    for name, why in GONE.items():
        if (own / name).is_file():
            yield Row(name, "left out", why, place.shown(own / name))


def _file(path: Path, place: Place, *, is_project: bool) -> Iterator[Row]:
    shown = place.shown(path)
    try:
        told = read(path)
    except (OSError, ValueError) as error:
        yield Row("settings", "left out", f"it cannot be read: {error}", shown)
        return
    provider, model = told.get("defaultProvider"), told.get("defaultModel")
    if isinstance(model, str) and isinstance(provider, str):
        name = f"{provider}/{model}"
        yield Row("model", "changed", f"it is {name} here", shown, ("model",), name, is_project)
    for name in told:
        if name not in OWN:
            yield Row(name, "left out", LEFT_OUT.get(name, "Crow has nothing like it"), shown)
