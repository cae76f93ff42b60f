"""Statements of SQL for the board, where they are longer than a line."""

from __future__ import annotations

CLAIM = """
WITH taken AS (
    UPDATE fleet_jobs SET epoch = epoch + 1, state = 'running', who = %(who)s, tries = tries + 1,
        question = NULL, started = coalesce(started, clock_timestamp())
    WHERE id = %(job)s AND epoch = %(epoch)s AND state = 'queued' AND NOT cancel
    RETURNING id, batch, epoch, task, tries, answers, patch, cost, turns
), leased AS (
    INSERT INTO fleet_leases SELECT id, epoch, clock_timestamp() + %(lease)s * interval '1 second'
    FROM taken ON CONFLICT (job) DO UPDATE SET epoch = excluded.epoch, until = excluded.until
), moved AS (
    INSERT INTO fleet_moves (job, epoch, who, since)
    SELECT id, epoch, %(who)s, turns FROM taken
)
SELECT * FROM taken
"""
SUBMIT = """
INSERT INTO fleet_jobs (id, key, batch, priority, labels, task)
SELECT id, key, %s, priority, labels, task FROM jsonb_to_recordset(%s::jsonb)
    AS given (id text, key text, priority int, labels jsonb, task jsonb)
ON CONFLICT (key) DO NOTHING
"""
OFFERED = """
UPDATE fleet_jobs j SET offered = clock_timestamp(), engine_row = given.number
FROM jsonb_to_recordset(%s::jsonb) AS given (id text, number bigint) WHERE j.id = given.id
"""
COME_BY = """
INSERT INTO fleet_workers VALUES (%s, %s, %s, false, clock_timestamp())
ON CONFLICT (who) DO UPDATE SET running = excluded.running, seen = excluded.seen
RETURNING drain, (
    SELECT jsonb_agg(
        jsonb_build_array(provider, key, extract(epoch FROM until - clock_timestamp()))
    )
    FROM fleet_pace WHERE until > clock_timestamp()
) AS paces
"""
OVERSPENT = """
UPDATE fleet_jobs j SET state = 'stopped', ended = clock_timestamp(),
    outcome = jsonb_build_object('detail', 'the budget of the batch is spent')
FROM fleet_batches b WHERE b.name = j.batch AND j.id = %s AND j.state = 'queued'
    AND b.budget IS NOT NULL
    AND (SELECT sum(cost) FROM fleet_jobs s WHERE s.batch = b.name) >= b.budget
RETURNING 1
"""
RESCUE = """
WITH dead AS (
    SELECT l.job, l.epoch FROM fleet_leases l
    WHERE l.until < clock_timestamp() AND (
        l.until > pg_postmaster_start_time()
        OR clock_timestamp() > pg_postmaster_start_time() + %(lease)s * interval '1 second'
    )
    ORDER BY l.until FOR UPDATE SKIP LOCKED LIMIT %(most)s
), gone AS (
    DELETE FROM fleet_leases l USING dead WHERE l.job = dead.job
), moved AS (
    UPDATE fleet_moves m SET how = 'lost', ended = clock_timestamp(), until = j.turns
    FROM dead JOIN fleet_jobs j ON j.id = dead.job WHERE m.job = dead.job AND m.epoch = dead.epoch
)
UPDATE fleet_jobs j SET offered = NULL, who = '',
    state = CASE WHEN j.cancel THEN 'cancelled'
        WHEN j.tries >= (j.task ->> 'tries')::int THEN 'failed' ELSE 'queued' END,
    ended = CASE WHEN j.cancel OR j.tries >= (j.task ->> 'tries')::int
        THEN clock_timestamp() END,
    outcome = CASE WHEN j.tries >= (j.task ->> 'tries')::int
        THEN jsonb_build_object('detail', 'its machines died too often') END
FROM dead WHERE j.id = dead.job AND j.epoch = dead.epoch AND j.state = 'running'
RETURNING j.id
"""
"""Leases that ran out while the database was down are first renewed by who lives."""

LEAVE = """
WITH mine AS (
    UPDATE fleet_jobs SET state = %(state)s, outcome = %(outcome)s, question = %(question)s,
        cost = %(cost)s, turns = %(turns)s, who = '', offered = NULL,
        patch = coalesce(%(patch)s, patch),
        tries = tries - CASE WHEN %(counts)s THEN 0 ELSE 1 END,
        ended = CASE WHEN %(state)s IN ('queued', 'waiting') THEN NULL ELSE clock_timestamp() END
    WHERE id = %(job)s AND epoch = %(epoch)s AND state = 'running'
    RETURNING id, epoch, batch, labels, task, question, state
), told AS (
    INSERT INTO fleet_deliveries (url, type, data)
    SELECT url, 'question.asked', jsonb_build_object('id', id, 'number', epoch, 'batch', batch,
        'labels', labels, 'prompt', task -> 'prompt', 'question', question)
    FROM mine, fleet_webhooks WHERE state = 'waiting'
), moved AS (
    UPDATE fleet_moves m SET ended = clock_timestamp(), until = %(turns)s,
        how = CASE WHEN %(state)s = 'queued' THEN 'handed back' ELSE %(state)s END
    FROM mine WHERE m.job = mine.id AND m.epoch = %(epoch)s
)
DELETE FROM fleet_leases USING mine WHERE job = mine.id RETURNING job
"""
