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

SCHEDULES = """
DROP TABLE fleet_pace;
CREATE TABLE fleet_pace (
    provider text NOT NULL,
    key text NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (provider, key)
);
CREATE TABLE fleet_schedules (
    name text PRIMARY KEY,
    cron text NOT NULL,
    zone text NOT NULL,
    tasks jsonb NOT NULL,
    budget double precision,
    overlap boolean NOT NULL,
    catch_up boolean NOT NULL,
    paused boolean NOT NULL DEFAULT false,
    due timestamptz,
    created timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE fleet_ticks (
    schedule text NOT NULL REFERENCES fleet_schedules (name) ON DELETE CASCADE,
    tick timestamptz NOT NULL,
    outcome text NOT NULL,
    batch text,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (schedule, tick)
);
"""
WEBHOOKS = """
ALTER TABLE fleet_batches
    ADD COLUMN told_finished boolean NOT NULL DEFAULT false,
    ADD COLUMN told_spent boolean NOT NULL DEFAULT false;
CREATE TABLE fleet_webhooks (
    url text PRIMARY KEY,
    secret text NOT NULL,
    created timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE fleet_deliveries (
    id text PRIMARY KEY DEFAULT 'msg_' || replace(gen_random_uuid()::text, '-', ''),
    url text NOT NULL REFERENCES fleet_webhooks (url) ON DELETE CASCADE,
    type text NOT NULL,
    data jsonb NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    tries int NOT NULL DEFAULT 0,
    due timestamptz DEFAULT clock_timestamp(),
    said text NOT NULL DEFAULT ''
);
CREATE INDEX fleet_deliveries_due ON fleet_deliveries (due) WHERE due IS NOT NULL;
"""

MOVES = """
ALTER TABLE fleet_moves ADD COLUMN since int NOT NULL DEFAULT 0, ADD COLUMN until int,
    ADD COLUMN ended timestamptz, ADD COLUMN how text NOT NULL DEFAULT '';
"""

MIGRATIONS: tuple[str, ...] = (BEGINNING, SCHEDULES, WEBHOOKS, MOVES)
"""Step n makes version n + 1 of version n; a step that was released is never changed."""

LOCK = 0x63726F78
"""The advisory lock that one migration at a time holds."""
