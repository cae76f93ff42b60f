"""The items of a reply of OpenAI's Responses, and the events in which they are streamed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from secrets import token_hex
from typing import Any, TypeAlias

Item: TypeAlias = "dict[str, Any]"
PIECE = 12
EMPTY: dict[str, Item] = {"message": {"content": []}, "function_call": {"arguments": ""}}


def thought(summary: str = "", *, text: str = "") -> Item:
    """A thought: encrypted, with its summary; with ``text`` an open one, as open models have it."""
    item: Item = {"id": f"rs_{token_hex(16)}", "type": "reasoning"}
    item["summary"] = [{"type": "summary_text", "text": summary}] if summary else []
    if text:
        return {**item, "content": [{"type": "reasoning_text", "text": text}]}
    return {**item, "encrypted_content": f"gAAAA{token_hex(24)}"}


def text_item(text: str, *, phase: str | None = None, refusal: bool = False) -> Item:
    """A message, or a refusal."""
    if refusal:
        part: Item = {"type": "refusal", "refusal": text}
    else:
        part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    item: Item = {
        "id": f"msg_{token_hex(16)}",
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [part],
    }
    return {**item, "phase": phase} if phase else item


def called(name: str, call_id: str | None = None, **args: Any) -> Item:
    """A call of a function."""
    return {
        "id": f"fc_{token_hex(16)}",
        "type": "function_call",
        "status": "completed",
        "call_id": call_id or f"call_{token_hex(12)}",
        "name": name,
        "arguments": json.dumps(args),
    }


def response(
    items: Sequence[Item], status: str = "completed", model: str = "scripted", **fields: Any
) -> Item:
    """A whole response; the usage tells of nine tokens."""
    used: Item = {
        "input_tokens": 7,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 1},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 1},
        "total_tokens": 9,
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1764000000,
        "status": status,
        "model": model,
        "output": list(items),
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "usage": used if status in ("completed", "incomplete") else None,
        **fields,
    }


def events(items: Sequence[Item], *, status: str = "completed", **fields: Any) -> list[Item]:
    """The events of a whole reply, numbered; ``fields`` are those of the response at its end."""
    begun = response([], "in_progress")
    found: list[Item] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    for place, item in enumerate(items):
        found += [{**event, "output_index": place} for event in events_of(item)]
    ended = response(items, status, **fields)
    found.append({"type": f"response.{status}", "response": ended})
    return [{**event, "sequence_number": number} for number, event in enumerate(found)]


def events_of(item: Item) -> Iterator[Item]:
    """The events of one item, without their place."""
    partial = {**item, "status": "in_progress"} if "status" in item else dict(item)
    cleared = dict(EMPTY.get(item["type"], {"summary": []}))
    if "encrypted_content" in item:
        cleared["encrypted_content"] = item["encrypted_content"][:8]
    yield {"type": "response.output_item.added", "item": {**partial, **cleared}}
    match item["type"]:
        case "message":
            yield from _message(item)
        case "function_call":
            yield from _arguments(item)
        case _:
            yield from _thought(item)
    yield {"type": "response.output_item.done", "item": item}


def _message(item: Item) -> Iterator[Item]:
    for index, part in enumerate(item["content"]):
        place: Item = {"item_id": item["id"], "content_index": index}
        name, kind = ("refusal", "refusal") if "refusal" in part else ("text", "output_text")
        yield {"type": "response.content_part.added", **place, "part": {**part, name: ""}}
        extra: Item = {"logprobs": []} if name == "text" else {}
        for piece in _pieces(part[name]):
            yield {"type": f"response.{kind}.delta", **place, "delta": piece, **extra}
        yield {"type": f"response.{kind}.done", **place, name: part[name], **extra}
        yield {"type": "response.content_part.done", **place, "part": part}


def _arguments(item: Item) -> Iterator[Item]:
    kind, place = "response.function_call_arguments", {"item_id": item["id"]}
    for piece in _pieces(item["arguments"]):
        yield {"type": f"{kind}.delta", **place, "delta": piece}
    yield {"type": f"{kind}.done", **place, "name": item["name"], "arguments": item["arguments"]}


def _thought(item: Item) -> Iterator[Item]:
    for index, part in enumerate(item["summary"]):
        place: Item = {"item_id": item["id"], "summary_index": index}
        kind = "response.reasoning_summary"
        yield {"type": f"{kind}_part.added", **place, "part": {**part, "text": ""}}
        for piece in _pieces(part["text"]):
            yield {"type": f"{kind}_text.delta", **place, "delta": piece}
        yield {"type": f"{kind}_text.done", **place, "text": part["text"]}
        yield {"type": f"{kind}_part.done", **place, "part": part}
    for index, part in enumerate(item.get("content") or ()):
        place = {"item_id": item["id"], "content_index": index}
        for piece in _pieces(part["text"]):
            yield {"type": "response.reasoning_text.delta", **place, "delta": piece}
        yield {"type": "response.reasoning_text.done", **place, "text": part["text"]}


def _pieces(text: str) -> Iterator[str]:
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE))
