"""The pace of a fleet: a provider that refuses one session for now is left alone by all.

What a provider limits is a key's, so a limit is known by both: the host that requests go to, and a
hash of the key that they carry.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from crow.core.errors import ModelError

if TYPE_CHECKING:
    from crow.core.ports import LLM
    from crow.fleet.database import Database

Limit = tuple[str, str]
"""The provider, and its key as a hash; both are empty where neither can be known."""
SPREAD = 5.0
"""Seconds at most over which the sessions of a fleet begin again, so that they do not at once."""
LOOK = 10.0
"""Seconds after which a session that waits looks whether it still has to."""


class Pace:
    """Until when which provider is to be left alone, for whom."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def slow(self, limit: Limit, seconds: float) -> None:
        """Ask all workers to send a provider nothing with this key, for so long."""
        await self._database.rows(
            "INSERT INTO fleet_pace VALUES (%s, %s, clock_timestamp() + %s * interval '1 second')"
            " ON CONFLICT (provider, key) DO UPDATE"
            " SET until = greatest(fleet_pace.until, excluded.until)",
            (*limit, seconds),
        )

    async def left(self, limit: Limit) -> float:
        """For how many seconds a provider is to be left alone."""
        rows = await self._database.rows(
            "SELECT extract(epoch FROM until - clock_timestamp())::float8 AS seconds"
            " FROM fleet_pace WHERE provider = %s AND key = %s AND until > clock_timestamp()",
            limit,
        )
        return rows[0]["seconds"] if rows else 0.0

    async def wait(self, limit: Limit) -> None:
        """Wait until a provider may be asked; not to the same moment as others who wait."""
        while left := await self.left(limit):
            spread = random.uniform(0, min(left, SPREAD))  # noqa: S311
            await asyncio.sleep(min(left + spread, LOOK))


def limit_of(llm: LLM, model: str | None) -> Limit:
    """Whose limits the requests to a model count against."""
    named: Any = getattr(llm, "named", None)
    try:
        asked: Any = getattr(llm, "first", llm) if model is None or named is None else named(model)
    except ModelError:
        return "", ""
    host = urlsplit(getattr(asked, "base_url", None) or "").netloc
    keys = "\n".join(sorted(getattr(asked, "secrets", ())))
    return host, hashlib.sha256(keys.encode()).hexdigest()[:16] if keys else ""
