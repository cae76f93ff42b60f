"""Webhooks: what a fleet has to say is posted, signed as Standard Webhooks 1 has it.

Whatever is to be posted is written down in the transaction in which it came about, and posted by
any worker, again until it is taken. So it comes at least once; the same message has the same id.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import logging
import os
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from crow.cli.parser import no_such
from crow.fleet.inbox import InboxError, answer
from crow.fleet.inbox_server import LARGEST, answer_of
from crow.fleet.task import FleetError

if TYPE_CHECKING:
    import httpx2

    from crow.fleet.board import Board

logger = logging.getLogger("crow.fleet")

PREFIX = "whsec_"
PATIENCE = 15.0
"""Seconds that an endpoint may take."""
PAUSES = (5.0, 300.0, 1800.0, 7200.0, 18000.0, 36000.0, 50400.0, 72000.0, 86400.0)
"""Seconds between two tries; then a message is given up."""
GONE = 410
"""The status with which an endpoint says that it wants nothing more, ever."""
AT_ONCE = 20
FINISHED = """
WITH over AS (
    UPDATE fleet_batches b SET told_finished = true
    WHERE NOT told_finished AND EXISTS (SELECT 1 FROM fleet_jobs j WHERE j.batch = b.name)
        AND NOT EXISTS (SELECT 1 FROM fleet_jobs j WHERE j.batch = b.name
            AND j.state IN ('queued', 'running', 'waiting'))
    RETURNING name
)
INSERT INTO fleet_deliveries (url, type, data)
SELECT w.url, 'batch.finished', jsonb_build_object('batch', name, 'cost', sum(n.cost),
    'jobs', sum(n.jobs), 'turns', sum(n.turns), 'states', jsonb_object_agg(n.state, n.jobs))
FROM over JOIN (
    SELECT batch, state, count(*) AS jobs, sum(cost) AS cost, sum(turns) AS turns
    FROM fleet_jobs GROUP BY 1, 2
) n ON n.batch = name CROSS JOIN fleet_webhooks w GROUP BY w.url, name
"""
SPENT = """
WITH over AS (
    UPDATE fleet_batches b SET told_spent = true FROM (
        SELECT batch, sum(cost) AS cost FROM fleet_jobs WHERE batch IN (
            SELECT name FROM fleet_batches WHERE NOT told_spent AND budget IS NOT NULL
        ) GROUP BY batch
    ) n WHERE n.batch = b.name AND NOT told_spent AND budget <= n.cost
    RETURNING name, budget, n.cost
)
INSERT INTO fleet_deliveries (url, type, data)
SELECT w.url, 'batch.budget_spent',
    jsonb_build_object('batch', name, 'budget', budget, 'cost', cost)
FROM over CROSS JOIN fleet_webhooks w
"""
"""Each batch is added up once in it: costs that a planner expects to be high are compiled first."""
TAKE = """
UPDATE fleet_deliveries d SET tries = tries + 1,
    due = clock_timestamp() + (%(pauses)s::float8[])[d.tries + 1] * interval '1 second'
