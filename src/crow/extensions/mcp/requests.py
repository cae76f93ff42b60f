"""Requests of ours that no answer has come to yet, and what is wrong with answers to them."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NamedTuple, cast

from mcp.types import (
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    jsonrpc_message_adapter,
)

Id = int | str
CANCELLED = "notifications/cancelled"
VERSION = "io.modelcontextprotocol/protocolVersion"
_ID = r'"id"\s*:\s*(-?\d{1,18}|"[^"\\]{0,200}")'
_VERSION = r'"jsonrpc"\s*:\s*"2\.0"'
_FIRST = re.compile(rf"\s*\{{\s*(?:{_VERSION}\s*,\s*)?{_ID}")
_LAST = re.compile(rf"{_ID}\s*(?:,\s*{_VERSION}\s*)?\}}\s*$")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Request(NamedTuple):
    """One request: its method, and whether it speaks the protocol without a handshake."""

    id: Id
    method: str
    is_modern: bool


class Broken(Exception):  # noqa: N818 - it travels among messages
    """A line that is no message."""

    def __init__(self, line: bytes) -> None:
        super().__init__(line[:200])
        self.line = line


class Requests:
    """The requests that no answer has come to yet, from the moment that each is sent."""

    def __init__(self) -> None:
        self._open: dict[Id, Request] = {}
        self._made: set[Id] = set()

    def note(self, message: JSONRPCMessage) -> None:
        """A message of ours is on its way."""
        if isinstance(message, JSONRPCRequest):
            meta = cast("dict[str, Any]", (message.params or {}).get("_meta") or {})
            request = Request(message.id, message.method, VERSION in meta)
            self._open[_key(message.id)] = request
            self._made.add(_key(message.id))
        elif isinstance(message, JSONRPCNotification) and message.method == CANCELLED:
            self.take((message.params or {}).get("requestId"))

    def take(self, told: object) -> Request | None:
        """The request that an answer is for; it is answered now."""
        return self._open.pop(_key(told), None) if isinstance(told, int | str) else None

    def of_method(self, method: str) -> Request | None:
        """The request of a method that waits, if one does."""
        return next((each for each in self._open.values() if each.method == method), None)

    def meant(self, told: object) -> Request | None:
        """The only request that can be meant by an answer to one that was never made."""
        was_made = isinstance(told, int | str) and _key(told) in self._made
        if was_made or len(self._open) != 1:
            return None
        return next(iter(self._open.values()))

    def repaired(self, line: bytes) -> JSONRPCMessage | None:
        """The message that a line is meant to be, or an error for the request that it answers."""
        value = _parsed(line)
        message = None if value is None else _message(value)
        if message is not None:
            return message
        request = self.take(_id_of(value, line))
        if request is None:
            return None
        what = "no JSON" if value is None else "no JSON-RPC answer"
        return failed(request, f"the server's answer is {what}")


def failed(request: Request, why: str, code: int = PARSE_ERROR) -> JSONRPCError:
    """The answer to a request that has no better one."""
    return JSONRPCError(jsonrpc="2.0", id=request.id, error=ErrorData(code=code, message=why))


def clean(value: Any) -> Any:
    """JSON without what other programs refuse: halves of characters, and numbers that are none."""
    match value:
        case str():
            return _SURROGATE.sub("\ufffd", value)
        case float():
            return value if math.isfinite(value) else None
        case dict():
            pairs = cast("dict[Any, Any]", value)
            return {clean(key): clean(inner) for key, inner in pairs.items()}
        case list():
            return [clean(inner) for inner in cast("list[Any]", value)]
        case _:
            return value


def _key(told: Id) -> Id:
    return int(told) if isinstance(told, str) and told.isdecimal() else told


def _parsed(line: bytes) -> Any:
    try:
        return clean(json.loads(line.decode("utf-8", "replace")))
    except (ValueError, RecursionError):
        return None


def _message(value: Any) -> JSONRPCMessage | None:
    try:
        return jsonrpc_message_adapter.validate_python(value, by_name=False)
    except (ValueError, RecursionError):
        return None


def _id_of(value: Any, line: bytes) -> object:
    """The id that a line is an answer to, as far as one can tell."""
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        return None if "method" in table else table.get("id")
    text = line.decode("utf-8", "replace")
    found = _FIRST.match(text) or _LAST.search(text[-1000:])
    return json.loads(found[1]) if found else None
