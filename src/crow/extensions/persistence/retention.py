"""Sessions that nobody has used for long: they go, with all that is kept of them."""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from crow.errors import SessionError
from crow.project import state_directory

if TYPE_CHECKING:
    from crow import Agent
    from crow.extensions.persistence.store import SessionStore

logger = logging.getLogger("crow.persistence")

DAY = 24 * 60 * 60
MARK = "cleaned-up"
"""A file that says when it was done last: once a day is enough."""
PAGE = 500


async def clean_up(agent: Agent, store: SessionStore, days: int) -> None:
    """Delete the sessions that were not used for so many days; those in use stay. Once a day."""
    mark = state_directory() / MARK
    try:
        if time.time() - mark.stat().st_mtime < DAY:
            return
    except OSError:
        pass  # never yet
    try:
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
        gone = await _delete(agent, store, days)
    except (SessionError, OSError) as error:
        logger.warning("old sessions could not be deleted: %s", error)
        return
    if gone:
        logger.info("%d sessions that were not used for %d days are deleted", gone, days)


async def _delete(agent: Agent, store: SessionStore, days: int) -> int:
    last = (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="milliseconds")
    old: list[str] = []
    cursor = None
    while True:
        page, cursor = await store.sessions(cursor=cursor, limit=PAGE)
        old += [info.id for info in page if info.updated and info.updated < last]
        if cursor is None:
            break
    gone = 0
    for session_id in old:
        if store.is_open(session_id):  # somebody may go on with an old one just now
            continue
        try:
            gone += await agent.delete_session(session_id)
        except SessionError as error:  # it is in use
            logger.info("session %s stays: %s", session_id, error)
    return gone
