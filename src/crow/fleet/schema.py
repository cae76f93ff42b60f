"""The fleet's tables, as the steps that lead to them; they lie beside those of the sessions."""

from __future__ import annotations

BEGINNING = """
CREATE TABLE fleet_batches (
    name text PRIMARY KEY,
    created timestamptz NOT NULL DEFAULT clock_timestamp(),
    budget double precision
);
CREATE TABLE fleet_jobs (
    id text PRIMARY KEY,
    key text NOT NULL UNIQUE,
    batch text NOT NULL REFERENCES fleet_batches (name) ON DELETE CASCADE,
    state text NOT NULL DEFAULT 'queued',
    priority int NOT NULL,
    labels jsonb NOT NULL,
    task jsonb NOT NULL,
    epoch bigint NOT NULL DEFAULT 0,
    offered timestamptz,
    engine_row bigint,
    who text NOT NULL DEFAULT '',
    cancel boolean NOT NULL DEFAULT false,
    tries int NOT NULL DEFAULT 0,
    question jsonb,
    answers jsonb NOT NULL DEFAULT '[]',
    patch bytea,
    turns int NOT NULL DEFAULT 0,
    cost double precision NOT NULL DEFAULT 0,
    outcome jsonb,
    created timestamptz NOT NULL DEFAULT clock_timestamp(),
    started timestamptz,
    ended timestamptz
);
CREATE INDEX fleet_jobs_batch ON fleet_jobs (batch, state);
CREATE INDEX fleet_jobs_unoffered ON fleet_jobs (priority DESC, created)
    WHERE state = 'queued' AND offered IS NULL;
CREATE INDEX fleet_jobs_offered ON fleet_jobs (offered) WHERE state = 'queued';
CREATE TABLE fleet_moves (
    job text NOT NULL REFERENCES fleet_jobs (id) ON DELETE CASCADE,
    epoch bigint NOT NULL,
    who text NOT NULL,
    began timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (job, epoch)
);
CREATE TABLE fleet_leases (
    job text PRIMARY KEY,
    epoch bigint NOT NULL,
    until timestamptz NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE fleet_pace (
    provider text PRIMARY KEY,
    until timestamptz NOT NULL
);
CREATE TABLE fleet_workers (
    who text PRIMARY KEY,
    places int NOT NULL,
    running int NOT NULL,
    drain boolean NOT NULL DEFAULT false,
    seen timestamptz NOT NULL
);
"""

MOVES = """
ALTER TABLE fleet_moves ADD COLUMN since int NOT NULL DEFAULT 0, ADD COLUMN until int,
    ADD COLUMN ended timestamptz, ADD COLUMN how text NOT NULL DEFAULT '';
"""

MIGRATIONS: tuple[str, ...] = (BEGINNING, MOVES)
"""Step n makes version n + 1 of version n; a step that was released is never changed."""

LOCK = 0x63726F78
"""The advisory lock that one migration at a time holds."""
