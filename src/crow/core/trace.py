"""The record of what every hook did: what ``crow hooks explain`` and spans are made of."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import field
from typing import Any, Protocol

from crow.core.support.frozen import frozen

KEPT = 10_000
USER = "user"
"""The owner of a record that is no hook's: what the user answered to a question."""


@frozen
class Record:
    """One run of one hook.

    ``answer`` is what it answered, None where nothing; ``changed`` names the context's fields
    that it changed, and ``values`` says what they are since, lists left out; ``seconds`` is its own
    time, without waiting for the user; of what the user answered, how long that took.
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


class Named(Protocol):
    """Whoever has a name."""

    name: str


@frozen
class Role:
    """The role of somebody at a moment: whose, its name, and which fields are his to change."""

    owner: Named
    moment: str
    name: str = ""
    changes: tuple[str, ...] = ()


class Trace:
    """The last ten thousand records of a session, oldest first; ``count`` is how many it had.

    ``trace.add(record)`` keeps a row; before each request the oldest go where there are too many.

    A row is a record, the values of one, or role, seconds and call of a hook that did nothing else
    than to run: it becomes a record when somebody asks for it.
    """

    __slots__ = ("_gone", "_rows", "add")

    def __init__(self) -> None:
        self._rows: list[Record | tuple[Any, ...]] = []
        self._gone = 0
        self.add: Callable[[Record | tuple[Any, ...]], None] = self._rows.append

    def trim(self) -> None:
        """Throw the oldest rows away, where there are many more than are kept."""
        if len(self._rows) > 2 * KEPT:
            self._gone += len(self._rows) - KEPT
            del self._rows[:-KEPT]

    @property
    def count(self) -> int:
        """How many records it had."""
        return self._gone + len(self._rows)

    def since(self, count: int, quiet: Container[str] | None = None) -> list[Record]:
        """What was added since there were ``count`` records, oldest first.

        Of hooks that left nothing behind and touched no call only those at the ``quiet`` events,
        where these are given.
        """
        new = min(self.count - count, len(self))
        rows = self._rows[-new:] if new > 0 else []
        found: list[Record] = []
        for row in rows:
            if type(row) is not tuple or len(row) != 3:
                found.append(_made(row))
            elif quiet is None or row[2] is not None or row[0].moment in quiet:
                found.append(record_of(*row))
        return found

    def of_call(self, call_id: str) -> list[Record]:
        """Every hook that touched one tool call, in order."""
        return [record for record in self if record.call_id == call_id]

    def __iter__(self) -> Iterator[Record]:
        return map(_made, self._rows[-KEPT:])

    def __len__(self) -> int:
        return min(len(self._rows), KEPT)


def record_of(role: Role, seconds: float, call_id: str | None) -> Record:
    """The record of a hook that answered nothing and changed nothing."""
    return Record(role.moment, role.owner.name, role.name, seconds=seconds, call_id=call_id)


def _made(row: Record | tuple[Any, ...]) -> Record:
    match row:
        case Record():
            return row
        case (Role(), _, _):
            return record_of(*row)
        case _:
            return Record(*row)
