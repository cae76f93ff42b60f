"""The store of contents and changes: one SQLite file, which nobody but the user can read.

A content is kept once, by its hash. What is written is there together or not at all, whenever the
process dies; a power cut can take the last seconds of it, never the file.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crow.dataclasses import frozen
from crow.extensions.rewind.path_state import PathState, Stamp

SCHEMA = """
CREATE TABLE IF NOT EXISTS blobs (hash TEXT PRIMARY KEY, data BLOB NOT NULL, at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS changes (id INTEGER PRIMARY KEY, session TEXT NOT NULL,
  at REAL NOT NULL, rewind TEXT NOT NULL, path BLOB NOT NULL, before BLOB NOT NULL,
  after BLOB NOT NULL, old TEXT, new TEXT);
CREATE INDEX IF NOT EXISTS changes_of ON changes (session, at);
CREATE TABLE IF NOT EXISTS pending (id INTEGER PRIMARY KEY, session TEXT NOT NULL,
  at REAL NOT NULL, path BLOB NOT NULL, before BLOB NOT NULL, old TEXT);
CREATE TABLE IF NOT EXISTS stamps (path BLOB PRIMARY KEY, stamp TEXT NOT NULL, hash TEXT NOT NULL,
  at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tidied (at REAL NOT NULL);
"""
UNUSED = (
    "DELETE FROM blobs WHERE at < ? AND hash NOT IN (SELECT hash FROM stamps)"
    " AND hash NOT IN (SELECT old FROM changes WHERE old IS NOT NULL)"
    " AND hash NOT IN (SELECT new FROM changes WHERE new IS NOT NULL)"
    " AND hash NOT IN (SELECT old FROM pending WHERE old IS NOT NULL)"
)
USED = (
    "SELECT (page_count - freelist_count) * page_size"
    " FROM pragma_page_count, pragma_freelist_count, pragma_page_size"
)
PATIENCE = 5000
DAY = 86_400.0
HOUR = 3600.0


@frozen
class Change:
    """A change of a path. ``rewind`` names the rewind that did it, empty for a tool call."""

    session: str
    at: float
    path: str
    before: PathState
    after: PathState
    rewind: str = ""
    id: int = 0


def packed(shape: PathState) -> bytes:
    """A shape as it is stored; names need not be UTF-8."""
    return shape.as_text().encode("utf-8", "surrogateescape")


def unpacked(data: bytes) -> PathState:
    """A shape that was stored."""
    return PathState.of_text(data.decode("utf-8", "surrogateescape"))


def mark_of(shape: PathState) -> str | None:
    """The hash of a file's content, where that is kept."""
    return shape.mark or None if shape.kind == "file" else None


class Store:
    """The file, opened when it is first needed. Raises ``OSError`` where it cannot be used."""

    def __init__(self, path: Path, *, days: float, most: int) -> None:
        self.path = path
        self.days = days
        self.most = most
        self._lock = threading.RLock()
        self._opened: Any = None

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    def _connection(self) -> Any:
        if self._opened is None:
            import apsw

            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            opened: Any = apsw.Connection(str(self.path))
            opened.set_busy_timeout(PATIENCE)
            opened.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL").fetchall()
            opened.execute(SCHEMA)
            opened.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # who leaves waits for no disk
            self._opened = opened
            self._tidy(opened)
        return self._opened

    def _do(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        import apsw

        with self._lock:
            try:
                return self._connection().execute(sql, tuple(values)).fetchall()
            except apsw.Error as error:
                raise OSError(f"{self.path}: {error}") from error

    def _together(self, wanted: Iterable[tuple[str, Sequence[Any]]]) -> None:
        """Do all of this, or nothing of it."""
        import apsw

        with self._lock:
            try:
                connection = self._connection()
                with _transaction(connection):
                    for sql, values in wanted:
                        connection.execute(sql, tuple(values))
            except apsw.Error as error:
                raise OSError(f"{self.path}: {error}") from error

    # contents

    def read(self, mark: str) -> bytes | None:
        """A content by its hash; None where it is no longer kept, or is damaged."""
        import hashlib

        rows = self._do("SELECT data FROM blobs WHERE hash = ?", (mark,))
        data = rows[0][0] if rows else None
        return data if data is not None and hashlib.sha256(data).hexdigest() == mark else None

    def has(self, mark: str) -> bool:
        """True where a content is kept."""
        return bool(self._do("SELECT 1 FROM blobs WHERE hash = ?", (mark,)))

    @property
    def is_full(self) -> bool:
        """True where nothing more is to be kept."""
        return self._do(USED)[0][0] > self.most

    def keep(self, contents: Mapping[str, bytes], stamps: Mapping[str, tuple[Stamp, str]]) -> None:
        """Keep contents by their hash, and by which stamps of paths they are known."""
        now = time.time()
        blobs = (
            ("INSERT INTO blobs VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET at = ?3",
             (mark, data, now))
            for mark, data in contents.items()
        )  # fmt: skip
        known = (
            ("INSERT OR REPLACE INTO stamps VALUES (?, ?, ?, ?)",
             (os.fsencode(path), " ".join(map(str, what)), mark, now))
            for path, (what, mark) in stamps.items()
        )  # fmt: skip
        self._together([*blobs, *known])

    def known_below(self, root: str) -> dict[str, tuple[Stamp, str]]:
        """Paths in a folder with the stamp that they had, and the hash of what was in them then."""
        low, high = (
            os.fsencode(root.rstrip(os.sep) + os.sep),
            os.fsencode(root.rstrip(os.sep) + "0"),
        )
        self._do("UPDATE stamps SET at = ? WHERE path > ? AND path < ?", (time.time(), low, high))
        rows = self._do("SELECT path, stamp, hash FROM stamps WHERE path > ? AND path < ?",
                        (low, high))  # fmt: skip
        return {
            os.fsdecode(path): (tuple(map(int, what.split())), mark) for path, what, mark in rows
        }

    # changes

    def begin(self, session: str, at: float, paths: Mapping[str, PathState]) -> list[int]:
        """Write down that these paths are about to change; the empty path is any path."""
        first = self._do("SELECT coalesce(max(id), 0) FROM pending")[0][0]
        sql = "INSERT INTO pending (session, at, path, before, old) VALUES (?, ?, ?, ?, ?)"
        self._together(
            (sql, (session, at, os.fsencode(path), packed(before), mark_of(before)))
            for path, before in paths.items()
        )
        rows = self._do(
            "SELECT id FROM pending WHERE id > ? AND session = ? AND at = ?", (first, session, at)
        )
        return [row[0] for row in rows]

    def end(self, pending: Iterable[int], changes: Iterable[Change]) -> None:
        """Write down what came of it."""
        done = (("DELETE FROM pending WHERE id = ?", (each,)) for each in pending)
        sql = (
            "INSERT INTO changes (session, at, rewind, path, before, after, old, new)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        )
        made = (
            (sql, (each.session, each.at, each.rewind, os.fsencode(each.path), packed(each.before),
                   packed(each.after), mark_of(each.before), mark_of(each.after)))
            for each in changes
        )  # fmt: skip
        if wanted := [*made, *done]:
            self._together(wanted)

    def changes(self, sessions: Sequence[str], since: float) -> list[Change]:
        """What some sessions changed since a time, in order."""
        marks = ",".join("?" * len(sessions))
        rows = self._do(
            "SELECT session, at, path, before, after, rewind, id FROM changes"  # noqa: S608
            f" WHERE session IN ({marks}) AND at >= ? ORDER BY id",
            (*sessions, since),
        )
        return [_change(*row) for row in rows]

    def pending(self, sessions: Sequence[str], since: float) -> list[tuple[float, str, PathState]]:
        """What was about to change, and whose end nobody saw: time, path, what was there."""
        marks = ",".join("?" * len(sessions))
        rows = self._do(
            f"SELECT at, path, before FROM pending WHERE session IN ({marks}) AND at >= ?"  # noqa: S608
            " ORDER BY id",
            (*sessions, since),
        )
        return [(at, os.fsdecode(path), unpacked(before)) for at, path, before in rows]

    def drop(self, session: str, rewind: str, path: str) -> None:
        """Forget a step of a rewind that was not done."""
        which = "session = ? AND rewind = ? AND path = ?"
        self._do(f"DELETE FROM changes WHERE {which}", (session, rewind, os.fsencode(path)))  # noqa: S608

    def forget(self, session: str) -> None:
        """Remove what is kept of a session."""
        self._together([
            ("DELETE FROM changes WHERE session = ?", (session,)),
            ("DELETE FROM pending WHERE session = ?", (session,)),
            (UNUSED, (time.time() - HOUR,)),
        ])  # fmt: skip

    def _tidy(self, connection: Any) -> None:
        """Once a day, remove what is too old, and more where there is too much."""
        now = time.time()
        last = connection.execute("SELECT max(at) FROM tidied").fetchall()[0][0]
        if last is not None and now - last < DAY:
            return
        with _transaction(connection):
            connection.execute("DELETE FROM tidied; INSERT INTO tidied VALUES (?)", (now,))
            old = now - self.days * DAY
            for table in ("changes", "pending", "stamps"):
                connection.execute(f"DELETE FROM {table} WHERE at < ?", (old,))  # noqa: S608
            connection.execute(UNUSED, (now - HOUR,))
        self._shrink(connection, now)

    def _shrink(self, connection: Any, now: float) -> None:
        """Where the file is too large still, remove what can be read again, then the oldest."""
        if connection.execute(USED).fetchall()[0][0] > self.most // 2:
            connection.execute("DELETE FROM stamps WHERE at < ?", (now - DAY,))
            connection.execute(UNUSED, (now - HOUR,))
        while connection.execute(USED).fetchall()[0][0] > self.most // 2:
            oldest = "SELECT id FROM changes WHERE at < ? ORDER BY id LIMIT 1000"
            connection.execute(f"DELETE FROM changes WHERE id IN ({oldest})", (now - DAY,))  # noqa: S608
            if not connection.changes():
                break
            connection.execute(UNUSED, (now - HOUR,))
        free = connection.execute("PRAGMA freelist_count").fetchall()[0][0]
        if free > 10_000:
            connection.execute("VACUUM")


def _change(session: str, at: float, path: bytes, *rest: Any) -> Change:
    before, after, rewind, number = rest
    return Change(session, at, os.fsdecode(path), unpacked(before), unpacked(after), rewind, number)


@contextmanager
def _transaction(connection: Any) -> Generator[None]:
    """All of it or nothing; a full disk has taken all of it back by itself."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
