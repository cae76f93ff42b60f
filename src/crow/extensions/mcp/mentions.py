"""Resources that a prompt names as ``@server:uri``: read, and put behind it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from crow import RunContext
from crow.extensions.mcp.failure import Gone, Refused
from crow.extensions.mcp.result import of_resource
from crow.messages import text_of

if TYPE_CHECKING:
    from crow.extensions.mcp.server import Server

MOST = 10
ENDS = ".,;!?)]}'\""
"""What ends a sentence, and may not belong to a resource."""


def mentioned(text: str, names: Iterable[str]) -> list[tuple[str, str]]:
    """The servers and URIs that a text names, each pair once; at most ten."""
    known = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    if not known or "@" not in text:
        return []
    found = re.findall(rf"(?:^|(?<=\s))@({known}):(\S+)", text)
    pairs = [(name, uri.rstrip(ENDS)) for name, uri in found]
    return [pair for pair in dict.fromkeys(pairs) if pair[1]][:MOST]


async def attach(
    ctx: RunContext, named: Iterable[tuple[str, str]], by: Mapping[str, Server]
) -> None:
    """Put what was named behind the prompt; the model and the user hear of what cannot be read."""
    for name, uri in named:
        try:
            said = text_of(of_resource(name, await by[name].read(uri)).content)
            await ctx.ui.notify(f"read @{name}:{uri}, {len(said)} characters")
        except (Gone, Refused) as error:
            said = f"it cannot be read: {error}"
            await ctx.ui.notify(f"@{name}:{uri}: {said}", severity="warning")
        await ctx.inject_context(f"The user's @{name}:{uri} is:\n{said}")
