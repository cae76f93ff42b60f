"""The record of what every hook did: what ``crow hooks explain`` and spans are made of."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

KEPT = 10_000


@dataclass(frozen=True, slots=True)
class Record:
    """One run of one hook.

    ``answer`` is what it answered, None where nothing; ``changed`` names the context's fields
    that it changed; ``seconds`` is its own time, without waiting for the user.
    """

    event: str
    owner: str
    hook: str
    answer: object = None
    changed: tuple[str, ...] = ()
    error: str | None = None
    seconds: float = 0.0
    call_id: str | None = None


class Trace:
    """The last ten thousand records of a session, oldest first."""

    __slots__ = ("_records",)

    def __init__(self) -> None:
        self._records: deque[Record] = deque(maxlen=KEPT)

    def add(self, record: Record) -> None:
        """Keep a record."""
        self._records.append(record)

    def of_call(self, call_id: str) -> list[Record]:
        """Every hook that touched one tool call, in order."""
        return [record for record in self._records if record.call_id == call_id]

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)
