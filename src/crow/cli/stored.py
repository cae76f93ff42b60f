"""Stored sessions by the first letters of their id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crow.core.errors import SessionError

if TYPE_CHECKING:
    from crow.core.agent import Agent
    from crow.core.session import Store

WHOLE = 32


def stored(agent: Agent) -> Store:
    """Where the agent keeps sessions. Raises `SessionError` where it keeps none."""
    if agent.store is None:
        raise SessionError("sessions are not stored: the extension persistence is not in use")
    return agent.store


def able(store: Store, what: str) -> Any:
    """What not every store can do. Raises `SessionError` where this one cannot."""
    method = getattr(store, what, None)
    if method is None:
        raise SessionError(f"this store cannot {what} sessions")
    return method


async def ids(store: Store, start: str) -> list[str]:
    """The ids that begin so."""
    found: list[str] = []
    page, cursor = await store.sessions(limit=500)
    while True:
        found += [info.id for info in page if info.id.startswith(start)]
        if cursor is None:
            return found
        page, cursor = await store.sessions(cursor=cursor, limit=500)


async def whole_id(store: Store, start: str) -> str:
    """The id that begins so. Raises `SessionError` where there is none, or several."""
    if len(start) >= WHOLE:
        return start
    matching = await ids(store, start)
    if start in matching:
        return start
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise SessionError(f"{len(matching)} sessions begin with {start!r}: give more of the id")
    raise SessionError(f"there is no session {start!r}: crow sessions --all lists them")
