"""The items of a reply: what they say, and which of them can go back as they came."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from crow.core.messages import Message, text_of
from crow.llm.http.request_format import RequestFormat
from crow.llm.http.text import is_array, is_object

BETWEEN = "\n\n"
"""What stands between two messages of a reply, and between two parts of a thought."""
WIRE = " responses"
"""Behind an origin: other wires may reach the same model at the same address."""


def text_in(item: Mapping[str, Any]) -> str:
    """What a message says, refusals included."""
    parts: Any = item.get("content")
    said = (
        part.get("text") or part.get("refusal")
        for part in (parts if is_array(parts) else ())
        if is_object(part)
    )
    return "".join(text for text in said if isinstance(text, str))


def is_refusal(item: Mapping[str, Any]) -> bool:
    """Whether a message says that its model will not."""
    parts: Any = item.get("content")
    return is_array(parts) and any(is_object(part) and part.get("refusal") for part in parts)


def thought_in(item: Mapping[str, Any]) -> str:
    """What an item shows of a thought: its summary, else the thought itself."""
    for name in ("summary", "content"):
        parts: Any = item.get(name)
        texts = [part.get("text") for part in (parts if is_array(parts) else ()) if is_object(part)]
        if said := BETWEEN.join(text for text in texts if text and isinstance(text, str)):
            return said
    return ""


def own_items(form: RequestFormat, message: Message) -> list[Any] | None:
    """The items that a message came as, where they still say what it says, and can go back.

    None where another endpoint or model made them, where the message has been changed since, or
    where thoughts are among them that nobody can read again. Calls have the message's ids.
    """
    items: Any = message.get("output_items")
    if message.get("origin") != form.origin + WIRE or not is_array(items):
        return None
    items = _without_open_end(items)
    if not form.trusts(message) or not all(map(_is_readable, items)):
        return None
    texts = [text_in(item) for item in items if item.get("type") == "message"]
    if BETWEEN.join(filter(None, texts)) != text_of(message.get("content")):
        return None
    return _with_ids_of(message, items)


def phase_of(form: RequestFormat, message: Message) -> str | None:
    """The phase of a message that this very model wrote; it wants that back at the least."""
    items: Any = message.get("output_items")
    if "phase" in form.without or message.get("origin") != form.origin + WIRE:
        return None
    phases = [item.get("phase") for item in items or () if is_object(item)]
    return next(filter(None, phases), None)


def _without_open_end(items: Sequence[Any]) -> list[Any]:
    """The items without thoughts at their end, which nothing came of."""
    kept = [item for item in items if is_object(item)]
    while kept and kept[-1].get("type") == "reasoning":
        kept.pop()
    return kept


def _is_readable(item: Mapping[str, Any]) -> bool:
    """False for a thought that is neither encrypted nor open: the endpoint has not stored it."""
    if item.get("type") != "reasoning":
        return True
    return bool(item.get("encrypted_content") or item.get("content"))


def _with_ids_of(message: Message, items: Sequence[Any]) -> list[Any] | None:
    """The items with the ids of a message's calls; None where they are other calls."""
    calls = list(message.get("tool_calls") or ())
    asked = [item for item in items if item.get("type") == "function_call"]
    if len(calls) != len(asked):
        return None
    if not all(_is_same(item, call["function"]) for item, call in zip(asked, calls, strict=True)):
        return None
    ids = iter([call_id(call["id"]) for call in calls])
    return [
        _renamed(item, next(ids)) if item.get("type") == "function_call" else item for item in items
    ]


def _renamed(item: Any, new_id: str) -> Any:
    return item if item.get("call_id") == new_id else {**item, "call_id": new_id}


def _is_same(item: Mapping[str, Any], function: Mapping[str, Any]) -> bool:
    if item.get("name") != function["name"]:
        return False
    given, kept = item.get("arguments") or "{}", function["arguments"]
    return given == kept or _parsed(given) == _parsed(kept) is not None


def _parsed(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None


def call_id(given: str) -> str:
    """A call's id as the protocol takes it: 64 characters at most. The same one for the same."""
    if 0 < len(given) <= 64 and given.isascii():
        return given
    return f"call_{hashlib.sha256(given.encode()).hexdigest()[:40]}"
