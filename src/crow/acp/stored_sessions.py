"""The sessions that an agent has stored, for a client: listed, named, put away, removed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from crow.acp.errors import found, invalid, not_found, unknown_method, unused
from crow.acp.jsonrpc import Message
from crow.core.agent import Agent
from crow.core.errors import SessionError
from crow.core.events import TitleChanged
from crow.core.session import Session
from crow.core.store import SessionInfo, Store
from crow.core.support.validation import implements
from crow.ports.stores import ArchiveStore, KnowingStore, TitleStore

if TYPE_CHECKING:
    import crow.acp.outgoing as v1

TITLE = 200
ARCHIVED: Mapping[str, bool | None] = {"exclude": False, "include": None, "only": True}
"""The filters of ``session/list``, as a store has them."""


class StoredSessions:
    """Methods on sessions that need not be open; ``close`` lets go of one that is.

    Each takes the parameters of a request and gives its result. They raise `Refusal`.
    """

    def __init__(self, agent: Agent, close: Callable[[Session], Awaitable[None]]) -> None:
        self._agent = agent
        self._close = close

    @property
    def _store(self) -> Store:
        if self._agent.store is None:
            raise unknown_method(details="this agent stores no sessions")
        return self._agent.store

    async def page(self, params: Message) -> v1.ListSessionsResponse:
        """Stored sessions, a page at a time; of those that say nothing, the ones that are open."""
        wanted: Any = {"cwd": params.get("cwd"), "cursor": params.get("cursor")}
        if self._archives:
            wanted["archived"] = self._filter(params.get("archived", "exclude"))
        try:
            page, after = await self._store.sessions(**wanted)
        except (SessionError, ValueError) as error:
            raise invalid(str(error)) from error
        known = self._agent.sessions
        listed = [
            self._info(each) for each in page if each.messages or each.title or each.id in known
        ]
        return {"sessions": listed, "nextCursor": after} if after else {"sessions": listed}

    def _info(self, info: SessionInfo) -> v1.SessionInfo:
        told: v1.SessionInfo = {
            "sessionId": info.id,
            "cwd": info.cwd,
            "title": info.title or None,
            "updatedAt": info.updated,
        }
        return {**told, "archived": info.archived} if self._archives else told

    @property
    def _archives(self) -> bool:
        """True where sessions can be put away."""
        return implements(self._agent.store, ArchiveStore)

    def _filter(self, archived: str) -> bool | None:
        """What a filter of the protocol's is for a store."""
        if archived not in ARCHIVED:
            raise invalid(f"archived: there is no {archived!r}, only {', '.join(ARCHIVED)}")
        return ARCHIVED[archived]

    async def status(self, params: Message) -> v1.SessionStatusResponse:
        """Say whether a session is open, or stored; nothing is opened for it."""
        session_id = params["sessionId"]
        if session_id in self._agent.sessions:
            return {"status": "open"}
        store = self._agent.store
        if implements(store, KnowingStore) and await found(store.knows(session_id)):
            return {"status": "saved"}
        raise not_found(f"there is no session {session_id!r}")

    async def delete(self, params: Message) -> v1.DeleteSessionResponse:
        """Remove a session for good; no matter if there was one."""
        session = self._agent.sessions.get(params["sessionId"])
        if session is not None:
            await self._close(session)
        await unused(self._agent.delete_session(params["sessionId"]))
        return {}

    async def set_title(self, params: Message) -> v1.SetSessionTitleResponse:
        """Give a session another title; stored before it is answered."""
        title = " ".join(params["title"].split())[:TITLE]
        if not title:
            raise invalid("the title is empty")
        session = self._agent.sessions.get(params["sessionId"])
        if implements(self._agent.store, TitleStore):
            await found(self._agent.store.rename(params["sessionId"], title))
        elif session is None:
            raise not_found(f"there is no session {params['sessionId']!r}")
        if session is not None:
            session.title = title
            await session.client.update(session.id, TitleChanged(title))
        return {"title": title}

    async def archive(self, params: Message) -> v1.ArchiveSessionResponse:
        """Put a session away, whatever it was doing; it can still be opened by its id."""
        session = self._agent.sessions.get(params["sessionId"])
        if session is not None and self._archives:
            await self._close(session)
        return await self._put_away(params, archived=True)

    async def unarchive(self, params: Message) -> v1.UnarchiveSessionResponse:
        """Take a session back into the list; it is not opened."""
        return await self._put_away(params, archived=False)

    async def _put_away(self, params: Message, *, archived: bool) -> v1.ArchiveSessionResponse:
        if not self._archives:
            raise unknown_method(details="this agent archives no sessions")
        store: Any = self._store
        await found(store.archive(params["sessionId"], archived=archived))
        return {}
