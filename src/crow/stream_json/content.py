"""The content of a program's prompt, as that of a message."""

from __future__ import annotations

from typing import Any, cast

from crow.core.messages import Content, Part
from crow.stream_json.lines import ControlError, Message


def content_of(message: Message) -> Content:
    """The content of a ``user`` message. Raises `ControlError` for what cannot be read."""
    said: Any = message.get("message")
    content: Any = cast(Message, said).get("content") if isinstance(said, dict) else None
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not content:
        raise ControlError("a user message needs a message with content")
    parts = [part_of(block) for block in cast("list[Any]", content)]
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts if part["type"] == "text")
    return parts


def part_of(block: Any) -> Part:
    """A block as a part."""
    match block:
        case {"type": "text", "text": str(text)}:
            return {"type": "text", "text": text}
        case {
            "type": "image",
            "source": {"type": "base64", "media_type": str(kind), "data": str(data)},
        }:
            return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}}
        case {"type": "image", "source": {"type": "url", "url": str(url)}}:
            return {"type": "image_url", "image_url": {"url": url}}
        case {"type": kind}:
            raise ControlError(f"a block of type {kind!r} is not taken here (text, image)")
        case _:
            raise ControlError("a block of a user message needs a type")
