"""The body of a request. What was encoded for an earlier request is not encoded again.

Of every conversation the cache holds the messages as they were when they were encoded. Texts in
these copies are the very same objects, so comparing a message with its copy costs no more than
looking at its keys, and one that was changed, inserted or removed is noticed.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from crow.core.messages import Message, ToolSpec
from crow.llm.chat.shapes import is_array, is_object
from crow.llm.chat.text import clean_value

CACHE_BYTES = 64 * 1024 * 1024

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


class Encoded:
    """The messages of one conversation and their JSON, each with a comma before it."""

    __slots__ = ("copies", "ids", "json", "size")

    def __init__(self) -> None:
        self.copies: list[Any] = []
        self.json: list[bytes] = []
        self.ids: set[str] = set()
        self.size = 0

    def follow(self, messages: list[Message], dropped: frozenset[str]) -> None:
        """Become what these messages are, and encode only those that are not known."""
        known = len(self.copies)
        if self.copies != messages[:known]:
            known = self._match(messages, dropped)
        for message in messages[known:]:
            self.copies.append(copy_json(message))
            self.json.append(_message(message, dropped))
            self.size += len(self.json[-1])
        self.ids |= ids_in(messages[known:])

    def _match(self, messages: list[Message], dropped: frozenset[str]) -> int:
        """Mend what differs in place; how many messages are known then."""
        known = min(len(self.copies), len(messages))
        del self.copies[known:], self.json[known:]
        for index, message in enumerate(messages[:known]):
            if self.copies[index] != message:
                self.copies[index] = copy_json(message)
                self.json[index] = _message(message, dropped)
        self.size = sum(map(len, self.json))
        self.ids = ids_in(messages[:known])
        return known


class BodyEncoder:
    """Writes request bodies; ``dropped`` names the keys of messages that are not sent."""

    def __init__(self, dropped: frozenset[str] = frozenset(), limit: int = CACHE_BYTES) -> None:
        self._dropped = dropped
        self._limit = limit
        self._conversations: OrderedDict[str, Encoded] = OrderedDict()
        self._tools: list[Any] = []
        self._tools_json = b""

    def body(
        self,
        head: Mapping[str, Any],
        messages: list[Message],
        tools: list[ToolSpec],
        conversation: str = "",
    ) -> bytes:
        """The request's JSON: ``head`` (model, parameters), the tools, the messages."""
        start = _encode_clean(head)[:-1]
        offered = b',"tools":' + self._tools_as_json(tools) if tools else b""
        encoded = self._conversations.setdefault(conversation, Encoded())
        encoded.follow(messages, self._dropped)
        self._conversations.move_to_end(conversation)
        first, rest = encoded.json[0][1:] if messages else b"", encoded.json[1:]
        body = b"".join((start, offered, b',"messages":[', first, *rest, b"]}"))
        self._shrink()
        return body

    def ids(self, conversation: str, messages: list[Message]) -> set[str]:
        """The ids of the calls in the messages that were sent last for a conversation."""
        encoded = self._conversations.get(conversation)
        if not conversation or encoded is None or len(encoded.copies) != len(messages):
            return ids_in(messages)
        return set(encoded.ids)

    def _shrink(self) -> None:
        """Forget the conversations that were longest not asked about."""
        conversations = self._conversations
        while (
            len(conversations) > 1
            and sum(each.size for each in conversations.values()) > self._limit
        ):
            conversations.popitem(last=False)

    def _tools_as_json(self, tools: list[ToolSpec]) -> bytes:
        if tools != self._tools:
            self._tools_json = _encode_clean(tools)
            self._tools = copy_json(tools)
        return self._tools_json


def ids_in(messages: list[Message]) -> set[str]:
    """The ids of all calls in some messages."""
    return {call["id"] for message in messages for call in message.get("tool_calls") or ()}


def _message(message: Message, dropped: frozenset[str]) -> bytes:
    if not dropped.isdisjoint(message):
        return b"," + _encode_clean({key: message[key] for key in message if key not in dropped})
    return b"," + _encode_clean(message)


def _encode_clean(value: Any) -> bytes:
    """A value as UTF-8 JSON; half surrogate pairs and NUL in it are replaced."""
    text = _encode(value)
    if "\\u0000" not in text:
        try:
            return text.encode()
        except UnicodeEncodeError:
            pass
    return _encode(clean_value(value)).encode()


def copy_json(value: Any) -> Any:
    """A deep copy of JSON that shares its texts."""
    if is_object(value):
        return {key: copy_json(item) for key, item in value.items()}
    return [copy_json(item) for item in value] if is_array(value) else value
