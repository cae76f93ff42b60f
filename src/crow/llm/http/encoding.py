"""The messages of requests as JSON. What was encoded for an earlier request is not encoded again.

Of every conversation the cache holds the messages as they were when they were encoded. Texts in
these copies are the very same objects, so comparing a message with its copy costs no more than
looking at its keys, and one that was changed, inserted or removed is noticed.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias

from crow.core.messages import Message, ToolSpec
from crow.core.support.frozen import KeptDict
from crow.llm.http.request_format import RequestFormat, images_in
from crow.llm.http.text import clean_value, is_array, is_object

CACHE_BYTES = 64 * 1024 * 1024
SLICE = 64 * 1024
"""Characters that are made JSON of at once."""

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode

Piece: TypeAlias = "tuple[bytes, Any]"
"""A message as JSON (empty where none is sent), and what `Join` must know of it beside."""
Write: TypeAlias = Callable[[RequestFormat, Message], Piece]
"""Encodes one message by itself."""


class Join(Protocol):
    """Makes the items of the request's list, from the messages and their pieces.

    They are ``is_plain`` where there is nothing to know beside them. None: each is an item.
    """

    def __call__(
        self, messages: Sequence[Message], pieces: Sequence[Piece], *, is_plain: bool
    ) -> Iterable[bytes] | None: ...


def one_by_one(
    messages: Sequence[Message], pieces: Sequence[Piece], *, is_plain: bool
) -> Iterable[bytes] | None:
    """Every message as an item of its own."""
    return None


class Conversation:
    """The messages of one conversation as they were encoded.

    ``ids`` are those of all calls, ``images`` the hashes of all images that are there.
    """

    __slots__ = (
        "_joined", "_write", "copies", "form", "ids", "images", "is_plain", "pieces", "size",
    )  # fmt: skip

    def __init__(self, form: RequestFormat, write: Write) -> None:
        self.form = form
        self._write = write
        self.copies: list[Any] = []
        self.pieces: list[Piece] = []
        self.ids: set[str] = set()
        self.images: set[int] = set()
        self.size = 0
        self.is_plain = True
        self._joined = (0, bytearray())

    def follow(self, messages: list[Message]) -> None:
        """Become what these messages are, and encode only those that are not known."""
        known = len(self.copies)
        if self.copies != messages[:known]:
            known = self._match(messages)
        for message in messages[known:]:
            encoded, beside = piece = self._write(self.form, message)
            self.copies.append(copy_json(message))
            self.pieces.append(piece)
            self.size += len(encoded)
            self.is_plain = self.is_plain and not beside
        self.ids |= ids_in(messages[known:])
        self.images |= images_in(messages[known:])

    def _match(self, messages: list[Message]) -> int:
        """Mend what differs in place; how many messages are known then."""
        known = min(len(self.copies), len(messages))
        del self.copies[known:], self.pieces[known:]
        self._joined = (0, bytearray())
        for index, message in enumerate(messages[:known]):
            if self.copies[index] != message:
                self.copies[index] = copy_json(message)
                self.pieces[index] = self._write(self.form, message)
        self.size = sum(len(encoded) for encoded, _ in self.pieces)
        self.is_plain = not any(beside for _, beside in self.pieces)
        self.ids = ids_in(messages[:known])
        self.images = images_in(messages[:known])
        return known

    def joined(self) -> bytearray:
        """All of it, one message after the other; only what is new is put to it."""
        length, text = self._joined
        for encoded, _ in self.pieces[length:]:
            if encoded:
                text += b"," + encoded if text else encoded
        self._joined = len(self.pieces), text
        return text


class Encoder:
    """Writes the messages of requests. What is remembered of conversations is ``limit`` bytes."""

    def __init__(self, write: Write, join: Join = one_by_one, limit: int = CACHE_BYTES) -> None:
        self._write = write
        self._join = join
        self._limit = limit
        self._conversations: OrderedDict[str, Conversation] = OrderedDict()
        self._tools: list[Any] = []
        self._tools_json = b""

    def messages(
        self, messages: list[Message], conversation: str, form: RequestFormat
    ) -> bytes | bytearray:
        """The items that the messages become, as JSON with commas between, without brackets.

        Nobody changes them: they grow with the conversation.
        """
        known = self.follow(messages, conversation, form)
        items = self._join(known.copies, known.pieces, is_plain=known.is_plain)
        return known.joined() if items is None else b",".join(items)

    def is_long(self, messages: list[Message], conversation: str) -> bool:
        """True where so much of the messages is new that others should not wait for its JSON."""
        known = self._conversations.get(conversation)
        return is_long(messages if known is None else messages[len(known.copies) :], 4 * SLICE)

    def follow(
        self, messages: list[Message], conversation: str, form: RequestFormat
    ) -> Conversation:
        """The conversation as it is with these messages, each of them encoded."""
        known = self._conversations.get(conversation)
        if known is None or known.form != form:
            known = self._conversations[conversation] = Conversation(form, self._write)
        known.follow(messages)
        self._conversations.move_to_end(conversation)
        self._shrink()
        return known

    def tools(self, tools: list[ToolSpec], write: Callable[[list[ToolSpec]], Any] = list) -> bytes:
        """The tools as JSON; ``write`` puts them into an endpoint's words."""
        if tools != self._tools:
            self._tools_json = encode_clean(write(tools))
            self._tools = copy_json(tools)
        return self._tools_json

    def ids(self, conversation: str, messages: list[Message]) -> set[str]:
        """The ids of the calls in the messages that were sent last for a conversation, to read."""
        known = self._conversations.get(conversation)
        if not conversation or known is None or len(known.copies) != len(messages):
            return ids_in(messages)
        return known.ids

    def images(self, conversation: str) -> set[int]:
        """Hashes of the images in the messages that were sent last for a conversation."""
        known = self._conversations.get(conversation)
        return known.images if known is not None else set()

    def _shrink(self) -> None:
        """Forget the conversations that were longest not asked about."""
        conversations = self._conversations
        while (
            len(conversations) > 1
            and sum(each.size for each in conversations.values()) > self._limit
        ):
            conversations.popitem(last=False)


