"""A prompt as its client sent it, kept beside what a model reads of it, to be shown again.

What is long in it stands in the message's content too, and is kept as the place where it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import cast

from crow.acp.content import to_blocks
from crow.acp.jsonrpc import Message, as_object
from crow.core.messages import Content
from crow.core.messages import Message as Said

LONG = 64
BULKY = ("text", "data", "blob")
"""The fields of a block, or of its resource, that can be long."""


def written(blocks: list[Message], content: Content) -> list[Message]:
    """What has to be kept of a prompt to show it again; nothing where its content says it all."""
    if to_blocks(content) == blocks:
        return []
    pieces = list(_pieces(content))
    return [_each(block, partial(_place, pieces)) for block in blocks]


def blocks_of(content: Content | None, kept: Iterable[Message]) -> list[Message]:
    """A prompt's blocks: those that were kept, else what the content says."""
    if not kept:
        return to_blocks(content)
    pieces = list(_pieces(content or ""))
    return [_each(block, partial(_found, pieces)) for block in kept]


def sent_as(message: Said) -> list[Message]:
    """A message of a person's as the blocks that they sent."""
    return blocks_of(message.get("content"), message.get("written", ()))


def _pieces(content: Content) -> Iterable[str]:
    """The texts of a content, by the number of their part."""
    if isinstance(content, str):
        yield content
        return
    for part in content:
        match part:
            case {"type": "image_url", "image_url": {"url": url}}:
                yield url
            case {"type": "input_audio", "input_audio": {"data": data}}:
                yield data
            case _:
                yield str(part.get("text", ""))


def _each(block: Message, change: Callable[[object], object]) -> Message:
    """A block with its long fields changed."""
    changed = {name: change(block[name]) for name in BULKY if name in block}
    if resource := as_object(block.get("resource")):
        changed["resource"] = _each(resource, change)
    return {**block, **changed}


def _place(pieces: list[str], value: object) -> object:
    """Where a long text stands: the number of a part, the beginning, the length."""
    if isinstance(value, str) and len(value) > LONG:
        for number, piece in enumerate(pieces):
            if (start := piece.find(value)) >= 0:
                return [number, start, len(value)]
    return value


def _found(pieces: list[str], value: object) -> object:
    if not isinstance(value, list):
        return value
    number, start, length = cast("list[int]", value)
    return "".join(pieces[number : number + 1])[start : start + length]
