"""A damaged database: moved aside, and what can be read of it brought over into a new one."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from crow.extensions.persistence.sql import Connection, Value

Connect = Callable[[str, int], Connection]
SECONDS = 10.0


def salvaged(damaged: Path, target: Connection, connect: Connect) -> int:
    """How many sessions of a damaged file could be brought over."""
    import apsw

    try:
        source = connect(str(damaged), apsw.SQLITE_OPEN_READONLY)
    except apsw.Error:
        return 0
    try:
        return salvage(source, target)
    finally:
        source.close()


def salvage(source: Connection, target: Connection) -> int:
    """Copy the sessions that are whole; how many. Those that are not stay where they are."""
    deadline = time.monotonic() + SECONDS
    saved = 0
    for key in _keys(source):
        saved += time.monotonic() < deadline and _copied(source, target, key)
    return saved


def _keys(source: Connection) -> list[int]:
    """The keys of the sessions whose rows can be found."""
    import apsw

    keys: list[int] = []
    try:
        for (key,) in source.execute("SELECT key FROM sessions NOT INDEXED ORDER BY key"):
            keys.append(key)
    except apsw.Error:
        pass
    return keys


def _copied(source: Connection, target: Connection, key: int) -> bool:
    """Copy one session, or nothing of it: a record between two others may not be missing."""
    import apsw

    target.execute("BEGIN IMMEDIATE")
    try:
        _copy_rows(source, target, "sessions", f"WHERE key = {key}")
        seqs = _copy_rows(source, target, "log", f"WHERE session = {key} ORDER BY seq")
        _copy_rows(source, target, "states", f"WHERE session = {key}")
        if seqs != list(range(len(seqs))):
            raise apsw.CorruptError
        target.execute("COMMIT")
    except apsw.Error:
        target.execute("ROLLBACK")
        return False
    return True


def _copy_rows(source: Connection, target: Connection, table: str, where: str) -> list[Value]:
    """Copy rows as they are, but for their numbers in the log; their seqs, where they have any."""
    cursor = source.execute(f"SELECT * FROM {table} {where}")  # noqa: S608
    first = cursor.fetchone()
    if first is None:
        return []
    names = [column[0] for column in cursor.get_description()]
    kept = [index for index, name in enumerate(names) if (table, name) != ("log", "id")]
    rows = [[row[index] for index in kept] for row in (first, *cursor)]
    named, marks = ", ".join(names[index] for index in kept), ", ".join("?" * len(kept))
    target.executemany(f"INSERT INTO {table} ({named}) VALUES ({marks})", rows)  # noqa: S608
    return [row[names.index("seq") - 1] for row in rows] if table == "log" else []


def move_aside(path: Path) -> Path:
    """Give a database another name, with its log; the new name."""
    aside = free_name(path, "damaged")
    for suffix in ("-wal", "-shm", ""):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.rename(aside.with_name(aside.name + suffix))
    return aside


def free_name(path: Path, word: str) -> Path:
    """A name beside a file that nothing has: ``crow.db.damaged``, ``crow.db.damaged-2``."""
    number, name = 1, path.with_name(f"{path.name}.{word}")
    while name.exists():
        number += 1
        name = path.with_name(f"{path.name}.{word}-{number}")
    return name