def ids_in(messages: list[Message]) -> set[str]:
    """The ids of all calls in some messages."""
    return {call["id"] for message in messages for call in message.get("tool_calls") or ()}


def is_long(value: Any, most: int) -> bool:
    """True where the texts in a JSON value have more characters than that."""
    size, waiting = 0, [value]
    for one in waiting:
        if type(one) is str:
            size += len(one)
            if size > most:
                return True
        elif isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return False


def encode_clean(value: Any) -> bytes:
    """A value as UTF-8 JSON; half surrogate pairs and NUL in it are replaced.

    What is long is made JSON of in slices: one call for megabytes lets no other thread go on.
    """
    return b"".join(_slices(value)) if is_long(value, SLICE) else _encoded(value)


def _encoded(value: Any) -> bytes:
    """The JSON of a value in one step."""
    text = _encode(value)
    if "\\u0000" not in text:
        try:
            return text.encode()
        except UnicodeEncodeError:
            pass
    return _encode(clean_value(value)).encode()


def _slices(value: Any) -> Iterator[bytes]:
    """The JSON of a long value, in pieces."""
    if isinstance(value, str):
        yield b'"'
        yield from (_encoded(each)[1:-1] for each in _cut(value))
        yield b'"'
    elif is_object(value):
        for number, (name, item) in enumerate(value.items()):
            yield (b"," if number else b"{") + encode_clean(str(name)) + b":"
            yield encode_clean(item)
        yield b"}"
    else:
        for number, item in enumerate(value):
            yield b"," if number else b"["
            yield encode_clean(item)
        yield b"]"


def _cut(text: str) -> Iterator[str]:
    """A text in slices, no two surrogates of which are apart."""
    start = 0
    while start < len(text):
        end = start + SLICE
        while "\ud800" <= text[end - 1 : end] <= "\udbff":
            end += 1
        yield text[start:end]
        start = end


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
