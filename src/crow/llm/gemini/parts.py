"""A reply's parts: as they came, and whether a message still says what they say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from crow.core.messages import Message, text_of
from crow.llm.gemini.tools import name_for
from crow.llm.http.text import clean_value, is_object

CALL = "functionCall"
SIGNATURE = "thoughtSignature"
PLAIN = frozenset({"text", "thought"})
TOLD = frozenset({*PLAIN, CALL})


class Parts:
    """The parts of one reply, in their order. Pieces of a text without a signature are joined.

    What carries a signature stays by itself, an empty text included.
    """

    __slots__ = ("_parts", "_text", "_thought")

    def __init__(self) -> None:
        self._parts: list[dict[str, Any]] = []
        self._text: list[str] = []
        self._thought = False

    def add(self, part: dict[str, Any]) -> None:
        """Add a part as it came."""
        text = part.get("text")
        if not isinstance(text, str) or not part.keys() <= PLAIN:
            self._close()
            self._parts.append(part)
        elif text:
            thought = bool(part.get("thought"))
            if thought is not self._thought:
                self._close()
                self._thought = thought
            self._text.append(text)

    def kept(self) -> list[Any]:
        """All parts; none where a message says as much by itself."""
        self._close()
        if all(part.keys() <= TOLD for part in self._parts):
            return []
        return clean_value(self._parts)

    def _close(self) -> None:
        if self._text:
            text: dict[str, Any] = {"text": "".join(self._text)}
            self._parts.append({**text, "thought": True} if self._thought else text)
            self._text = []


def arguments_of(text: str) -> dict[str, Any]:
    """A call's arguments; none where they are no object."""
    try:
        args = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return args if is_object(args) else {}


def say_the_same(parts: Sequence[Any], message: Message) -> bool:
    """Whether parts and message have the same text, and the same calls in the same order."""
    objects = [part for part in parts if is_object(part)]
    said = "".join(_text(part) for part in objects)
    calls = [part[CALL] for part in objects if CALL in part]
    wanted = message.get("tool_calls") or []
    if said != text_of(message["content"]) or len(calls) != len(wanted):
        return False
    return all(
        given.get("name") == name_for(call["function"]["name"])
        and (given.get("args") or {}) == arguments_of(call["function"]["arguments"])
        for given, call in zip(calls, wanted, strict=True)
    )


def _text(part: dict[str, Any]) -> str:
    text = part.get("text")
    return text if isinstance(text, str) and not part.get("thought") else ""
