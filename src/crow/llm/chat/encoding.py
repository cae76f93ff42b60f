"""The body of a request. What was encoded for an earlier request is not encoded again.

An entry of the cache is found by the message's identity and holds a copy of what was encoded,
so that a message which was changed in place after all is noticed and encoded anew.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crow.core.messages import Message, ToolSpec
from crow.llm.chat.shapes import is_array, is_object
from crow.llm.chat.text import clean_value

CACHE_BYTES = 64 * 1024 * 1024

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


@dataclass(frozen=True, slots=True)
class Encoded:
    """A message, a copy of it as it was when it was encoded, and its JSON."""

    message: Message
    copy: Any
    json: bytes


class BodyEncoder:
    """Writes request bodies; ``dropped`` names the keys of messages that are not sent."""

    def __init__(self, dropped: frozenset[str] = frozenset(), limit: int = CACHE_BYTES) -> None:
        self._dropped = dropped
        self._limit = limit
        self._size = 0
        self._entries: OrderedDict[int, Encoded] = OrderedDict()
        self._tools: list[Any] = []
        self._tools_json = b""

    def body(
        self, head: Mapping[str, Any], messages: list[Message], tools: list[ToolSpec]
    ) -> bytes:
        """The request's JSON: ``head`` (model, parameters), then the tools, then the messages.

        The parts that stay the same from turn to turn come first.
        """
        pieces = [dumps(head)[:-1]]
        if tools:
            pieces.append(b',"tools":' + self._tools_as_json(tools))
        pieces.append(b',"messages":[' + b",".join(self._messages(messages)) + b"]}")
        return b"".join(pieces)

    def _messages(self, messages: list[Message]) -> list[bytes]:
        entries, recent = self._entries, self._entries.move_to_end
        encoded: list[bytes] = []
        for message in messages:
            key = id(message)
            entry = entries.get(key)
            if entry is None or entry.message is not message or entry.copy != message:
                entry = self._add(key, message)
            else:
                recent(key)
            encoded.append(entry.json)
        self._shrink()
        return encoded

    def _add(self, key: int, message: Message) -> Encoded:
        self._forget(key)
        entry = Encoded(message, copy_json(message), self._message_as_json(message))
        self._entries[key] = entry
        self._size += len(entry.json)
        return entry

    def _message_as_json(self, message: Message) -> bytes:
        if self._dropped.isdisjoint(message):
            return dumps(message)
        return dumps({key: message[key] for key in message if key not in self._dropped})

    def _shrink(self) -> None:
        while self._size > self._limit and self._entries:
            self._forget(next(iter(self._entries)))

    def _forget(self, key: int) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._size -= len(entry.json)

    def _tools_as_json(self, tools: list[ToolSpec]) -> bytes:
        if tools != self._tools:
            self._tools_json = dumps(tools)
            self._tools = copy_json(tools)
        return self._tools_json


def dumps(value: Any) -> bytes:
    """A value as UTF-8 JSON; half surrogate pairs and NUL in it are replaced."""
    text = _encode(value)
    if "\\u0000" not in text:
        try:
            return text.encode()
        except UnicodeEncodeError:
            pass
    return _encode(clean_value(value)).encode()


def copy_json(value: Any) -> Any:
    """A deep copy of JSON; texts are shared, which makes comparing with the original cheap."""
    if is_object(value):
        return {key: copy_json(item) for key, item in value.items()}
    if is_array(value):
        return [copy_json(item) for item in value]
    return value
