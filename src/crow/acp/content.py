"""Content blocks of the protocol, and what they are in a conversation; both ways.

A prompt as its client sent it is kept beside what a model reads of it, to be shown again. What is
long in it stands in the message's content too, and is kept as the place where it does.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote, urlsplit

from crow.acp.jsonrpc import Message, as_object
from crow.core.messages import Content, Part
from crow.core.messages import Message as Said

if TYPE_CHECKING:
    from crow.acp.v2.outgoing import ContentBlock

AUDIO_FORMATS = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav", "vnd.wave": "wav", "mp4": "m4a"}

NAMED = ("resource_link", "resource")
"""The blocks that a prompt names where they stand."""
OPENING = "([{<\"'`"


def from_blocks(blocks: Iterable[Message], taken: Collection[str]) -> Content:
    """A prompt's blocks as the content of a message; one text where there is nothing but text.

    What is embedded is named where it stands, if no text does, and follows behind all that was
    said; so do lines about what is not there, and what the model does not take (``taken`` beside
    text: ``image``, ``audio``) and has not got.
    """
    prompt = _Prompt([*blocks], taken)
    parts: list[Part] = []
    before = ""
    for block in prompt.blocks:
        is_named = before in NAMED or block["type"] in NAMED
        _add(parts, prompt.part(block), spaced=is_named)
        before = block["type"]
    _add(parts, _text("".join(prompt.added)), spaced=False)
    if len(parts) == 1 and parts[0]["type"] == "text":
        return parts[0]["text"]
    return parts


def _add(parts: list[Part], part: Part, *, spaced: bool) -> None:
    """Put a part behind others; text grows together, and what is empty is none."""
    last = parts[-1] if parts else None
    if part["type"] != "text":
        parts.append(part)
    elif last is not None and last["type"] == "text":
        gap = _gap(last["text"], part["text"]) if spaced else ""
        parts[-1] = {"type": "text", "text": f"{last['text']}{gap}{part['text']}"}
    elif part["text"]:
        parts.append(part)


def _gap(left: str, right: str) -> str:
    """What has to stand between a link and its neighbour, so that neither swallows the other."""
    ends, begins = left[-1:], right[:1]
    is_open = not ends or ends.isspace() or ends in OPENING
    return " " if not is_open and (begins.isalnum() or begins in ("@", "[")) else ""


class _Prompt:
    """A prompt on its way to a model: each block where it stands, and what is added behind."""

    def __init__(self, blocks: list[Message], taken: Collection[str]) -> None:
        self.blocks = blocks
        self.added: list[str] = []
        self._taken = taken

    def part(self, block: Message) -> Part:
        """A block where it stands."""
        match block["type"]:
            case "text":
                return _text(block["text"])
            case "image" | "audio":
                return self._media(block["data"], block["mimeType"])
            case "resource_link":
                return _text(self._link(block["uri"], block.get("name") or ""))
            case "resource":
                return self._resource(block["resource"])
            case other:
                return self._left_out(f"a part of the kind {other!r}", "it is not known here")

    def _left_out(self, what: str, why: str) -> Part:
        self.added.append(f"\n({what} was left out: {why})\n")
        return _text("")

    def _media(self, data: str, mime: str) -> Part:
        """An image or sound; nothing where the model takes none or it is broken."""
        what = f"a part of the type {mime}"
        kind, _, subtype = mime.lower().partition("/")
        if kind not in ("image", "audio") or kind not in self._taken:
            return self._left_out(what, "this model takes none")
        try:
            base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            return self._left_out(what, "it is not valid base64")
        if kind == "image":
            return {"type": "image_url", "image_url": {"url": f"data:{mime};base64,{data}"}}
        name = AUDIO_FORMATS.get(subtype, subtype)
        return {"type": "input_audio", "input_audio": {"data": data, "format": name}}

    def _link(self, uri: str, name: str) -> str:
        """A link as a model can use it: a file by its path."""
        path = path_of(uri)
        if path is None:
            return f"[{name or uri}]({uri})"
        try:
            is_there = Path(path).exists()
        except OSError:
            is_there = False
        if not is_there:
            self.added.append(f"\n(there is no file {path})\n")
        lines = urlsplit(uri).fragment
        return f"@{path}:{lines.removeprefix('L')}" if lines else f"@{path}"

    def _resource(self, resource: Message) -> Part:
        """What the client embedded: text, which follows with its source, or a blob."""
        uri = str(resource.get("uri", ""))
        path = path_of(uri)
        source = path or uri
        mime = str(resource.get("mimeType") or "application/octet-stream")
        if "text" in resource:
            self.added.append(f'\n<resource uri="{source}">\n{resource["text"]}\n</resource>\n')
        elif mime.startswith(("image/", "audio/")):
            return self._media(str(resource.get("blob", "")), mime)
        else:
            self._left_out(source, f"{mime} cannot be shown to a model")
        return _text("" if self._names(source) else f"@{path}" if path else uri)

    def _names(self, source: str) -> bool:
        """True where a text has the name of a file already, as some clients send it."""
        name = source.rstrip("/").rpartition("/")[2]
        return any(name in block["text"] for block in self.blocks if block["type"] == "text")


def _text(text: str) -> Part:
    try:
        _ = text.isascii() or text.encode()  # another copy of megabytes takes its time
    except UnicodeEncodeError:  # half a surrogate pair
        text = text.encode("utf-8", "replace").decode()
    return {"type": "text", "text": text}


def path_of(uri: str) -> str | None:
    """The path of a ``file:`` address; None for every other."""
    split = urlsplit(uri)
    return unquote(split.path) if split.scheme == "file" and split.path else None


def to_blocks(content: Content | None) -> list[ContentBlock]:
    """The content of a message as blocks of the protocol."""
    if content is None or isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [_block(part) for part in content]


def _block(part: Any) -> ContentBlock:
    match part:
        case {"type": "image_url", "image_url": {"url": url}}:
            mime, data = _data_url(url)
            if data is None:
                return {"type": "resource_link", "uri": url, "name": "image"}
            return {"type": "image", "mimeType": mime, "data": data}
        case {"type": "input_audio", "input_audio": {"data": data, "format": name}}:
            return {"type": "audio", "mimeType": f"audio/{name}", "data": data}
        case _:
            return {"type": "text", "text": str(part.get("text", ""))}


def _data_url(url: str) -> tuple[str, str | None]:
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:"):
        return "", None
    return head.removeprefix("data:").removesuffix(";base64"), data


LONG = 64
BULKY = ("text", "data", "blob")
"""The fields of a block, or of its resource, that can be long."""


def written(blocks: Sequence[Mapping[str, Any]], content: Content) -> list[Message]:
    """What has to be kept of a prompt to show it again; nothing where its content says it all."""
    if to_blocks(content) == blocks:
        return []
    pieces = list(_pieces(content))
    return [_each(block, partial(_place, pieces)) for block in blocks]


def blocks_of(content: Content | None, kept: Iterable[Message]) -> list[ContentBlock]:
    """A prompt's blocks: those that were kept, else what the content says."""
    if not kept:
        return to_blocks(content)
    pieces = list(_pieces(content or ""))
    return [cast("ContentBlock", _each(block, partial(_found, pieces))) for block in kept]


def sent_as(message: Said) -> list[ContentBlock]:
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


def _each(block: Mapping[str, Any], change: Callable[[object], object]) -> Message:
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
