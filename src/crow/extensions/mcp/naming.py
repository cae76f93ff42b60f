"""Names that a model can call and a permission rule can mean, made of what servers call things.

The identity of a tool is its server and its raw name; what is ambiguous is not exposed at all.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import TypeVar

from crow.tools import ToolName

T = TypeVar("T")
LONGEST = 64
_UNFIT = re.compile(r"[^A-Za-z0-9_-]")


def server_part(name: str) -> str:
    """A server's name without two underscores in a row: those end it in a tool's name.

    What more than its characters must change for that, or is too long, ends in a hash of it.
    """
    plain = _UNFIT.sub("_", name)
    part = re.sub("__+", "_", plain).strip("_")
    room = 40 if name.startswith("plugin:") else 32  # of a plugin's the plugin is named as well
    if part == plain and len(part) <= room:
        return part
    return f"{part[: room - 9].rstrip('_') or 'server'}-{_hash(name)}"


def tool_name(server: str, name: str) -> ToolName:
    """A tool's name for models, and whatever rules may call the tool of that server."""
    part, plain = server_part(server), _UNFIT.sub("_", name)
    own = f"mcp__{part}"
    exact = {(own, full_name(server, name))}
    if plain == name:
        exact.add((own, f"{own}__{name}"))
    if "__" not in server:
        exact.add((f"mcp__{server}", f"mcp__{server}__{name}"))
    written = (part, server, _UNFIT.sub("_", server))
    loose = {(f"mcp__{s}", f"mcp__{s}__{n}") for s in written for n in (name, plain)}
    return ToolName(full_name(server, name), exact, loose)


def full_name(server: str, name: str) -> str:
    """``mcp__server__name``; a name that is too long ends in a hash of it."""
    plain = f"mcp__{server_part(server)}__{_UNFIT.sub('_', name)}"
    if len(plain) <= LONGEST:
        return plain
    return f"{plain[: LONGEST - 9]}_{_hash(name)}"


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def unambiguous(
    things: Iterable[T], name_of: Callable[[T], str]
) -> tuple[dict[str, T], dict[str, list[T]]]:
    """Things by name, and the names that several of them would have."""
    by_name: dict[str, list[T]] = defaultdict(list)
    for thing in things:
        by_name[name_of(thing)].append(thing)
    alone = {name: same[0] for name, same in by_name.items() if len(same) == 1}
    return alone, {name: same for name, same in by_name.items() if len(same) > 1}
