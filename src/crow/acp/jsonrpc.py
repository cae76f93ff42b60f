"""JSON-RPC 2.0 as ACP speaks it, one object a line: messages and lines, from bytes and to bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
AUTH_REQUIRED = -32000
NOT_FOUND = -32002
REQUEST_CANCELLED = -32800
CANCEL = "$/cancel_request"

LIMIT = 32 * 1024 * 1024
"""Bytes of a line; a longer one is skipped."""
KEPT = 4096

Message = dict[str, Any]
Sent = Mapping[str, object]
"""What is sent: `crow.acp.outgoing` has its shapes."""
_MISSING = object()


class Oversized:
    """The rest of a line that was too long: its beginning and its end."""

    __slots__ = ("head", "tail")

    def __init__(self, head: bytes, tail: bytes) -> None:
        self.head = head
        self.tail = tail


class Lines:
    """Bytes in, lines out, without their line ends. Holds at most ``limit`` bytes and a chunk."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size = 0
        self._head = b""

    def feed(self, data: bytes) -> list[bytes | Oversized]:
        """The lines that end in this piece of the stream."""
        *ended, rest = data.split(b"\n")
        lines: list[bytes | Oversized] = []
        for piece in ended:
            self._hold(piece)
            lines.append(self._take())
        self._hold(rest)
        return lines

    def rest(self) -> list[bytes | Oversized]:
        """What came behind the last line end; for the end of the stream."""
        return [self._take()] if self._size else []

    def _hold(self, piece: bytes) -> None:
        self._size += len(piece)
        self._pieces.append(piece)
        if self._size > self._limit:
            whole = b"".join(self._pieces)
            self._head = self._head or whole[:KEPT]
            self._pieces = [whole[-KEPT:]]

    def _take(self) -> bytes | Oversized:
        whole, head, size = b"".join(self._pieces), self._head, self._size
        self._pieces, self._head, self._size = [], b"", 0
        return Oversized(head, whole) if size > self._limit else whole


def as_object(value: object) -> Message:
    """A value that should be an object; an empty one where it is none."""
    return cast("Message", value) if isinstance(value, dict) else {}


def failure(request_id: Any, code: int, text: str, **data: Any) -> Message:
    """The answer to a request that failed; ``data`` is what there is to be said beside."""
    error: Message = {"code": code, "message": text}
    if any(data.values()):
        error["data"] = data
    return {"jsonrpc": "2.0", "id": request_id, "error": error}


def success(request_id: Any, result: Any) -> Message:
    """The answer to a request."""
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def notification(method: str, params: Sent) -> Message:
    """A message that nobody answers."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


as_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode
"""A value as it is written on the wire: `json.dumps` would make a writer for each."""


def encode(message: Message) -> bytes:
    """A message as it stands on the wire. Half a surrogate pair becomes a question mark."""
    return as_json(message).encode("utf-8", "replace") + b"\n"


def decode(line: bytes | Oversized) -> tuple[Message | None, Message | None]:
    """A line as a message to act on, or the failure to answer it with; neither for a blank one."""
    if isinstance(line, Oversized):
        return None, _too_long(line)
    if not line.strip():
        return None, None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        return None, failure(None, PARSE_ERROR, "Parse error", details=str(error))
    return _judge(value)


def _judge(value: Any) -> tuple[Message | None, Message | None]:
    if not isinstance(value, dict):
        return None, failure(
            None, INVALID_REQUEST, "Invalid request", details="a message is an object"
        )
    message = cast("Message", value)
    if "method" not in message and ("result" in message or "error" in message):
        return _answer(message), None
    request_id = message.get("id", _MISSING)
    wrong = _wrong(message)
    if wrong:
        named = request_id if is_id(request_id) else None
        return None, failure(named, INVALID_REQUEST, "Invalid request", details=wrong)
    if not isinstance(message.get("params", {}), dict | None):
        if request_id is _MISSING:
            return None, None
        return None, failure(
            request_id, INVALID_PARAMS, "Invalid params", details="params is an object"
        )
    return message, None


def _wrong(message: Message) -> str:
    if message.get("jsonrpc") != "2.0":
        return 'jsonrpc must be "2.0"'
    if not isinstance(message.get("method"), str):
        return "there is no method"
    if "id" in message and not is_id(message["id"]):
        return "an id is a string, an integer or null"
    return ""


def is_id(value: Any) -> bool:
    """True for what can be the id of a request."""
    return value is None or (isinstance(value, str | int) and not isinstance(value, bool))


def _answer(message: Message) -> Message | None:
    """An answer to a request of ours, its error put in shape; None where it is nobody's."""
    if type(message.get("id")) is not int:
        return None
    if "result" in message:
        return {"jsonrpc": "2.0", "id": message["id"], "result": message["result"]}
    error = as_object(message["error"])
    code = error.get("code")
    return {
        "jsonrpc": "2.0",
        "id": message["id"],
        "error": {
            "code": code if type(code) is int else INTERNAL_ERROR,
            "message": str(error.get("message") or "the client gave no reason"),
            "data": error.get("data"),
        },
    }


def _too_long(line: Oversized) -> Message:
    """The failure for a line that was skipped, with its id where that can still be read."""
    import re

    value = rb'"id"\s*:\s*(-?\d+|"(?:[^"\\]|\\.)*")'
    head = line.head.partition(b'"params"')[0]
    found = re.search(value + rb"\s*,", head) or re.search(
        rb",\s*" + value + rb"\s*}\s*$", line.tail
    )
    request_id = json.loads(found[1]) if found else None
    return failure(request_id, INVALID_REQUEST, "Invalid request", details="the line is too long")
