"""The rows of stored sessions: found, listed, copied, renamed, taken away."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from crow.errors import SessionError
from crow.extensions.persistence.record import Entry, Row, dump, read_entries
from crow.extensions.persistence.session_log import insert, now, touch

if TYPE_CHECKING:
    from crow.extensions.persistence.sql import Connection
    from crow.storage import SessionInfo

Stored: TypeAlias = dict[str, Any]


def find_session(connection: Connection, session_id: str) -> Stored | None:
    """A session's row with its JSON read, and its states; None where there is none."""
    cursor = connection.execute("SELECT * FROM sessions WHERE id = ?", (session_id,))
    row = cursor.fetchone()
    if row is None:
        return None
    stored: Stored = dict(zip((column[0] for column in cursor.get_description()), row, strict=True))
    stored["directories"] = lenient(stored["directories"], list[str]())
    for name in ("options", "usage"):
        stored[name] = lenient(stored[name], dict[str, Any]())
    stored["states"] = dict(
        connection.execute("SELECT name, data FROM states WHERE session = ?", (stored["key"],))
    )
    return stored


def lenient(text: str, otherwise: Any) -> Any:
    """Read JSON of a known type; something else in its place where it is damaged."""
    try:
        value = json.loads(text)
    except ValueError:
        return otherwise
    return value if isinstance(value, type(otherwise)) else otherwise


def stored_entries(connection: Connection, key: int, start: int = 0) -> list[Entry]:
    """A session's rows from a seq on."""
    return read_entries(
        connection.execute(
            "SELECT seq, segment, kind, data FROM log WHERE session = ? AND seq >= ? ORDER BY seq",
            (key, start),
        )
    )


def session_page(
    connection: Connection, cwd: str | None, cursor: str | None, limit: int, archived: bool | None
) -> tuple[list[SessionInfo], str | None]:
    """Sessions that a person began, the last used first, and the cursor of the next page."""
    from crow.storage import SessionInfo

    before = int(cursor) if cursor else None
    rows = connection.execute(
        "SELECT id, cwd, title, updated, messages, archived, touched FROM sessions"
        " WHERE parent IS NULL AND (?1 IS NULL OR cwd = ?1) AND (?2 IS NULL OR touched < ?2)"
        " AND (?4 IS NULL OR archived = ?4) ORDER BY touched DESC LIMIT ?3",
        (cwd, before, limit + 1, archived),
    ).fetchall()
    infos = [SessionInfo(*row[:5], archived=bool(row[5])) for row in rows[:limit]]
    return infos, str(rows[limit - 1][6]) if len(rows) > limit else None


def copy_session(
    connection: Connection,
    session_id: str,
    new_id: str,
    tail: Sequence[Row],
    before: int | None = None,
) -> bool:
    """Copy a session with all its segments; False where there is none of that id.

    ``tail`` are rows that a process that was killed had not written yet. With ``before`` the copy
    ends in front of the row of that number, which is there.
    """
    stored = find_session(connection, session_id)
    if stored is None:
        return False
    columns = [name for name in stored if name not in ("key", "states")]
    changed: Stored = {"id": new_id, "created": now(), "updated": now(), "touched": 0}
    changed |= {"forked_from": session_id, "parent": None, "archived": 0}
    names = ", ".join(columns)
    values = ", ".join("?" if name in changed else name for name in columns)
    key = connection.execute(
        f"INSERT INTO sessions ({names}) SELECT {values} FROM sessions WHERE key = ?"  # noqa: S608
        " RETURNING key",
        (*(changed[name] for name in columns if name in changed), stored["key"]),
    ).get
    touch(connection, key)
    connection.execute(
        "INSERT INTO log (session, seq, segment, kind, at, data)"
        " SELECT ?, seq, segment, kind, at, data FROM log WHERE session = ? ORDER BY seq",
        (key, stored["key"]),
    )
    insert(connection, key, tail)
    if before is not None:
        _cut(connection, key, before)
    connection.execute(
        "INSERT INTO states (session, name, data) SELECT ?, name, data FROM states"
        " WHERE session = ?",
        (key, stored["key"]),
    )
    return True


