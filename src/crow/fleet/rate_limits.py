"""Rate limits of providers: one that refuses one session for now is left alone by all.

What a provider limits is a key's, so a limit is known by both: the host that requests go to, and a
hash of the key that they carry.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from crow.core.errors import ModelError
from crow.core.ports.llm import LLM, KeyUser, model_named
from crow.core.support.validation import implements
from crow.ports.models import url_of

if TYPE_CHECKING:
    from crow.fleet.database import Database

Limit = tuple[str, str]
"""The provider, and its key as a hash; both are empty where neither can be known."""
SPREAD = 5.0
"""Seconds at most over which the sessions of a fleet begin again, so that they do not at once."""
LOOK = 10.0
"""Seconds after which a session that waits looks whether it still has to."""


class RateLimits:
    """Until when which provider is to be left alone, for whom, as this worker last heard."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._until: dict[Limit, float] = {}

    async def slow(self, limit: Limit, seconds: float) -> None:
        """Ask all workers to send a provider nothing with this key: this one now, others soon."""
        until = max(self._until.get(limit, 0.0), time.monotonic() + seconds)
        self._until[limit] = until
        await self._database.rows(
            "INSERT INTO fleet_pace VALUES (%s, %s, clock_timestamp() + %s * interval '1 second')"
            " ON CONFLICT (provider, key) DO UPDATE"
            " SET until = greatest(fleet_pace.until, excluded.until)",
            (*limit, seconds),
        )
        self._until.setdefault(limit, until)  # it may have been heard meanwhile that nobody asks

    def hear(self, paces: Iterable[tuple[str, str, float]]) -> None:
        """Know what all have been asked: providers, hashes of keys, and seconds from now."""
        now = time.monotonic()
        self._until = {(provider, key): now + seconds for provider, key, seconds in paces}

    def left(self, limit: Limit) -> float:
        """For how many seconds a provider is to be left alone."""
        return max(self._until.get(limit, 0.0) - time.monotonic(), 0.0)

    async def wait(self, limit: Limit) -> None:
        """Wait until a provider may be asked; not to the same moment as others who wait."""
        while left := self.left(limit):
            spread = random.uniform(0, min(left, SPREAD))  # noqa: S311
            await asyncio.sleep(min(left + spread, LOOK))


def rate_limit_of(llm: LLM, model: str | None) -> Limit:
    """Whose limits the requests to a model count against."""
    try:
        asked = model_named(llm, model or llm.model)
    except ModelError:
        return "", ""
    host = urlsplit(url_of(asked)).netloc
    keys = "\n".join(sorted(asked.secrets)) if implements(asked, KeyUser) else ""
    return host, hashlib.sha256(keys.encode()).hexdigest()[:16] if keys else ""
