"""The lookup of a stored session by the first letters of its id, or its title."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, TypeVar

from crow.core.errors import SessionError
from crow.core.support.validation import implements, members_of

if TYPE_CHECKING:
    from crow.core.agent import Agent
    from crow.core.store import SessionInfo, Store

P = TypeVar("P")
WHOLE = 32


def store_of(agent: Agent) -> Store:
    """Where the agent keeps sessions. Raises `SessionError` where it keeps none."""
    if agent.store is None:
        raise SessionError("sessions are not stored: the extension persistence is not in use")
    return agent.store


def store_with(store: Store, protocol: type[P]) -> P:
    """A store that can do what not every one can. Raises `SessionError` where it cannot."""
    if not implements(store, protocol):
        raise SessionError(f"this store cannot {members_of(protocol)[0]} sessions")
    return store


async def ids(store: Store, start: str) -> list[str]:
    """The ids that begin so."""
    return [info.id async for info in all_sessions(store) if info.id.startswith(start)]


async def ids_titled(store: Store, title: str) -> list[str]:
    """The ids of those with a title, in whatever case."""
    wanted = title.casefold()
    return [info.id async for info in all_sessions(store) if info.title.casefold() == wanted]


async def all_sessions(store: Store) -> AsyncIterator[SessionInfo]:
    """All of them."""
    page, cursor = await store.sessions(limit=500)
    while True:
        for info in page:
            yield info
        if cursor is None:
            return
        page, cursor = await store.sessions(cursor=cursor, limit=500)


async def whole_id(store: Store, start: str) -> str:
    """The id that begins so, else that of the session with this title.

    Raises `SessionError` where there is none, or several.
    """
    if len(start) >= WHOLE:
        return start
    matching = await ids(store, start)
    if start in matching:
        return start
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise SessionError(f"{len(matching)} sessions begin with {start!r}: give more of the id")
    called = await ids_titled(store, start)
    if len(called) == 1:
        return called[0]
    if called:
        raise SessionError(f"{len(called)} sessions are called {start!r}: give the id of one")
    raise SessionError(f"there is no session {start!r}: crow sessions --all lists them")
