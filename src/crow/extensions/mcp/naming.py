"""Names that a model can call and a permission rule can mean, made of what servers call things.

The identity of a tool is its server and its raw name; what is ambiguous is not exposed at all.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import TypeVar

T = TypeVar("T")
LONGEST = 64
_UNFIT = re.compile(r"[^A-Za-z0-9_-]")


def server_part(name: str) -> str:
    """A server's name without two underscores in a row: those end it in a tool's name."""
    plain = re.sub("__+", "_", _UNFIT.sub("_", name)).strip("_")
    room = 40 if name.startswith("plugin:") else 24  # of a plugin's the plugin is named as well
    return plain[:room].rstrip("_") or f"server-{_hash(name)}"


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