FROM fleet_webhooks w WHERE w.url = d.url AND d.id IN (
    SELECT id FROM fleet_deliveries WHERE due <= clock_timestamp()
    ORDER BY due FOR UPDATE SKIP LOCKED LIMIT %(most)s
) RETURNING d.id, d.url, d.type, d.data, d.at, w.secret
"""
"""Who takes a message puts off its next try: where it dies with it, another goes on."""


class Webhooks:
    """The addresses that a fleet posts to."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._rows = board.database.rows

    async def add(self, url: str) -> str:
        """Post to an address from now on; the secret that its messages are signed with.

        Raises `FleetError` for what is no address.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise FleetError(f"a webhook is a URL such as https://example.org/crow, not {url!r}")
        secret = PREFIX + base64.b64encode(os.urandom(24)).decode()
        await self._rows(
            "INSERT INTO fleet_webhooks (url, secret) VALUES (%s, %s)"
            " ON CONFLICT (url) DO UPDATE SET secret = excluded.secret",
            (url, secret),
        )
        return secret

    async def remove(self, url: str) -> None:
        """Post there no more. Raises `FleetError` where that was not so."""
        await self._known(url)
        await self._rows("DELETE FROM fleet_webhooks WHERE url = %s", (url,))

    async def listed(self) -> list[dict[str, Any]]:
        """The addresses, without secrets, with what came of their messages."""
        return await self._rows(
            "SELECT url, w.created, count(d.due) AS waiting, count(d.id) - count(d.due) AS over,"
            " coalesce((SELECT said FROM fleet_deliveries l WHERE l.url = w.url AND tries > 0"
            " ORDER BY at DESC LIMIT 1), '') AS said"
            " FROM fleet_webhooks w LEFT JOIN fleet_deliveries d USING (url)"
            " GROUP BY url ORDER BY 1"
        )

    async def test(self, url: str) -> str:
        """Post a message of the type ``test`` now; what the endpoint said.

        Raises `FleetError` where the address is not known.
        """
        await self._known(url)
        (row,) = await self._rows(
            "INSERT INTO fleet_deliveries (url, type, data, tries, due) SELECT url, 'test',"
            " '{}', 1, NULL FROM fleet_webhooks WHERE url = %s RETURNING *,"
            " (SELECT secret FROM fleet_webhooks w WHERE w.url = fleet_deliveries.url) AS secret",
            (url,),
        )
        await self._deliver([row])
        found = await self._rows("SELECT said FROM fleet_deliveries WHERE id = %s", (row["id"],))
        return found[0]["said"] if found else f"HTTP {GONE}: it wants nothing more, and is removed"

    async def look(self) -> None:
        """Write down which batches have ended, and which have spent their money."""
        await self._rows(FINISHED)
        await self._rows(SPENT)

    async def deliver(self) -> int:
        """Post what is due; how much of it was taken. Any number of workers may do so."""
        rows = await self._rows(TAKE, {"pauses": list(PAUSES), "most": AT_ONCE})
        return await self._deliver(rows) if rows else 0

    async def _deliver(self, rows: list[dict[str, Any]]) -> int:
        import httpx2

        async with httpx2.AsyncClient(timeout=PATIENCE, follow_redirects=False) as client:
            return sum(await asyncio.gather(*(self._one(client, row) for row in rows)))

    async def _one(self, client: httpx2.AsyncClient, row: dict[str, Any]) -> bool:
        status, said, body = await self._post(client, row)
        is_taken = 200 <= status < 300
        if status == GONE:
            logger.warning("the webhook %s wants nothing more, and is removed", row["url"])
            await self._rows("DELETE FROM fleet_webhooks WHERE url = %s", (row["url"],))
        if is_taken and row["type"] == "question.asked" and body.strip():
            said = await self._answered(row, body) or said
        await self._rows(
            "UPDATE fleet_deliveries SET said = %s, due = CASE WHEN %s THEN NULL ELSE due END"
            " WHERE id = %s",
            (said, is_taken, row["id"]),
        )
        return is_taken

    async def _answered(self, row: dict[str, Any], body: bytes) -> str:
        """Take an answer that the reply has; what is wrong with it."""
        try:
            text, _ = answer_of(body)
        except InboxError:
            return ""  # it says something else, which many do
        try:
            await answer(self._board, row["data"]["id"], text, row["data"]["number"])
        except InboxError as error:
            return str(error)
        return ""

    async def _post(
        self, client: httpx2.AsyncClient, row: dict[str, Any]
    ) -> tuple[int, str, bytes]:
        """Post a message: the status, 0 without one, what was said in a line, and the body."""
        import httpx2

        text = {"type": row["type"], "timestamp": row["at"].isoformat(), "data": row["data"]}
        body = json.dumps(text, ensure_ascii=False, separators=(",", ":")).encode()
        headers = {"content-type": "application/json", "user-agent": "crow-fleet"}
        headers |= signed(row["secret"], row["id"], body)
        try:
            async with client.stream("POST", row["url"], content=body, headers=headers) as answered:
                return answered.status_code, f"HTTP {answered.status_code}", await _read(answered)
        except (httpx2.HTTPError, OSError) as error:
            return 0, f"{type(error).__name__}: {error}", b""

    async def _known(self, url: str) -> None:
        there = [row["url"] for row in await self.listed()]
        if url not in there:
            raise FleetError(no_such("webhook", url, there))


async def _read(answered: httpx2.Response) -> bytes:
    """What an endpoint said, as far as it can be an answer: what is longer is none."""
    body = b""
    async for piece in answered.aiter_bytes(LARGEST):
        body += piece
        if len(body) > LARGEST:
            break
    return body


def signed(secret: str, message: str, body: bytes, at: int | None = None) -> dict[str, str]:
    """The headers that Standard Webhooks wants: id, time and signature of a message."""
    at = int(time.time()) if at is None else at
    key = base64.b64decode(secret.removeprefix(PREFIX))
    mac = hmac.digest(key, f"{message}.{at}.".encode() + body, hashlib.sha256)
    return {
        "webhook-id": message,
        "webhook-timestamp": str(at),
        "webhook-signature": f"v1,{base64.b64encode(mac).decode()}",
    }
