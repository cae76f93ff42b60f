"""The tables in PostgreSQL, as the steps that lead to them.

What was said is indexed by the database itself, as `words.spoken` reads a record and as SQLite's
``unicode61`` takes a text apart: letters and digits, without case and accents.
"""

from __future__ import annotations

BEGINNING = r"""
CREATE TABLE sessions (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    cwd text NOT NULL,
    directories text NOT NULL,
    title text NOT NULL,
    created text NOT NULL,
    updated text NOT NULL,
    touched bigint NOT NULL,
    model text,
    mode text NOT NULL,
    options text NOT NULL,
    usage text NOT NULL,
    parent text,
    agent_type text NOT NULL,
    forked_from text,
    segment bigint NOT NULL,
    start bigint NOT NULL,
    messages bigint NOT NULL,
    archived bigint NOT NULL DEFAULT 0
);
CREATE INDEX sessions_touched ON sessions (touched);
CREATE INDEX sessions_forked ON sessions (forked_from) WHERE forked_from IS NOT NULL;
CREATE SEQUENCE touches OWNED BY sessions.touched;
CREATE FUNCTION touched() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.touched := nextval(format('%I.touches', TG_TABLE_SCHEMA)::regclass);
    RETURN NEW;
END $$;
CREATE TRIGGER touched BEFORE UPDATE OF touched ON sessions
    FOR EACH ROW EXECUTE FUNCTION touched();

CREATE TABLE log (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session bigint NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    seq bigint NOT NULL,
    segment bigint NOT NULL,
    kind text NOT NULL,
    at double precision NOT NULL,
    data text NOT NULL,
    words tsvector,
    UNIQUE (session, seq)
);
CREATE INDEX log_words ON log USING gin (words) WHERE words IS NOT NULL;
CREATE FUNCTION plain(spoken text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT regexp_replace(
        regexp_replace(lower(normalize(left(spoken, 200000), NFKD)), '[\u0300-\u036f]+', '', 'g'),
        '[^[:alnum:]]+', ' ', 'g'
    )
$$;
CREATE FUNCTION text_of(content jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE jsonb_typeof(content)
        WHEN 'string' THEN content #>> '{}'
        WHEN 'array' THEN (
            SELECT coalesce(string_agg(part ->> 'text', '' ORDER BY place), '')
            FROM jsonb_array_elements(content) WITH ORDINALITY AS parts (part, place)
            WHERE part ->> 'type' = 'text'
        )
        ELSE '' END
$$;
CREATE FUNCTION spoken() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    value jsonb;
    said text;
BEGIN
    value := replace(replace(NEW.data, '\\', '\u005c'), '\u0000', ' ')::jsonb;
    IF NEW.kind = 'said' THEN
        said := concat_ws(E'\n', text_of(value #> '{prompt,content}'), value ->> 'text');
    ELSIF value ->> 'role' IN ('user', 'assistant') THEN
        said := text_of(value -> 'content');
        IF value ->> 'role' = 'user' AND starts_with(said, '<crow-context') THEN
            said := NULL;
        END IF;
    END IF;
    NEW.words := to_tsvector('pg_catalog.simple', plain(said));
    RETURN NEW;
EXCEPTION WHEN others THEN
    RETURN NEW;
END $$;
CREATE TRIGGER spoken BEFORE INSERT ON log
    FOR EACH ROW WHEN (NEW.kind IN ('message', 'said')) EXECUTE FUNCTION spoken();

CREATE TABLE states (
    session bigint NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    name text NOT NULL,
    data text NOT NULL,
    PRIMARY KEY (session, name)
);
CREATE TABLE leases (
    session text PRIMARY KEY,
    epoch bigint NOT NULL,
    owner text NOT NULL,
    who text NOT NULL,
    until timestamptz NOT NULL
);
CREATE TABLE pieces (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session text NOT NULL,
    lines text NOT NULL
);
CREATE INDEX pieces_session ON pieces (session);
"""

ADDRESSES = "ALTER TABLE leases ADD COLUMN address text NOT NULL DEFAULT ''"

MIGRATIONS: tuple[str, ...] = (BEGINNING, ADDRESSES)
"""Step n makes version n + 1 of version n; a step that was released is never changed."""

LOCK = 0x63726F77
"""The advisory lock that one migration at a time holds."""
