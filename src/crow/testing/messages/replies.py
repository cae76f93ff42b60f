"""Replies of the Messages protocol: what a model says, as the events of a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from crow.core.support.frozen import frozen
from crow.testing.endpoint import END, Step, begin, piece
from crow.testing.messages.request import Block, MessagesRequest, Prefix, sign

Said: TypeAlias = str | Block
"""A text, or a block: `thought`, `redacted`, `use`, `search`."""
PIECE = 7


@frozen
class MessagesReply:
    """A reply, and the last event's fields that say why it ends."""

    said: tuple[Said, ...]
    stop: dict[str, Any]


def thought(text: str = "Hm.") -> Block:
    """What a model thinks; it is signed when it is said."""
    return {"type": "thinking", "thinking": text, "signature": ""}


def redacted() -> Block:
    """A thought that nobody may read."""
    return {"type": "redacted_thinking", "data": ""}


def use(name: str, /, id: str = "", **arguments: Any) -> Block:  # noqa: A002 - as the protocol says
    """A call of one of the client's tools."""
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def search(query: str) -> Block:
    """A call of one of the endpoint's own tools."""
    return {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "web_search",
        "input": {"query": query},
    }


def sealed(asked: MessagesRequest, said: Sequence[Said], number: int) -> list[Block]:
    """The blocks of a reply, with ids, and thoughts signed for all that stands before them."""
    prefix = Prefix()
    for place, block in asked.parts():
        prefix.add(place, block)
    blocks: list[Block] = []
    for at, each in enumerate(said):
        block = {"type": "text", "text": each} if isinstance(each, str) else {**each}
        match block["type"]:
            case "thinking":
                block["signature"] = sign(asked.model, prefix.value, block["thinking"])
            case "redacted_thinking":
                block["data"] = sign(asked.model, prefix.value, "")
            case "tool_use":
                block["id"] = block["id"] or f"toolu_{number:03}{at:03}"
            case _:
                pass
        if block["type"] != "text" or block["text"].strip():  # what cannot come back counts not
            prefix.add("assistant", block)
        blocks.append(block)
    return blocks


def reason_of(blocks: Sequence[Block]) -> str:
    """Why a reply of these blocks ends."""
    return "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"


def events_of(
    asked: MessagesRequest,
    blocks: Sequence[Block],
    stop: dict[str, Any],
    usage: dict[str, Any],
    more: dict[str, Any],
) -> Iterator[dict[str, Any]]:
    """The events of a reply, as they are really sent; ``more`` stands in its beginning."""
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": asked.model}
    empty: dict[str, Any] = {
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
        **more,
    }
    yield {"type": "message_start", "message": {**message, **empty}}
    yield {"type": "ping"}
    for index, block in enumerate(blocks):
        yield {"type": "content_block_start", "index": index, "content_block": _empty(block)}
        for delta in _deltas(block):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    said = len(json.dumps(blocks)) // 4
    delta = {"stop_sequence": None, **stop}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": said}}
    yield {"type": "message_stop"}


def streamed(events: Iterator[dict[str, Any]]) -> list[Step]:
    """A whole response; every event has its name before it."""
    sent = [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in events]
    return [begin(), *map(piece, sent), END]


def _empty(block: Block) -> Block:
    """A block as it begins."""
    match block["type"]:
        case "text":
            return {**block, "text": ""}
        case "thinking":
            return {**block, "thinking": "", "signature": ""}
        case "tool_use" | "server_tool_use":
            return {**block, "input": {}}
        case _:
            return block


def _deltas(block: Block) -> Iterator[dict[str, Any]]:
    """What comes between a block's beginning and its end."""
    match block["type"]:
        case "text":
            yield from ({"type": "text_delta", "text": part} for part in _cut(block["text"]))
        case "thinking":
            yield from (
                {"type": "thinking_delta", "thinking": part} for part in _cut(block["thinking"])
            )
            yield {"type": "signature_delta", "signature": block["signature"]}
        case "tool_use" | "server_tool_use":
            yield {"type": "input_json_delta", "partial_json": ""}
            text = json.dumps(block["input"]) if block["input"] else ""
            yield from ({"type": "input_json_delta", "partial_json": part} for part in _cut(text))
        case _:
            pass


def _cut(text: str) -> list[str]:
    return [text[at : at + PIECE] for at in range(0, len(text), PIECE)]
