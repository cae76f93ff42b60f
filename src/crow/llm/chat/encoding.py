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

from crow.core.frozen import KeptDict
from crow.core.messages import ImagePart, Message, ToolSpec
from crow.llm.chat.form import Form, following, images_in
from crow.llm.chat.text import clean_value, is_array

CACHE_BYTES = 64 * 1024 * 1024
PLAIN = Form()

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


class Encoded:
    """The messages of one conversation and their JSON, each with a comma before it.

    ``moved`` has the images of tools by the index of the result behind which they follow, and
    ``images`` the hashes of all that are there.
    """

    __slots__ = ("copies", "form", "ids", "images", "json", "moved", "size")

    def __init__(self, form: Form) -> None:
        self.form = form
        self.copies: list[Any] = []
        self.json: list[bytes] = []
        self.moved: dict[int, list[ImagePart]] = {}
        self.ids: set[str] = set()
        self.images: set[int] = set()
        self.size = 0

    def follow(self, messages: list[Message]) -> None:
        """Become what these messages are, and encode only those that are not known."""
        known = len(self.copies)
        if self.copies != messages[:known]:
            known = self._match(messages)
        for message in messages[known:]:
            self.copies.append(copy_json(message))
            self.json.append(b"")
            self._encode(len(self.json) - 1, message)
            self.size += len(self.json[-1])
        self.ids |= ids_in(messages[known:])
        self.images |= images_in(messages[known:])

    def parts(self) -> list[bytes]:
        """The JSON of all messages, images behind the results that they belong to."""
        if not self.moved:
            return self.json
        parts: list[bytes] = []
        waiting: list[ImagePart] = []
        for index, encoded in enumerate(self.json):
            if waiting and self.copies[index]["role"] != "tool":
                parts.append(_encoded(following(waiting)))
                waiting = []
            parts.append(encoded)
            waiting += self.moved.get(index, ())
        return [*parts, _encoded(following(waiting))] if waiting else parts

    def _encode(self, index: int, message: Message) -> None:
        written, moved = self.form.write(message)
        self.json[index] = _encoded(written)
        self.moved.pop(index, None)
        if moved:
            self.moved[index] = moved

    def _match(self, messages: list[Message]) -> int:
        """Mend what differs in place; how many messages are known then."""
        known = min(len(self.copies), len(messages))
        del self.copies[known:], self.json[known:]
        self.moved = {index: images for index, images in self.moved.items() if index < known}
        for index, message in enumerate(messages[:known]):
            if self.copies[index] != message:
                self.copies[index] = copy_json(message)
                self._encode(index, message)
        self.size = sum(map(len, self.json))
        self.ids = ids_in(messages[:known])
        self.images = images_in(messages[:known])
        return known


class BodyEncoder:
    """Writes request bodies. What is remembered of conversations is about ``limit`` bytes."""

    def __init__(self, limit: int = CACHE_BYTES) -> None:
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
        form: Form = PLAIN,
    ) -> bytes:
        """The request's JSON: ``head`` (model, parameters), the tools, the messages."""
        start = _encode_clean(head)[:-1]
        offered = b',"tools":' + self._tools_as_json(tools) if tools else b""
        encoded = self._conversations.get(conversation)
        if encoded is None or encoded.form != form:
            encoded = self._conversations[conversation] = Encoded(form)
        encoded.follow(messages)
        self._conversations.move_to_end(conversation)
        first, *rest = encoded.parts() or [b","]
        body = b"".join((start, offered, b',"messages":[', first[1:], *rest, b"]}"))
        self._shrink()
        return body

    def ids(self, conversation: str, messages: list[Message]) -> set[str]:
        """The ids of the calls in the messages that were sent last for a conversation."""
        encoded = self._conversations.get(conversation)
        if not conversation or encoded is None or len(encoded.copies) != len(messages):
            return ids_in(messages)
        return set(encoded.ids)

    def images(self, conversation: str) -> set[int]:
        """Hashes of the images in the messages that were sent last for a conversation."""
        encoded = self._conversations.get(conversation)
        return encoded.images if encoded is not None else set()

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


def _encoded(message: Any) -> bytes:
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
    if not isinstance(value, dict):
        return [copy_json(item) for item in value] if is_array(value) else value
    if isinstance(value, KeptDict):
        return value  # nobody can change it
    copied: dict[str, Any] = {**value}
    for key, item in copied.items():
        if isinstance(item, dict | list):
            copied[key] = copy_json(item)
    return copied
