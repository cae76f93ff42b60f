"""Resources that a prompt names as ``@server:uri``: read, and put behind it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from crow import RunContext
from crow.errors import ModelError
from crow.extensions.mcp.failure import Gone, Refused
from crow.extensions.mcp.result import of_resource
from crow.messages import Content, Part, text_of
from crow.ports import inputs_of, model_named

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


async def _show(ctx: RunContext, what: str, content: Content, size: int) -> str:
    """Put pictures into the prompt, where the model takes such; else what is to be said of them."""
    pictures = [
        each
        for each in (() if isinstance(content, str) else content)
        if each["type"] == "image_url"
    ]
    if not pictures:
        await ctx.ui.notify(f"read {what}, {size} characters")
        return ""
    count = counted(len(pictures), "picture")
    if "image" not in accepted_inputs(ctx):
        told = f"has {count}, which this model does not take"
        await ctx.ui.notify(f"{what} {told}", severity="warning")
        return f"\n[{'a picture' if len(pictures) == 1 else count}, which this model does not take]"
    given = ctx.prompt
    parts = [text_part(given)] if isinstance(given, str) else [*given]
    ctx.prompt = [*parts, text_part(f"{what}:"), *pictures]
    await ctx.ui.notify(f"read {what}, {count}")
    return ""


def text_part(text: str) -> Part:
    """A text as a part of a message."""
    return {"type": "text", "text": text}


def accepted_inputs(ctx: RunContext) -> frozenset[str]:
    """What the session's model takes beside text; pictures where it does not say."""
    try:
        known = inputs_of(model_named(ctx.agent.llm, ctx.session.model))
    except ModelError:
        return frozenset()
    return frozenset({"image"} if known is None else known)


def counted(number: int, noun: str) -> str:
    """A number of things in words."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


async def attach(
    ctx: RunContext, named: Iterable[tuple[str, str]], by: Mapping[str, Server]
) -> None:
    """Put what was named behind the prompt; the model and the user hear of what cannot be read."""
    for name, uri in named:
        try:
            content = of_resource(name, await by[name].read(uri)).content
            said = text_of(content)
            said += await _show(ctx, f"@{name}:{uri}", content, len(said))
        except (Gone, Refused) as error:
            said = f"it cannot be read: {error}"
            await ctx.ui.notify(f"@{name}:{uri}: {said}", severity="warning")
        await ctx.inject_context(f"The user's @{name}:{uri} is:\n{said}")
