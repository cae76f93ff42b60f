"""Server-sent events of a chat completion: bytes in, JSON objects out.

Takes what endpoints really send: lines split anywhere, CRLF, comments, JSON over several data
lines, events without a blank line between or several in an array, and a whole JSON document
instead of a stream.
"""

from __future__ import annotations

import json
from typing import Any

from crow.core.errors import ModelError
from crow.llm.http.text import is_array, is_object

MAX_EVENT = 32 * 1024 * 1024
MAX_STRAY = 16 * 1024 * 1024
SNIPPET = 200
LINES_TRIED = 100
BAD_JSON = (ValueError, RecursionError)
FIELDS = ("event:", "id:", "retry:")

loads = json.JSONDecoder(strict=False).decode
read = json.JSONDecoder(strict=False).raw_decode


class EventStream:
    """Cuts a response's body into events. ``done`` once the endpoint said ``[DONE]``.

    ``pings`` counts the signs of life that say nothing else: comments. ``fault`` is what is wrong
    behind the events that were given last.
    """

    __slots__ = (
        "_content_type",
        "_data",
        "_named_error",
        "_parts",
        "_size",
        "_stray",
        "_stray_size",
        "done",
        "fault",
        "pings",
        "seen",
    )

    def __init__(self, content_type: str = "") -> None:
        self._content_type = content_type
        self.done = False
        self.fault: ModelError | None = None
        self.pings = 0
        self.seen = False
        self._parts: list[bytes] = []
        self._size = 0
        self._data: list[str] = []
        self._stray: list[str] = []
        self._stray_size = 0
        self._named_error = False

    def feed(self, chunk: bytes) -> list[dict[str, Any]]:
        """The events that end in this chunk. Raises `ModelError` for one that is too long."""
        end = chunk.rfind(b"\n") + 1
        if not end:
            return self._hold(chunk)
        block = b"".join((*self._parts, chunk[:end])) if self._parts else chunk[:end]
        self._parts = [chunk[end:]] if end < len(chunk) else []
        self._size = len(chunk) - end
        return self._events(block)

    def end(self) -> list[dict[str, Any]]:
        """The events that the end of the body completes. Raises `ModelError` (protocol)."""
        events = self._events(b"".join((*self._parts, b"\n\n")))
        self._parts = []
        if not (self.seen or events or self.done or self.fault):
            events = self._document("\n".join(self._stray))
            self.done = True
        return events

    def _hold(self, chunk: bytes) -> list[dict[str, Any]]:
        self._parts.append(chunk)
        self._size += len(chunk)
        if self._size > MAX_EVENT:
            raise ModelError(f"sent an event of more than {MAX_EVENT} bytes", kind="protocol")
        return []

    def _events(self, block: bytes) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = []
        for line in block.decode("utf-8", "replace").split("\n"):
            if not line and not self._data:
                continue
            if line.startswith('data: {"') and not self._data and not self._named_error:
                try:
                    event, end = read(line, 6)
                    if end == len(line) or line[end:].isspace():
                        events.append(event)
                        continue
                except BAD_JSON:
                    pass
            self._line(line, events)
            if self.done or self.fault is not None:
                break
        if events:
            self.seen = True
        return events

    def _line(self, line: str, events: list[dict[str, Any]]) -> None:
        line = line.rstrip("\r")
        if not line:
            self._blank(events)
        elif line.startswith("data:"):
            self._datum(line[5:].strip(), events)
        elif line.startswith("event:"):
            self._named_error = line[6:].strip() == "error"
        elif line.startswith(":"):
            self.pings += 1
        elif not line.startswith(FIELDS) and line != "\ufeff":
            self._keep_stray(line.removeprefix("\ufeff"), events)

    def _blank(self, events: list[dict[str, Any]]) -> None:
        if not self._data:
            return
        if not self._complete(events):
            self._fail()

    def _datum(self, payload: str, events: list[dict[str, Any]]) -> None:
        if payload == "[DONE]":
            self.done = True
            return
        if not payload:
            return
        self._data.append(payload)
        if len(self._data) <= LINES_TRIED:
            self._complete(events)

    def _complete(self, events: list[dict[str, Any]]) -> bool:
        try:
            event = loads("\n".join(self._data))
        except BAD_JSON:
            return False
        self._data = []
        if self._named_error or is_object(event):
            events.append(self._named(event))
        elif is_array(event):
            events += filter(is_object, event)
        return True

    def _fail(self) -> None:
        text = snippet("\n".join(self._data))
        self.fault = ModelError(f"sent an event that is not JSON: {text}", kind="protocol")

    def _named(self, event: Any) -> dict[str, Any]:
        """What follows ``event: error`` is an error, whatever it looks like."""
        named, self._named_error = self._named_error, False
        if is_object(event) and not (named and "error" not in event):
            return event
        return {"error": event}

    def _keep_stray(self, line: str, events: list[dict[str, Any]]) -> None:
        if line.startswith("data:"):
            self._datum(line[5:].strip(), events)
            return
        self._stray_size += len(line)
        if self.seen or self._stray_size > MAX_STRAY:
            return
        self._stray.append(line)

    def _document(self, text: str) -> list[dict[str, Any]]:
        """The body as one JSON object, or an array of them, as it is sent where nothing streams."""
        if not text.strip():
            raise ModelError("sent an empty answer", kind="protocol")
        try:
            document = loads(text)
        except BAD_JSON:
            document = None
        objects = list(filter(is_object, document if is_array(document) else [document]))
        if not objects:
            kind = f" ({self._content_type})" if self._content_type else ""
            what = f"sent something that is no chat completion{kind}: {snippet(text)}"
            raise ModelError(what, kind="protocol")
        return objects


def snippet(text: str) -> str:
    """At most 200 bytes of a text, on one line, for an error."""
    line = " ".join(text.split())
    if len(line.encode("utf-8", "replace")) <= SNIPPET:
        return line
    return line.encode("utf-8", "replace")[: SNIPPET - 3].decode("utf-8", "ignore") + "…"
