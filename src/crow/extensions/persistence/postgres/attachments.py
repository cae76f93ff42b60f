"""Attachments of sessions in PostgreSQL: the records of extensions, and each content once.

A foreign key holds a content as long as a record names it, whoever takes others away meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from crow.errors import SessionError
from crow.storage import Attachment

if TYPE_CHECKING:
    from crow.extensions.persistence.postgres.connection import PostgresConnection
    from crow.extensions.persistence.sql import Value

T = TypeVar("T")
NOT_THERE = "23503"
"""SQLSTATE ``foreign_key_violation``."""
PART = 8_000_000
"""Bytes of contents that go in one statement."""
CONTENTS = "INSERT INTO attached_contents (hash, data) VALUES {marks} ON CONFLICT (hash) DO NOTHING"
RECORDS = (
    "new AS MATERIALIZED (SELECT nextval(pg_get_serial_sequence('attachments', 'id')) AS id, v.*"
    " FROM (VALUES {marks}) AS v (place, session, at, data)),"
    " made AS (INSERT INTO attachments (id, owner, session, at, data)"
    " SELECT id, ?, session, at, data FROM new)"
)
NAMED = (
    " INSERT INTO attachment_contents (attachment, hash) SELECT new.id, named.hash"
    " FROM new JOIN (VALUES {marks}) AS named (place, hash) USING (place)"
)
OF = (
    "SELECT session, at, data, id FROM attachments"
    " WHERE owner = ? AND session IN ({marks}) AND at >= ? ORDER BY id"
)
NAMED_BY = (
    "SELECT DISTINCT hash FROM attachment_contents n JOIN attachments a ON a.id = n.attachment"
    " WHERE {which}"
)
UNNAMED = (
    "DELETE FROM attached_contents c WHERE hash IN ({marks})"
    " AND NOT EXISTS (SELECT 1 FROM attachment_contents n WHERE n.hash = c.hash)"
)
ORPHANS = (
    "DELETE FROM attached_contents c"
    " WHERE NOT EXISTS (SELECT 1 FROM attachment_contents n WHERE n.hash = c.hash)"
)
"""What was brought by who then died before the record."""


class Ask(Protocol):
    """Has something done on a connection, again where that is lost. Raises `SessionError`."""

    def __call__(self, work: Callable[[PostgresConnection], T], /) -> T: ...


class PostgresAttachments:
    """The `Attachments` of one database."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def add(self, owner: str, records: Sequence[Attachment], contents: Mapping[str, bytes]) -> None:
        """Keep records, and those of their contents that may not be there.

        Raises ``LookupError`` where a content that a record names is neither given nor there.
        """
        *before, last = parts(contents)
        for part in before:
            self._ask(partial(bring, part))
        if records:
            try:
                self._ask(partial(add, owner, records, last))
            except SessionError as error:
                if getattr(error.__cause__, "sqlstate", None) == NOT_THERE:
                    raise LookupError("a content was taken away meanwhile") from error
                raise

    def of(self, owner: str, sessions: Sequence[str], since: float) -> list[Attachment]:
        """The records of some sessions since a time, in order."""
        sql = OF.format(marks=", ".join("?" * len(sessions)))
        rows = self._ask(lambda c: c.execute(sql, (owner, *sessions, since)).fetchall())
        return [Attachment(session, at, data, (), number) for session, at, data, number in rows]

    def remove(self, owner: str, ids: Iterable[int]) -> None:
        """Take records away, and the contents that nobody names any more."""
        for number in ids:
            self._ask(partial(take_away, which="owner = ? AND id = ?", values=(owner, number)))

    def clean_up(self, owner: str, before: float) -> None:
        """Take away what is older."""

        def clean(connection: PostgresConnection) -> None:
            if take_away(connection, which="owner = ? AND at < ?", values=(owner, before)):
                connection.execute(ORPHANS)

        self._ask(clean)

    def content(self, mark: str) -> bytes | None:
        """A content by its hash; None where it is not kept."""
        sql = "SELECT data FROM attached_contents WHERE hash = ?"
        data = self._ask(lambda c: c.execute(sql, (mark,)).get)
        return None if data is None else bytes(data)

    def has(self, mark: str) -> bool:
        """True where a content is kept."""
        sql = "SELECT 1 FROM attached_contents WHERE hash = ?"
        return self._ask(lambda c: c.execute(sql, (mark,)).get) is not None

    def size(self) -> int:
        """Bytes of all contents on the database's disk."""
        sql = "SELECT pg_total_relation_size('attached_contents')"
        return int(self._ask(lambda c: c.execute(sql).get))


def parts(contents: Mapping[str, bytes]) -> list[dict[str, bytes]]:
    """Contents in parts of so many bytes, at least one."""
    found: list[dict[str, bytes]] = [{}]
    size = 0
    for mark, data in contents.items():
        if size and size + len(data) > PART:
            found.append({})
            size = 0
        found[-1][mark] = data
        size += len(data)
    return found


def bring(contents: Mapping[str, bytes], connection: PostgresConnection) -> None:
    """Bring contents that no record names yet."""
    values = [value for each in contents.items() for value in each]
    connection.execute(CONTENTS.format(marks=_marks(len(contents), 2)), values)


def add(
    owner: str,
    records: Sequence[Attachment],
    contents: Mapping[str, bytes],
    connection: PostgresConnection,
) -> None:
    """Bring records and what they name, in one statement."""
    steps: list[str] = []
    values: list[Value] = []
    if contents:
        steps.append(f"kept AS ({CONTENTS.format(marks=_marks(len(contents), 2))})")
        values += (value for each in contents.items() for value in each)
    steps.append(RECORDS.format(marks=_marks(len(records), 4)))
    for place, each in enumerate(records):
        values += (place, each.session, each.at, each.data)
    values.append(owner)
    named = [(place, mark) for place, each in enumerate(records) for mark in {*each.contents}]
    values += (value for each in named for value in each)
    rest = NAMED.format(marks=_marks(len(named), 2)) if named else " SELECT 1"
    connection.execute(f"WITH {', '.join(steps)}{rest}", values)


def take_away(connection: PostgresConnection, which: str, values: Sequence[Value]) -> int:
    """Take records away, and the contents that these alone named; how many records."""
    with connection.together():
        found = connection.execute(NAMED_BY.format(which=which), values).fetchall()
        connection.execute(f"DELETE FROM attachments WHERE {which}", values)  # noqa: S608
        removed = connection.changes()
        if marks := [row[0] for row in found]:
            connection.execute(UNNAMED.format(marks=", ".join("?" * len(marks))), marks)
    return removed


def _marks(rows: int, columns: int) -> str:
    return ", ".join([f"({', '.join('?' * columns)})"] * rows)
