"""A connection to PostgreSQL that is spoken to as one to SQLite: the same statements, same rows.

Values are put in by the client, so that a pooler that keeps no session (pgbouncer in transaction
mode) serves as well, and no value needs a type of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from crow.errors import SessionError
from crow.extensions.persistence.sql import Value, Values

if TYPE_CHECKING:
    from psycopg import Connection, Cursor

MARK = re.compile(r"\?(\d*)|%")
ROW = re.compile(r"VALUES (\([?, ]+\))")


class ConnectionLostError(SessionError):
    """The database was not reached, or went away."""


class Rows:
    """The rows of a statement, all of them fetched."""

    def __init__(self, cursor: Cursor[tuple[Any, ...]]) -> None:
        columns = cursor.description or ()
        self._columns = tuple((column.name, "") for column in columns)
        self._rows: Iterator[tuple[Any, ...]] = iter(cursor.fetchall() if columns else ())

    @property
    def get(self) -> Any:
        """The value of the one row, None where there is none."""
        row = self.fetchone()
        return row[0] if row is not None and len(row) == 1 else row

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self._rows

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row."""
        return next(self._rows, None)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows that are left."""
        return list(self._rows)

    def get_description(self) -> tuple[tuple[str, str], ...]:
        """The names of the columns."""
        return self._columns


class PostgresConnection:
    """One connection. ``give_back`` is what `close` does, where others may use it afterwards.

    ``limits`` stand before what is to be limited in time, where the connection itself is not.
    """

    def __init__(
        self,
        raw: Connection[tuple[Any, ...]],
        name: str,
        give_back: Callable[[PostgresConnection], None] | None = None,
        *,
        limits: str = "",
    ) -> None:
        self.raw = raw
        self.name = name
        self.limits = limits
        self._give_back = give_back
        self._changes = 0

    @property
    def is_usable(self) -> bool:
        """False for one that was closed or lost, and one with a transaction left open."""
        return not self.raw.closed and not self.in_transaction

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction was begun, on a connection that is there."""
        from psycopg.pq import TransactionStatus

        states = (TransactionStatus.INTRANS, TransactionStatus.INERROR)
        return self.raw.info.transaction_status in states

    def execute(self, sql: str, bindings: Values | None = None, /) -> Rows:
        """Do a statement of SQLite's dialect, with ``?`` or ``?1`` for values."""
        if bindings is None:
            return self._do(sql, None)
        return self._do(translated(sql), _named(bindings))

    def executemany(self, sql: str, bindings: Iterable[Values], /) -> Rows | None:
        """Do a statement for many rows: at once, where it inserts them."""
        rows = list(bindings)
        found = ROW.search(sql)
        if rows and found is not None:
            marks = ", ".join([found[1]] * len(rows))
            values = [value for row in rows for value in row]
            return self.execute(f"{sql[: found.start(1)]}{marks}{sql[found.end(1) :]}", values)
        for row in rows:
            self.execute(sql, row)
        return None

    def _do(self, sql: str, values: dict[str, Any] | None) -> Rows:
        from psycopg import Error

        try:
            with self.raw.cursor() as cursor:
                cursor.execute(sql.encode(), values)
                while cursor.nextset():
                    pass
                self._changes = max(cursor.rowcount, 0)
                return Rows(cursor)
        except Error as error:
            raise explain(error, self.name, lost=self.raw.closed) from error

    @contextmanager
    def together(self) -> Generator[None]:
        """A transaction, or a part of the one that there is."""
        from psycopg import Error

        try:
            with self.raw.transaction():
                yield
        except Error as error:
            raise explain(error, self.name, lost=self.raw.closed) from error

    def changes(self) -> int:
        """How many rows the last statement changed."""
        return self._changes

    def set_busy_timeout(self, milliseconds: int, /) -> None:
        """Nothing: a transaction begins with its limits."""

    def close(self) -> None:
        """Close it, or let the next question have it."""
        if self._give_back is not None and self.is_usable:
            self._give_back(self)
        else:
            self.raw.close()


@lru_cache(maxsize=256)
def translated(sql: str) -> str:
    """A statement of SQLite's dialect in PostgreSQL's, its values named ``p1``, ``p2``, ..."""
    count = 0

    def mark(found: re.Match[str]) -> str:
        nonlocal count
        if found[0] == "%":
            return "%%"
        count += 1
        return f"%(p{found[1] or count})s"

    return MARK.sub(mark, sql).replace("instr(", "strpos(")


def _named(values: Sequence[Value]) -> dict[str, Any]:
    return {f"p{number}": _storable(value) for number, value in enumerate(values, 1)}


def _storable(value: Value) -> Value:
    """The value; PostgreSQL has no text with a zero in it, and no number for a truth."""
    if isinstance(value, str):
        return value.replace("\0", "\\x00")
    return int(value) if isinstance(value, bool) else value


def explain(error: Exception, name: str, *, lost: bool = False) -> SessionError:
    """What went wrong with the database, in one line that says what to do."""
    if isinstance(error, SessionError):
        return error
    from psycopg import OperationalError, errors

    said = str(error).strip().splitlines() or [type(error).__name__]
    match error:
        case errors.DiskFull():
            why = "its disk is full: free some space there"
        case errors.ReadOnlySqlTransaction():
            why = "it takes no writes: is it a replica?"
        case errors.LockNotAvailable() | errors.QueryCanceled():
            why = f"it took too long ({said[0]}): somebody keeps a lock, or it is overloaded"
        case errors.InsufficientPrivilege():
            why = f"{said[0]}: grant it to the role of the address"
        case OperationalError() if lost or getattr(error, "sqlstate", None) is None:
            return ConnectionLostError(f"{name}: it cannot be reached: {said[0]}")
        case _:
            why = said[0]
    return SessionError(f"{name}: {why}")
