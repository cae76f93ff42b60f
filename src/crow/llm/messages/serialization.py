"""The serialization of one message of a history as blocks of this wire."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, NamedTuple

from crow.core.messages import Content, Message, ToolCall
from crow.llm.http.encoding import Piece, encode_clean
from crow.llm.http.request_format import RequestFormat
from crow.llm.messages.blocks import (
    PLAIN,
    THOUGHTS,
    Block,
    arguments_of,
    sent_back,
    tells_same,
    text_block,
)

WIRE = " messages"
"""Behind an origin: other wires may reach the same model at the same address."""
FORBIDDEN = re.compile(r"[^a-zA-Z0-9_-]")
LONGEST_ID = 64
IMAGES = {
    "image/jpeg": "image/jpeg",
    "image/jpg": "image/jpeg",
    "image/png": "image/png",
    "image/gif": "image/gif",
    "image/webp": "image/webp",
}
"""What an image may be, and what that is called."""
UNHEARD = "[a recording: left out, because this wire takes none]"


class Turn(NamedTuple):
    """A message's facts beside its blocks.

    ``role`` is ``system``, ``user``, ``result`` or ``assistant``. ``thinks`` where an assistant's
    begins with a thought, ``is_paused`` where it ends with something that its endpoint has not
    finished.
    """

    role: str
    thinks: bool = False
    is_paused: bool = False


def write(form: RequestFormat, message: Message, *, signs: bool) -> Piece:
    """A message's blocks, encoded, with commas between; ``signs`` is as `sent_back` has it."""
    match message["role"]:
        case "assistant":
            blocks = assistant_blocks(form, message, signs=signs)
            kinds = [block["type"] for block in blocks]
            thinks = bool(kinds) and kinds[0] in THOUGHTS
            turn = Turn("assistant", thinks, bool(kinds) and kinds[-1] not in PLAIN)
        case "tool":
            blocks, turn = [result_block(form, message)], Turn("result")
        case "system" | "developer":
            blocks, turn = content_blocks(form, message["content"]), Turn("system")
        case _:
            blocks, turn = content_blocks(form, message["content"]), Turn("user")
    return b",".join(map(encode_clean, blocks)), turn


def assistant_blocks(form: RequestFormat, message: Message, *, signs: bool) -> list[Block]:
    """What an assistant said: the blocks of its endpoint, if they still say the same."""
    calls = message.get("tool_calls") or []
    items = message.get("output_items")
    if items and message.get("origin") == form.origin + WIRE and tells_same(items, message):
        ids = [safe_id(call["id"]) for call in calls]
        return sent_back(items, ids, thoughts=form.trusts(message), signs=signs)
    return [*content_blocks(form, message.get("content")), *map(call_block, calls)]


def call_block(call: ToolCall) -> Block:
    """A call as a block."""
    name = call["function"]["name"]
    return {
        "type": "tool_use",
        "id": safe_id(call["id"]),
        "name": name,
        "input": arguments_of(call),
    }


def result_block(form: RequestFormat, message: Message) -> Block:
    """A tool's result as a block."""
    block: Block = {"type": "tool_result", "tool_use_id": safe_id(message.get("tool_call_id", ""))}
    content = message["content"]
    if isinstance(content, str):
        return {**block, "content": content} if content.strip() else block
    blocks = content_blocks(form, content)
    return {**block, "content": blocks} if blocks else block


def content_blocks(form: RequestFormat, content: Content | None) -> list[Block]:
    """A content as blocks; none for a text that is blank, which is refused."""
    if content is None or isinstance(content, str):
        return [text_block(content)] if content and content.strip() else []
    return [block for part in content for block in part_blocks(form, part)]


def part_blocks(form: RequestFormat, part: Any) -> Iterable[Block]:
    """A part of a content as a block, or none."""
    match part:
        case {"type": "text", "text": str(text)}:
            return [text_block(text)] if text.strip() else []
        case {"type": "image_url"}:
            return [image_block(form, part)]
        case _:
            return [text_block(UNHEARD)]


def image_block(form: RequestFormat, part: Any) -> Block:
    """An image as a block; a line of text where it is not sent."""
    url: str = part["image_url"]["url"]
    head, _, data = url.partition(",")
    if not form.shows(part):
        return text_block(form.left_out(part))
    if not url.startswith("data:"):
        return {"type": "image", "source": {"type": "url", "url": url}}
    kind = head[5:].partition(";")[0].lower()
    source = {"type": "base64", "media_type": IMAGES.get(kind, kind), "data": data}
    return {"type": "image", "source": source}


def safe_id(given: str) -> str:
    """A call's id as the wire takes it; two that differ stay two, in every process."""
    if given and len(given) <= LONGEST_ID and not FORBIDDEN.search(given):
        return given
    mark = blake2b(given.encode("utf-8", "replace"), digest_size=6).hexdigest()
    return f"{FORBIDDEN.sub('_', given)[:48]}_{mark}"
