"""A journal of a session's latest events: for a client that comes back, or comes late."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from itertools import islice
from typing import Any

from crow.core.events import CallDelta, Event, TextDelta, ThoughtDelta, ToolEnded, ToolProgress
from crow.core.support.frozen import frozen

LIMIT = 4 * 1024 * 1024
FIXED = 400
PIECE = 4096
Told = tuple[str, Event]


@frozen
class Cursor:
    """The place of a client in what happens in a session.

    It knows all that stands before the position ``since`` of the journal. The run that was on
    then began at ``began``, when the history of that ``segment`` had ``count`` messages.
    """

    since: int
    began: int
    segment: int
    count: int


class Journal:
    """Events with the session they belong to (a sub-agent's have its own), in order.

    Positions count events since the session was opened. Keeps about `LIMIT` bytes; what is over
    that is forgotten, the oldest first. Text that follows text of the same message becomes one
    event, unless somebody has asked for the position between them.
    """

    def __init__(self) -> None:
        self._entries: deque[tuple[Told, int]] = deque()
        self._size = 0
        self._first = 0
        self._is_sealed = True

    @property
    def first(self) -> int:
        """The position of the oldest event that is still known."""
        return self._first

    def position(self) -> int:
        """Where the next event will stand."""
        self._is_sealed = True
        return self._first + len(self._entries)

    def add(self, session_id: str, event: Event) -> None:
        """Write down an event."""
        if isinstance(event, CallDelta):
            return
        joined = None if self._is_sealed else self._joined(session_id, event)
        if joined is not None:
            self._size -= self._entries.pop()[1]
        told = joined or (session_id, event)
        size = weight(told[1])
        self._entries.append((told, size))
        self._size += size
        self._is_sealed = False
        while self._size > LIMIT and len(self._entries) > 1:
            self._drop()

    def between(self, start: int, end: int | None = None) -> list[Told]:
        """The events from one position up to another, as far as they are known."""
        begin = max(start - self._first, 0)
        stop = None if end is None else max(end - self._first, 0)
        return [told for told, _size in islice(self._entries, begin, stop)]

    def forget(self, before: int) -> None:
        """Let go of what stands before a position."""
        while self._entries and self._first < before:
            self._drop()

    def _drop(self) -> None:
        _told, size = self._entries.popleft()
        self._size -= size
        self._first += 1

    def _joined(self, session_id: str, event: Event) -> Told | None:
        """The last entry with this event's text behind its own, where they belong together."""
        (last_id, last), size = self._entries[-1] if self._entries else (("", None), 0)
        if last_id != session_id or size > FIXED + PIECE:
            return None
        match last, event:
            case (TextDelta(), TextDelta()) | (ThoughtDelta(), ThoughtDelta()):
                is_one = last.message_id == event.message_id
            case (ToolProgress(), ToolProgress()):
                is_one = (last.call_id, last.terminal) == (event.call_id, event.terminal)
            case _:
                return None
        return (session_id, replace(last, text=last.text + event.text)) if is_one else None


def weight(event: Event) -> int:
    """About how many bytes an event takes."""
    text: Any = getattr(event, "text", "")
    size = FIXED + len(text)
    if isinstance(event, ToolEnded):
        size += len(event.result.text) + sum(map(len, map(str, event.result.diffs)))
    return size
