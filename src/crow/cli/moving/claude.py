"""What Claude Code has: Crow reads it where it is, so there is nothing to write."""

from __future__ import annotations

from collections.abc import Iterator

from crow.cli.moving.row import Row
from crow.project.elsewhere import Place
from crow.project.elsewhere.files import read, table

FILES = ("settings.json", "settings.local.json", "CLAUDE.md")
FOLDERS = ("skills", "commands", "agents", "rules", "output-styles")
LEFT_OUT = {
    "keybindings.json": "how a terminal looks is not carried over",
    ".credentials.json": "keys are not copied: crow login",
}


def rows(place: Place) -> Iterator[Row]:
    """What becomes of it."""
    folders = [place.home, *([place.project] if place.project else [])]
    for base in (folder / ".claude" for folder in folders):
        for name in (*FILES, *FOLDERS):
            if (base / name).exists():
                yield Row(name, "read live", "", place.shown(base / name))
        for name, why in LEFT_OUT.items():
            if (base / name).exists():
                yield Row(name, "left out", why, place.shown(base / name))
    for name in (".mcp.json", "CLAUDE.md", "CLAUDE.local.md"):
        if place.project is not None and (place.project / name).exists():
            yield Row(name, "read live", "", place.shown(place.project / name))
    yield from _servers(place)


def _servers(place: Place) -> Iterator[Row]:
    path = place.home / ".claude.json"
    try:
        told = read(path)
    except (OSError, ValueError) as error:
        yield Row("MCP servers", "left out", f"it cannot be read: {error}", place.shown(path))
        return
    own = table(table(told.get("projects")).get(str(place.project)))
    for each in (told, own):
        for name in table(each.get("mcpServers")):
            yield Row(f"MCP server {name}", "read live", "", place.shown(path))
