"""A server's result as a tool's: bounded, and labelled as data of that server."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from crow import ToolResult
from crow.extensions.mcp.limits import TEXT
from crow.messages import Content, ImagePart, Part

if TYPE_CHECKING:
    from mcp.types import CallToolResult, ReadResourceResult

PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
LARGEST_PICTURE = 5 * 1024 * 1024
MOST_PICTURES = 20
TAG = "mcp-data"
_CLOSING = re.compile(rf"<(?=/?\s*{TAG})", re.IGNORECASE)


def of_call(server: str, result: CallToolResult) -> ToolResult:
    """The result of a tool call."""
    parts = list(_parts(result.content))
    structured = result.structured_content
    if structured is not None and not parts:
        parts = [_text(json.dumps(structured, ensure_ascii=False, indent=1))]
    data: dict[str, Any] = {"server": server, "content": _plain(parts)}
    if structured is not None and len(json.dumps(structured)) <= TEXT:
        data["structuredContent"] = structured
    return ToolResult(labelled(server, parts), error=bool(result.is_error), data=data)


def of_resource(server: str, result: ReadResourceResult) -> ToolResult:
    """The contents of a resource."""
    parts = list(_parts(result.contents))
    return ToolResult(labelled(server, parts), data={"server": server, "content": _plain(parts)})


def as_text(block: object) -> str:
    """A piece of content in words."""
    parts = _part(block)
    return parts["text"] if parts["type"] == "text" else "[an image]"


def labelled(server: str, parts: list[Part]) -> Content:
    """Content that says whose it is; nothing inside of it can end the label."""
    opening, closing = f'<{TAG} server="{_attribute(server)}">', f"</{TAG}>"
    if not parts:
        return f"{opening}{closing}"
    if all(part["type"] == "text" for part in parts):
        inner = "\n".join(part["text"] for part in parts if part["type"] == "text")
        return f"{opening}\n{_CLOSING.sub('&lt;', _bounded(inner))}\n{closing}"
    return [_text(opening), *_harmless(parts), _text(closing)]


def _harmless(parts: list[Part]) -> Iterator[Part]:
    room, pictures = TEXT, 0
    for part in parts:
        if part["type"] == "text":
            yield _text(_CLOSING.sub("&lt;", _bounded(part["text"], room)))
            room = max(0, room - len(part["text"]))
        elif pictures < MOST_PICTURES:
            pictures += 1
            yield part


def _bounded(text: str, room: int = TEXT) -> str:
    if len(text) <= room:
        return text
    return f"{text[:room]}\n[cut here: {len(text)} characters, {room} are kept]"


def _attribute(text: str) -> str:
    return re.sub(r'[\x00-\x1f"<>&]', "_", text)[:80]


def _text(text: str) -> Part:
    return {"type": "text", "text": text}


def _plain(parts: list[Part]) -> list[dict[str, str]]:
    """The texts, for hooks; what is no text as the kind that it is."""
    plain: list[dict[str, str]] = []
    room = TEXT
    for part in parts:
        text = part["text"][:room] if part["type"] == "text" else ""
        room -= len(text)
        plain.append({"type": "text", "text": text} if text else {"type": part["type"]})
    return plain


def _parts(blocks: Iterable[object]) -> Iterator[Part]:
    for block in blocks:
        yield _part(block)


def _part(block: Any) -> Part:
    """One block of any kind; unknown ones are named."""
    match getattr(block, "type", None):
        case "text":
            return _text(block.text)
        case "image":
            return _picture(block.data, block.mime_type)
        case "audio":
            return _binary("audio", block.mime_type, block.data)
        case "resource_link":
            about = f": {block.description}" if block.description else ""
            return _text(f"[resource {block.name} at {block.uri}{about}]")
        case "resource":
            return _part(block.resource)
        case _:
            return _unnamed(block)


def _unnamed(block: Any) -> Part:
    """The contents of a resource, or something new."""
    if hasattr(block, "text"):
        return _text(f"[resource {block.uri}]\n{block.text}")
    if hasattr(block, "blob"):
        kind = block.mime_type or "application/octet-stream"
        picture = kind in PICTURES
        return _picture(block.blob, kind) if picture else _binary(block.uri, kind, block.blob)
    return _text(f"[content of an unknown kind: {type(block).__name__}]")


def _picture(data: str, kind: str) -> Part:
    if kind not in PICTURES or _size(data) > LARGEST_PICTURE:
        return _binary("image", kind, data)
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return _text(f"[image {_attribute(kind)} that cannot be decoded]")
    part: ImagePart = {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}}
    return part


def _binary(what: str, kind: str, data: str) -> Part:
    return _text(f"[{what[:200]} {_attribute(kind)}, {_size(data)} bytes, not shown]")


def _size(data: str) -> int:
    return len(data) * 3 // 4 - data[-2:].count("=")
