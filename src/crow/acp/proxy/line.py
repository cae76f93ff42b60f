"""A message that passes through: its bytes as they came, and what can be read in them."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any, cast

from crow.acp.jsonrpc import (
    PARSE_ERROR,
    Message,
    Oversized,
    as_object,
    decode,
    encode,
    failure,
    is_id,
)

VERSION = 1
"""The version of the protocol whose messages are understood here."""


class Line:
    """One message. ``raw`` is what is passed on, with its line end; ``message`` what it says."""

    __slots__ = ("__dict__", "message", "raw")

    def __init__(self, raw: bytes, message: Message) -> None:
        self.raw = raw
        self.message = message

    @classmethod
    def of(cls, message: Message) -> Line:
        """A message that was made or changed here."""
        return cls(encode(message), message)

    @property
    def id(self) -> Any:
        """What ties a request to its answer."""
        return self.message.get("id")

    @property
    def method(self) -> str:
        """What is wanted; empty for an answer."""
        return self.message.get("method", "")

    @property
    def is_request(self) -> bool:
        """True where an answer is expected."""
        return bool(self.method) and "id" in self.message

    @cached_property
    def params(self) -> Message:
        """The parameters of a request or a notification."""
        return as_object(self.message.get("params"))

    @cached_property
    def result(self) -> Message:
        """The result of an answer; empty where that is an error."""
        return as_object(self.message.get("result"))

    @property
    def session_id(self) -> str | None:
        """The session that it is about."""
        named = self.params.get("sessionId")
        return named if isinstance(named, str) else None

    def with_params(self, **changed: Any) -> Line:
        """The same with other parameters."""
        return Line.of({**self.message, "params": {**self.params, **changed}})


def parse(raw: bytes | Oversized) -> Line | str:
    """A line as a message, or why it is none.

    What cannot be read here is passed to nobody: whoever is behind might read it otherwise.
    """
    if isinstance(raw, Oversized):
        return "the line is too long"
    try:
        value = json.loads(raw.decode())
    except (ValueError, RecursionError) as error:
        return f"this is no JSON: {error}"
    return _judged(raw, value)


def _judged(raw: bytes, value: object) -> Line | str:
    if not isinstance(value, dict):
        return "a message is an object"
    message = cast("Message", value)
    if not isinstance(message.get("method", ""), str) or message.get("method") == "":
        return "the method is no text"
    if "method" not in message and not {"result", "error"} & message.keys():
        return "this is no message of JSON-RPC"
    if not is_id(message.get("id")):
        return "an id is a string, an integer or null"
    return Line(raw + b"\n", message)


def is_answer(raw: bytes | Oversized) -> bool:
    """True for an answer that is too long to be read: whoever waits for it is to hear of that."""
    return isinstance(raw, Oversized) and b'"method"' not in raw.head + raw.tail


def unread(raw: bytes | Oversized, why: str) -> Line:
    """The failure that stands for a line that cannot be read."""
    if isinstance(raw, Oversized):
        told = decode(raw)[1]
        assert told is not None
        return Line.of(told)
    return Line.of(failure(None, PARSE_ERROR, "Parse error", details=why))


def unjudgeable(line: Line) -> str:
    """Why a request that rules decide on cannot be decided; empty where it can be."""
    if not line.is_request:
        return "it is a notification, and has to be a request"
    return "" if line.session_id is not None else "it names no session"


def understood(line: Line) -> Line:
    """A greeting of the client's; nobody speaks a version that is not understood here."""
    asked = line.params.get("protocolVersion")
    if isinstance(asked, int) and asked > VERSION:
        return line.with_params(protocolVersion=VERSION)
    return line
