"""MCP servers of other agents in Crow's shape, without the secrets that stand in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from crow.cli.moving.row import Row, Table
from crow.settings.secrets import SECRET, hidden

PLACEHOLDER = re.compile(r"[^$]*\$\{\w+(?::-[^}]*)?\}[^$]*")
OPAQUE = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[\w+/=.~-]{20,}")
ALSO = re.compile(r"auth|credential|dsn|private|(?:^|_)pat$|_url$|_uri$", re.IGNORECASE)


def server_row(name: str, told: Table, file: str, changes: list[str], **more: Any) -> Row:
    """A server as it is to be written; it is left out where its address holds a secret."""
    if holds_secret({key: told[key] for key in ("command", "args", "url", "cwd") if key in told}):
        why = f"its address holds a secret: crow mcp add {name} with ${{VARIABLE}} in its place"
        return Row(f"MCP server {name}", "left out", why, file)
    kept = dict(told)
    for part in ("env", "headers"):
        if pairs := told.get(part):
            kept[part] = without_secrets(name, part, pairs, changes)
    fate = "changed" if changes else "taken"
    path = ("mcpServers", name)
    return Row(f"MCP server {name}", fate, "; ".join(changes), file, path, kept, **more)


def without_secrets(
    server: str, part: str, pairs: Mapping[str, str], changes: list[str]
) -> dict[str, str]:
    """Variables or headers, with a variable's name where a value may be secret.

    A header's value is never copied: nobody can tell which of them let somebody in.
    """
    kept: dict[str, str] = {}
    for name, value in pairs.items():
        if PLACEHOLDER.fullmatch(value) or (part == "env" and not is_secret(name, value)):
            kept[name] = value
            continue
        variable = name if part == "env" else variable_of(server, name)
        kept[name] = f"${{{variable}}}"
        changes.append(f"the value of {name} is not copied: set {variable} in your environment")
    return kept


def variable_of(*words: str) -> str:
    """The name of a variable for something."""
    return re.sub(r"\W+", "_", "_".join(words)).upper()


def is_secret(name: str, value: str) -> bool:
    """True for what may be a secret by its name or by how it looks."""
    named = SECRET.search(name) or ALSO.search(name)
    return bool(named or OPAQUE.fullmatch(value) or hidden("value", value) != value)


def holds_secret(told: object) -> bool:
    """True where something in it would be hidden from view, or looks like a key."""
    return hidden("server", told) != told or any(OPAQUE.fullmatch(word) for word in _words(told))


def _words(told: object) -> Iterator[str]:
    """What could be a key: texts without a path, a package or an address in them."""
    match told:
        case str() if not re.search(r"[/@.]", told) and not re.fullmatch(r"[a-z\d-]+", told):
            yield told
        case dict():
            for each in told.values():  # pyright: ignore[reportUnknownVariableType]
                yield from _words(each)  # pyright: ignore[reportUnknownArgumentType]
        case list():
            for each in told:  # pyright: ignore[reportUnknownVariableType]
                yield from _words(each)  # pyright: ignore[reportUnknownArgumentType]
        case _:
            return