def add_session(connection: Connection, session_id: str, head: Stored, rows: Sequence[Row]) -> bool:
    """Store a session that came about elsewhere; False where one of that id is there."""
    if is_there(connection, session_id):
        return False
    texts = {name: str(head.get(name) or "") for name in ("cwd", "title", "created", "updated")}
    states: dict[str, Any] = head.get("state") or {}
    numbers = {name: int(head.get(name) or 0) for name in ("segment", "start", "messages")}
    fields: Stored = {"id": session_id, "touched": 0, "mode": "default", "agent_type": ""}
    fields |= texts | numbers | {"model": None, "parent": None, "forked_from": None, "archived": 0}
    fields |= {"directories": "[]", "options": "{}", "usage": dump(head.get("usage") or {})}
    names, marks = ", ".join(fields), ", ".join("?" * len(fields))
    sql = f"INSERT INTO sessions ({names}) VALUES ({marks}) RETURNING key"  # noqa: S608
    key = connection.execute(sql, (*fields.values(),)).get
    touch(connection, key)
    insert(connection, key, rows)
    connection.executemany(
        "INSERT INTO states (session, name, data) VALUES (?, ?, ?)",
        [(key, name, dump(state)) for name, state in states.items()],
    )
    return True


def _cut(connection: Connection, key: int, before: int) -> None:
    """Let a session end in front of a row; what it has used from then on is counted anew."""
    found = "SELECT 1 FROM log WHERE session = ? AND seq = ?"
    if connection.execute(found, (key, before)).get is None:
        raise SessionError(f"the session has no point {before}")
    connection.execute("DELETE FROM log WHERE session = ? AND seq > ?", (key, before))
    connection.execute(
        "UPDATE sessions SET usage = '{}', (segment, start) = ("
        "  SELECT segment, min(seq) FROM log WHERE session = ?1"
        "  AND segment = (SELECT segment FROM log WHERE session = ?1 AND seq = ?2)"
        "  GROUP BY segment"
        ") WHERE key = ?1",
        (key, before),
    )
    connection.execute("DELETE FROM log WHERE session = ? AND seq = ?", (key, before))
    connection.execute(
        "UPDATE sessions SET messages = (SELECT count(*) FROM log"
        " WHERE session = ?1 AND kind IN ('message', 'answer')) WHERE key = ?1",
        (key,),
    )
    connection.execute("UPDATE sessions SET title = '' WHERE key = ? AND messages = 0", (key,))


def rename_session(connection: Connection, session_id: str, title: str) -> bool:
    """Give a session a title; False where there is none of that id."""
    connection.execute(
        "UPDATE sessions SET title = ?, updated = ? WHERE id = ?", (title, now(), session_id)
    )
    return connection.changes() > 0


def archive_session(connection: Connection, session_id: str, *, archived: bool) -> bool:
    """Put a session away, or back; False where there is none of that id."""
    connection.execute("UPDATE sessions SET archived = ? WHERE id = ?", (archived, session_id))
    return connection.changes() > 0


def is_there(connection: Connection, session_id: str) -> bool:
    """True where there is a session of that id."""
    found = connection.execute("SELECT 1 FROM sessions WHERE id = ?", (session_id,)).get
    return found is not None


def whole_session(connection: Connection, session_id: str) -> tuple[Stored, list[Entry]] | None:
    """A session's row and all rows of its log; None where there is none of that id."""
    stored = find_session(connection, session_id)
    return None if stored is None else (stored, stored_entries(connection, stored["key"]))


def remove_session(connection: Connection, session_id: str) -> bool:
    """Take a session away with its log; False where there is none of that id."""
    connection.execute("DELETE FROM sessions WHERE id = ?", (session_id,))
    return connection.changes() > 0


def mark_damaged(connection: Connection, session_id: str, seqs: list[int]) -> None:
    """Mark rows that could not be read, so that they are passed over and still there to look at."""
    connection.executemany(
        "UPDATE log SET kind = 'damaged ' || kind"
        " WHERE session = (SELECT key FROM sessions WHERE id = ?) AND seq = ?",
        [(session_id, seq) for seq in seqs],
    )


def export_session(connection: Connection, session_id: str, tail: Sequence[Row]) -> str | None:
    """A session as JSON Lines: itself first, then its rows in order; None where there is none."""
    stored = find_session(connection, session_id)
    if stored is None:
        return None
    return "".join(f"{line}\n" for line in _lines(connection, stored, tail))


def _lines(connection: Connection, stored: Stored, tail: Sequence[Row]) -> Iterator[str]:
    head = {name: value for name, value in stored.items() if name not in ("key", "touched")}
    states = {name: lenient(text, {}) for name, text in head.pop("states").items()}
    yield dump({"kind": "session", **head, "state": states})
    rows = connection.execute(
        "SELECT seq, segment, kind, at, data FROM log WHERE session = ? ORDER BY seq",
        (stored["key"],),
    )
    written = {int(row[0]): row for row in rows}
    late = {r.seq: (r.seq, r.segment, r.kind, r.at, r.data) for r in tail}
    for _, (seq, segment, kind, at, data) in sorted((late | written).items()):
        value = lenient(str(data), {}) or data
        yield dump({"seq": seq, "segment": segment, "kind": kind, "at": at, "data": value})
