"""The record of what every hook did: what ``crow hooks explain`` and spans are made of."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import islice
from typing import Any

from crow.core.frozen import frozen

KEPT = 10_000
USER = "user"
"""The owner of a record that is no hook's: what the user answered to a question."""


@frozen
class Record:
    """One run of one hook.

    ``answer`` is what it answered, None where nothing; ``changed`` names the context's fields
    that it changed, and ``values`` says what they are since, lists left out; ``seconds`` is its own
    time, without waiting for the user.
    """

    event: str
    owner: str
    hook: str
    answer: object = None
    changed: tuple[str, ...] = ()
    error: str | None = None
    seconds: float = 0.0
    call_id: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Trace:
    """The last ten thousand records of a session, oldest first; ``count`` is how many it had."""

    __slots__ = ("_records", "count")

    def __init__(self) -> None:
        self._records: deque[Record | tuple[Any, ...]] = deque(maxlen=KEPT)
        self.count = 0

    def add(self, record: Record | tuple[Any, ...]) -> None:
        """Keep a record, or the values of one that nobody has asked for yet."""
        self._records.append(record)
        self.count += 1

    def since(self, count: int) -> list[Record]:
        """What was added since there were ``count`` records, oldest first."""
        new = min(self.count - count, len(self._records))
        return [*map(_made, islice(reversed(self._records), new))][::-1]

    def of_call(self, call_id: str) -> list[Record]:
        """Every hook that touched one tool call, in order."""
        return [record for record in self if record.call_id == call_id]

    def __iter__(self) -> Iterator[Record]:
        return map(_made, self._records)

    def __len__(self) -> int:
        return len(self._records)


def _made(record: Record | tuple[Any, ...]) -> Record:
    return Record(*record) if isinstance(record, tuple) else record
