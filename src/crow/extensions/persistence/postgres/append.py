"""Appending to a session in PostgreSQL: one statement, which looks for the claim first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crow.extensions.persistence.session_log import Batch, now

if TYPE_CHECKING:
    from crow.extensions.persistence.postgres.claim import RowClaim
    from crow.extensions.persistence.postgres.connection import PostgresConnection
    from crow.extensions.persistence.sql import Value

PAGE = (
    "WITH fence AS (SELECT 1 FROM leases WHERE session = ? AND epoch = ? FOR KEY SHARE),"
    " page AS (SELECT key FROM sessions WHERE id = ? AND EXISTS (SELECT 1 FROM fence))"
)
ROWS = (
    ", written AS (INSERT INTO log (session, seq, segment, kind, at, data)"
    " SELECT page.key, new.* FROM page, (VALUES {marks}) AS new"
    " ON CONFLICT (session, seq) DO NOTHING)"
)
STATES = (
    ", kept AS (INSERT INTO states (session, name, data)"
    " SELECT page.key, new.* FROM page, (VALUES {marks}) AS new"
    " ON CONFLICT (session, name) DO UPDATE SET data = excluded.data)"
)
CHANGED = ", changed AS (UPDATE sessions SET {names} WHERE key = (SELECT key FROM page))"
FOUND = " SELECT EXISTS (SELECT 1 FROM fence), EXISTS (SELECT 1 FROM page)"


def append(connection: PostgresConnection, batch: Batch, claim: RowClaim) -> bool:
    """Write a batch; writing it again changes nothing. False where its session is not there.

    Raises `SessionInUse` where another holds the session by now.
    """
    sql = [connection.limits, PAGE]
    values: list[Value] = [batch.session_id, claim.epoch, batch.session_id]
    fields = {"updated": now(), **batch.fields} if batch.fields else {}
    if fields or batch.used:
        names = [f"{name} = ?" for name in fields] + ["touched = 0"] * batch.used
        sql.append(CHANGED.format(names=", ".join(names)))
        values += fields.values()
    if batch.rows:
        sql.append(ROWS.format(marks=_marks(len(batch.rows), 5)))
        for row in batch.rows:
            values += (row.seq, row.segment, row.kind, row.at, row.data)
    if batch.states:
        sql.append(STATES.format(marks=_marks(len(batch.states), 2)))
        for state in batch.states.items():
            values += state
    is_held, is_there = connection.execute("".join([*sql, FOUND]), values).fetchone() or (0, 0)
    if not is_held:
        raise claim.taken_over()
    return bool(is_there)


def _marks(rows: int, columns: int) -> str:
    return ", ".join([f"({', '.join('?' * columns)})"] * rows)
