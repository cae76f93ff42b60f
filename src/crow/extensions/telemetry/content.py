"""Messages, arguments and results in the shape of the conventions; put on spans only when asked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from crow import Completion
from crow.messages import text_of


def as_json(value: object) -> str:
    """A value as the text of an attribute."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def instructions(messages: Sequence[Any]) -> list[dict[str, Any]]:
    """The system messages."""
    return [_text(each) for each in messages if each["role"] == "system"]


def conversation(messages: Sequence[Any]) -> list[dict[str, Any]]:
    """All other messages."""
    return [_message(each) for each in messages if each["role"] != "system"]


def answer(reply: Completion) -> list[dict[str, Any]]:
    """What the model said."""
    message: Any = reply.message()
    return [_message(message)] if message else []


def _message(message: Any) -> dict[str, Any]:
    if message["role"] == "tool":
        told = {"id": message.get("tool_call_id"), "response": text_of(message.get("content"))}
        return {"role": "tool", "parts": [{"type": "tool_call_response", **told}]}
    calls = [
        {
            "type": "tool_call",
            "id": each["id"],
            "name": each["function"]["name"],
            "arguments": each["function"]["arguments"],
        }
        for each in message.get("tool_calls", ())
    ]
    return {"role": message["role"], "parts": [_text(message), *calls]}


def _text(message: Any) -> dict[str, Any]:
    return {"type": "text", "content": text_of(message.get("content"))}
