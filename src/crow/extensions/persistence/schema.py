"""The tables, as the steps that lead to them: a database of any older version takes the rest."""

from __future__ import annotations

APPLICATION_ID = 0x63726F77

BEGINNING = """
CREATE TABLE sessions (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    cwd TEXT NOT NULL,
    directories TEXT NOT NULL,
    title TEXT NOT NULL,
    created TEXT NOT NULL,
    updated TEXT NOT NULL,
    touched INTEGER NOT NULL,
    model TEXT,
    mode TEXT NOT NULL,
    options TEXT NOT NULL,
    usage TEXT NOT NULL,
    parent TEXT,
    agent_type TEXT NOT NULL,
    forked_from TEXT,
    segment INTEGER NOT NULL,
    start INTEGER NOT NULL,
    messages INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_touched ON sessions (touched);
CREATE TABLE log (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    kind TEXT NOT NULL,
    at REAL NOT NULL,
    data TEXT NOT NULL,
    UNIQUE (session, seq)
) STRICT;
CREATE TABLE states (
    session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    name TEXT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (session, name)
) STRICT, WITHOUT ROWID;
"""

SEARCH = """
CREATE VIRTUAL TABLE words USING fts5 (
    text, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);
CREATE TABLE marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO marks VALUES ('indexed', 0);
"""

ARCHIVED = "ALTER TABLE sessions ADD COLUMN archived INTEGER NOT NULL DEFAULT 0"

MIGRATIONS: tuple[str, ...] = (BEGINNING, SEARCH, ARCHIVED)
"""Step n makes version n + 1 of version n; a step that was released is never changed."""
