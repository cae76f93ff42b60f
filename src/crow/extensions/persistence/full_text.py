"""Full-text search over what people and models said, indexed when nobody waits for it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from crow.dataclasses import frozen
from crow.extensions.persistence.filters import matches, split
from crow.messages import is_prompt, text_of
from crow.storage import SessionInfo

if TYPE_CHECKING:
    from crow.extensions.persistence.backend import Backend, Hit
    from crow.extensions.persistence.sql import Connection

BATCH = 1000
AROUND = 60
MOST = 1000
"""Sessions with the words of a search that are looked at for what else it wants."""


@frozen
class Found:
    """A session that a text was found in. ``snippet`` is the place, ``seq`` its record's number.

    ``seq`` is None where the title alone has it.
    """

    session: SessionInfo
    snippet: str
    seq: int | None = None


def index(connection: Connection) -> bool:
    """Index a part of what is not indexed yet; True where more is left."""
    rows = connection.execute(
        "SELECT id, kind, data FROM log"
        " WHERE id > (SELECT value FROM marks WHERE name = 'indexed') ORDER BY id LIMIT ?",
        (BATCH,),
    ).fetchall()
    if rows:
        connection.executemany(
            "INSERT OR REPLACE INTO words (rowid, text) VALUES (?, ?)",
            [(key, text) for key, kind, data in rows if (text := spoken(kind, data))],
        )
        connection.execute("UPDATE marks SET value = ? WHERE name = 'indexed'", (rows[-1][0],))
    return len(rows) == BATCH


def spoken(kind: str, data: str) -> str:
    """What a person or a model said in a record; empty for tools and injected context."""
    if kind not in ("message", "said"):
        return ""
    try:
        text = _said(kind, json.loads(data))
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""
    return text.encode(errors="replace").decode()  # half a surrogate pair cannot be indexed


def _said(kind: str, value: Any) -> str:
    if kind == "said":
        asked = text_of(value.get("prompt", {}).get("content"))
        return f"{asked}\n{value.get('text', '')}".strip()
    return text_of(value["content"]) if value["role"] == "assistant" or is_prompt(value) else ""


def search(
    connection: Connection, place: Backend, text: str, cwd: str | None = None, limit: int = 20
) -> list[Found]:
    """The sessions where every word of a text was said in one message, the best first.

    `crow.extensions.persistence.filters` says what else can be wanted: ``tool:Bash is:denied``.
    """
    wanted, text = split(text.replace("\0", " ").encode(errors="replace").decode())
    if not wanted:
        return _said_in(connection, place, text, cwd, limit)
    fitting = matches(connection, wanted, cwd)
    if not text:
        return [Found(*each) for each in fitting.values()][:limit]
    said = _said_in(connection, place, text, cwd, MOST)
    return [each for each in said if each.session.id in fitting][:limit]


def _said_in(
    connection: Connection, place: Backend, text: str, cwd: str | None, limit: int
) -> list[Found]:
    words = text.split()
    if not words:
        return []
    found: dict[str, Found] = {}
    for session, seq, kind, data in place.hits(connection, words, cwd, limit * 10):
        found.setdefault(session.id, Found(session, snippet(spoken(kind, data), words), seq))
    for session in _titles(connection, text, cwd, limit):
        found.setdefault(session.id, Found(session, session.title))
    return list(found.values())[:limit]


def hits(connection: Connection, words: list[str], cwd: str | None, limit: int) -> list[Hit]:
    """The records in which all words were said, by SQLite's index, the best first."""
    quoted = " ".join('"' + word.replace('"', '""') + '"' for word in words)
    rows = connection.execute(
        "SELECT s.id, s.cwd, s.title, s.updated, s.messages, s.archived,"
        " log.seq, log.kind, log.data"
        " FROM words JOIN log ON log.id = words.rowid JOIN sessions s ON s.key = log.session"
        " WHERE words MATCH ?1 AND (?2 IS NULL OR s.cwd = ?2) ORDER BY words.rank LIMIT ?3",
        (f"{quoted}*", cwd, limit),
    )
    return [(info(row), *row[6:]) for row in rows]


def _titles(connection: Connection, text: str, cwd: str | None, limit: int) -> list[SessionInfo]:
    rows = connection.execute(
        "SELECT id, cwd, title, updated, messages, archived FROM sessions"
        " WHERE instr(lower(title), lower(?1)) > 0 AND (?2 IS NULL OR cwd = ?2)"
        " ORDER BY touched DESC LIMIT ?3",
        (text.strip(), cwd, limit),
    )
    return list(map(info, rows))


def info(row: Any) -> SessionInfo:
    """A session of its columns id, cwd, title, updated, messages, archived."""
    return SessionInfo(*row[:5], archived=bool(row[5]))


def snippet(text: str, words: list[str]) -> str:
    """The part of a text around the first of the words, in one line."""
    line = " ".join(text.split())
    at = max(line.casefold().find(words[0].casefold()), 0)
    start, end = max(at - AROUND, 0), at + AROUND
    return f"{'…' if start else ''}{line[start:end]}{'…' if end < len(line) else ''}"


def forget(connection: Connection, session_id: str) -> None:
    """Take a session's words away."""
    connection.execute(
        "DELETE FROM words WHERE rowid IN (SELECT log.id FROM log"
        " JOIN sessions ON sessions.key = log.session WHERE sessions.id = ?)",
        (session_id,),
    )


def look_again(connection: Connection) -> None:
    """Index numbers that were freed at the end of the log, once they are given again."""
    connection.execute(
        "UPDATE marks SET value = min(value, coalesce((SELECT max(id) FROM log), 0))"
        " WHERE name = 'indexed'"
    )
