"""Content blocks: what one reply consists of, as its endpoint sent it, and what of it goes back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from crow.core.messages import Message, text_of
from crow.llm.http.text import is_object

Block = dict[str, Any]
THOUGHTS = frozenset({"thinking", "redacted_thinking"})
PLAIN = THOUGHTS | {"text", "tool_use"}
"""The types of blocks whose meaning is known. Others go back as they came."""


def text_block(text: str) -> Block:
    """A text as a block."""
    return {"type": "text", "text": text}


def arguments_of(call: Mapping[str, Any]) -> Block:
    """A call's arguments as an object; an empty one where they are none."""
    try:
        given = json.loads(call["function"]["arguments"] or "{}")
    except (ValueError, RecursionError):
        return {}
    return given if is_object(given) else {}


def tells_same(blocks: Sequence[Block], message: Message) -> bool:
    """Whether blocks say what a message says: the same text, the same calls in their sequence.

    A call's id may be another one, and the block of a call that was cut off has no arguments.
    """
    text = "".join(block.get("text") or "" for block in blocks if block["type"] == "text")
    said = [(each.get("name"), each.get("input")) for each in blocks if each["type"] == "tool_use"]
    calls = message.get("tool_calls") or ()
    wanted = [(call["function"]["name"], arguments_of(call)) for call in calls]
    return text == text_of(message.get("content")) and said == wanted


def sent_back(
    blocks: Sequence[Block], ids: Sequence[str], *, thoughts: bool, signs: bool
) -> list[Block]:
    """The blocks as they go back: the calls under these ids, no text that is blank.

    A thought without a signature was cut off where the model ``signs`` them, and is left out; who
    signs nothing gets it with an empty one. No thought may be the last block.
    """
    names = iter(ids)
    kept: list[Block] = []
    for block in blocks:
        match block:
            case {"type": "tool_use"}:
                kept.append({**block, "id": next(names)})
            case {"type": "text", "text": str(text)} if not text.strip():
                pass
            case {"type": "thinking" | "redacted_thinking"} if not thoughts:
                pass
            case {"type": "thinking"} if not block.get("signature"):
                if not signs:
                    kept.append({**block, "signature": ""})
            case _:
                kept.append(block)
    while kept and kept[-1]["type"] in THOUGHTS:
        kept.pop()
    return kept
