"""Answers of others' clients: objects or dicts, in async or in plain iterators."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator
from typing import Any

from crow.llm.chat.reasoning_fields import EXTRA, LISTS, TEXTS
from crow.llm.http.text import is_array, is_object

FIELDS = ("content", "refusal", *TEXTS)
OPAQUE = (*LISTS, EXTRA)
USAGE_FIELDS = (
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "input_tokens",
    "output_tokens",
    "prompt_tokens_details",
    "completion_tokens_details",
    "prompt_cache_hit_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "cost",
)


async def chunks_of(answer: Any) -> AsyncGenerator[Any, None]:
    """The chunks of an answer; a whole completion is one chunk."""
    if hasattr(answer, "__aiter__"):
        async for chunk in answer:
            yield chunk
    elif is_object(answer) or hasattr(answer, "choices"):
        yield answer
    else:
        chunks, end = iter(answer), object()
        while (chunk := await asyncio.to_thread(next, chunks, end)) is not end:
            yield chunk


async def hang_up(chunks: AsyncGenerator[Any, None], answer: Any) -> None:
    """Close what an answer holds open."""
    await chunks.aclose()
    close = getattr(answer, "aclose", None) or getattr(answer, "close", None)
    if callable(close):
        closing = close()
        if inspect.isawaitable(closing):
            await closing


def as_event(chunk: Any) -> dict[str, Any]:
    """A chunk as the JSON object that it once was; only what a reply is made of."""
    if is_object(chunk):
        return chunk
    event: dict[str, Any] = {
        "model": getattr(chunk, "model", None),
        "choices": [_choice(choice) for choice in getattr(chunk, "choices", None) or ()],
        "usage": _fields(getattr(chunk, "usage", None), USAGE_FIELDS),
    }
    error = getattr(chunk, "error", None)
    return {**event, "error": error} if error else event


def _choice(choice: Any) -> dict[str, Any]:
    delta = getattr(choice, "delta", None) or getattr(choice, "message", None)
    return {
        "index": getattr(choice, "index", None),
        "finish_reason": getattr(choice, "finish_reason", None),
        "delta": _delta(delta),
    }


def _delta(delta: Any) -> dict[str, Any]:
    if is_object(delta):
        return delta
    fields = {**(_fields(delta, FIELDS) or {}), **_opaque(delta)}
    if calls := getattr(delta, "tool_calls", None):
        fields["tool_calls"] = [_call(call) for call in calls]
    if function := getattr(delta, "function_call", None):
        fields["function_call"] = _fields(function, ("name", "arguments"))
    return fields


def _call(call: Any) -> dict[str, Any]:
    if is_object(call):
        return call
    function = _fields(getattr(call, "function", None), ("name", "arguments"))
    return {**(_fields(call, ("index", "id")) or {}), **_opaque(call), "function": function}


def _opaque(value: Any) -> dict[str, Any]:
    """What of a delta or a call the endpoint may want back, as JSON."""
    found = ((name, getattr(value, name, None)) for name in OPAQUE)
    return {name: _as_json(item) for name, item in found if item is not None}


def _as_json(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump()
    return [_as_json(item) for item in value] if is_array(value) else value


def _fields(value: Any, names: tuple[str, ...]) -> dict[str, Any] | None:
    """Those attributes of an object that are there and not None; of nested objects as well."""
    if value is None or is_object(value):
        return value
    found = ((name, getattr(value, name, None)) for name in names)
    return {
        name: _fields(item, USAGE_FIELDS) if name.endswith("_details") else item
        for name, item in found
        if item is not None
    }
