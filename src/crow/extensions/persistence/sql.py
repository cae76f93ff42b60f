"""The part of the SQLite library that is used here, in plain types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias

Value: TypeAlias = "str | int | float | None"
Values: TypeAlias = Sequence[Value]


class Cursor(Protocol):
    """The rows of a statement. ``get`` is the value of the one row, None where there is none."""

    @property
    def get(self) -> Any: ...
    def __iter__(self) -> Iterator[tuple[Any, ...]]: ...
    def fetchone(self) -> tuple[Any, ...] | None: ...
    def fetchall(self) -> list[tuple[Any, ...]]: ...
    def get_description(self) -> tuple[tuple[str, str], ...]: ...


class Backup(Protocol):
    """A copy that is being made."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None: ...
    def step(self, pages: int = -1, /) -> bool: ...


class Connection(Protocol):
    """An open database."""

    @property
    def in_transaction(self) -> bool: ...
    def execute(self, sql: str, bindings: Values | None = None, /) -> Cursor: ...
    def executemany(self, sql: str, bindings: Iterable[Values], /) -> Cursor: ...
    def pragma(self, name: str, value: Value = None, /) -> Any: ...
    def changes(self) -> int: ...
    def last_insert_rowid(self) -> int: ...
    def set_busy_timeout(self, milliseconds: int, /) -> None: ...
    def set_progress_handler(
        self, stop: Callable[[], bool] | None, steps: int = 100, /
    ) -> None: ...
    def backup(self, name: str, source: Connection, source_name: str, /) -> Backup: ...
    def close(self) -> None: ...


def connect(name: str, flags: int | None = None) -> Connection:
    """Open a database, new where there is none; ``flags`` are SQLite's. Raises ``apsw.Error``."""
    import apsw

    create = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    connection: Any = apsw.Connection(name, flags=create if flags is None else flags)
    return connection
