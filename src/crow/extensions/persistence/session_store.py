"""The session store of one database: listed, searched, opened again, copied, removed."""

from __future__ import annotations

import asyncio
import logging
import re
import uuid
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from crow import Message, SessionError, SessionInfo, SessionInUse
from crow.events import Event
from crow.extensions.persistence.archive import Archive
from crow.extensions.persistence.full_text import Found, search
from crow.extensions.persistence.history import History, Replay
from crow.extensions.persistence.lease import Claim
from crow.extensions.persistence.overview import Overview, overviews
from crow.extensions.persistence.points import Point, family, said_in, tree
from crow.extensions.persistence.record import Entry, Row, dump, together
from crow.extensions.persistence.restoring import restore
from crow.extensions.persistence.session_log import SessionLog
from crow.extensions.persistence.session_rows import (
    Stored,
    add_session,
    archive_session,
    copy_session,
    export_session,
    find_session,
    is_there,
    mark_damaged,
    rename_session,
    session_page,
    whole_session,
)
from crow.extensions.persistence.writer import Work

if TYPE_CHECKING:
    from crow.extensions.persistence.sql import Connection

logger = logging.getLogger("crow.persistence")

T = TypeVar("T")
ID = re.compile(r"[A-Za-z0-9][\w-]{0,99}", re.ASCII)
"""The id of a session that somebody else names: files are called after it."""


class StoredSessions:
    """All sessions of an archive; imported with the first question for them."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.place = archive.place
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def _alone(self, session_id: str) -> asyncio.Lock:
        """What lets one after the other open, put away or remove a session: they take its lease."""
        return self._locks.setdefault(session_id, asyncio.Lock())

    async def ask(self, question: Work[T]) -> T:
        """Ask the database something, of all that was written before. Raises `SessionError`."""
        trouble: SessionError | None = None
        try:
            await self.archive.do(lambda _: None)
        except SessionError as error:
            trouble = error
        try:
            return await asyncio.to_thread(self._ask, question)
        except SessionError as error:
            raise trouble or error from error

    def _ask(self, question: Work[T]) -> T:
        try:
            connection = self.place.read()
            try:
                return question(connection)
            finally:
                connection.close()
        except (*self.place.errors, ValueError) as error:
            raise self.place.explain(error) from error

    def missing(self, session_id: str) -> SessionError:
        """The error for a session that is not there."""
        seen = "".join(f" ({notice})" for notice in self.place.notices)
        return SessionError(f"there is no session {session_id!r} in {self.place.name}{seen}")

    async def load(self, session_id: str) -> SessionLog:
        """Open a stored session, mended. Raises `SessionError`."""
        async with self._alone(session_id):
            return await self._load(session_id)

    async def _load(self, session_id: str) -> SessionLog:
        if not self.place.exists() or not await self.ask(partial(is_there, session_id=session_id)):
            raise self.missing(session_id)
        lease, trouble = await self._try_claim(session_id)
        try:
            tail = await asyncio.to_thread(self.place.tail, session_id)
            log = await self.ask(partial(restore, session_id=session_id, tail=tail))
            if log is None:
                raise self.missing(session_id)
            log.hold(lease)
            log.trouble = trouble
            await self._mend(log)
        except BaseException:
            await self.archive.release(lease)
            raise
        self.archive.logs[session_id] = log
        return log

    async def _try_claim(self, session_id: str) -> tuple[Claim | None, str]:
        """The lock, or why there is none. Raises `SessionInUse` where another holds it."""
        try:
            return await self.archive.claim(session_id), ""
        except SessionInUse:
            raise
        except SessionError as error:
            return None, str(error)

    async def _mend(self, log: SessionLog) -> None:
        """Store what was mended; what cannot be written now waits."""
        try:
            if log.damaged:
                seqs = log.damaged
                await self.archive.do(partial(mark_damaged, session_id=log.session.id, seqs=seqs))
            await self.archive.flush(log)
            if log.lease is not None:
                log.lease.clear()
        except SessionError as error:
            log.trouble = str(error)

    async def page(
        self, cwd: str | None, cursor: str | None, limit: int, archived: bool | None
    ) -> tuple[list[SessionInfo], str | None]:
        """One page of the list; empty where nothing was ever stored."""
        if not self.place.exists():
            return [], None
        return await self.ask(
            partial(session_page, cwd=cwd, cursor=cursor, limit=limit, archived=archived)
        )

    async def stored(self, session_id: str) -> tuple[Stored, list[Entry]]:
        """A session's row and all rows of its log, without opening it. Raises `SessionError`."""
        tail = await asyncio.to_thread(self.place.tail, session_id)
        if self.place.exists():
            found = await self.ask(partial(whole_session, session_id=session_id))
            if found is not None:
                return found[0], together(found[1], tail.rows)
        raise self.missing(session_id)

    async def knows(self, session_id: str) -> bool:
        """True where there is a session of that id. Raises `SessionError`."""
        if not self.place.exists():
            return False
        return await self.ask(partial(find_session, session_id=session_id)) is not None

    async def replay(self, session_id: str, *, asked: bool = False) -> list[Event]:
        """A session as events; one that cannot be stored, from memory. Raises `SessionError`."""
        log = self.archive.logs.get(session_id)
        try:
            _, entries = await self.stored(session_id)
        except SessionError:
            if log is None or not log.waiting:
                raise
            entries = []
        entries = together(entries, list(log.waiting.values()) if log else [])
        return await asyncio.to_thread(lambda: list(Replay(session_id, asked).events(entries)))

    async def lines(self, session_id: str) -> str:
        """A session as JSON Lines. Raises `SessionError`."""
        if self.place.exists():
            tail = await asyncio.to_thread(self.place.tail, session_id)
            text = await self.ask(partial(export_session, session_id=session_id, tail=tail.rows))
            if text is not None:
                return text
        raise self.missing(session_id)

    async def search(self, text: str, cwd: str | None, limit: int) -> list[Found]:
        """Sessions where a text was said. Raises `SessionError`."""
        if not self.place.exists():
            return []
        try:
            while await self.archive.do(self.place.index):
                pass
        except SessionError as error:
            logger.info("searching what was indexed before: %s", error)
        return await self.ask(partial(search, place=self.place, text=text, cwd=cwd, limit=limit))

    async def fork(self, session_id: str, before: int | None) -> str:
        """Copy a session, in use or not; the copy's id. Raises `SessionError`."""
        new_id = uuid.uuid4().hex
        if self.place.exists():
            tail = await asyncio.to_thread(self.place.tail, session_id)
            copy = partial(
                copy_session, session_id=session_id, new_id=new_id, tail=tail.rows, before=before
            )
            if await self.archive.do(copy):
                return new_id
        raise self.missing(session_id)

    async def add(self, session_id: str, head: Stored, rows: Iterable[Mapping[str, Any]]) -> None:
        """Store a session of elsewhere. Raises `SessionError`, also where it is there already."""
        if not ID.fullmatch(session_id):
            raise SessionError(f"this is no id of a session: {session_id!r}")
        try:
            made = [
                Row(int(e["seq"]), int(e["segment"]), e["kind"], dump(e["data"]), float(e["at"]))
                for e in rows
            ]
            add = partial(add_session, session_id=session_id, head=head, rows=made)
            is_new = await self.archive.do(add)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise SessionError(f"this is no session, or damaged: {error!r}") from error
        if not is_new:
            raise SessionError(f"it is here already: session {session_id}")

    async def overview(self, text: str, cwd: str | None, limit: int) -> list[Overview]:
        """Sessions with what helps to choose one. Raises `SessionError`."""
        if text.strip():
            found = [(each.session, each.snippet) for each in await self.search(text, cwd, limit)]
        else:
            page, _ = await self.page(cwd, None, limit, None)
            found = [(info, "") for info in page]
        if not found:
            return []
        return await self.ask(partial(overviews, infos=found, user_of=self.place.user_of))

    async def tree(self, session_id: str) -> list[Point]:
        """The points of a session and of its relatives. Raises `SessionError`."""
        if not await self.knows(session_id):
            raise self.missing(session_id)

        def points(connection: Connection) -> list[Point]:
            related = family(connection, session_id)
            told = [
                (each, said_in(connection, each, self.place.tail(each).rows)) for each in related
            ]
            return tree(told, session_id)

        return await self.ask(points)

    async def rename(self, session_id: str, title: str) -> None:
        """Give a session a title. Raises `SessionError`."""
        change = partial(rename_session, session_id=session_id, title=title)
        if not self.place.exists() or not await self.archive.do(change):
            raise self.missing(session_id)
        log = self.archive.logs.get(session_id)
        if log is not None:
            log.session.title = log.fields["title"] = title

    async def put_away(self, session_id: str, *, archived: bool) -> None:
        """Archive a session, or take it back. Raises `SessionError`, also where it is in use."""
        change = partial(archive_session, session_id=session_id, archived=archived)
        async with self._alone(session_id):
            if not await self.knows(session_id):
                raise self.missing(session_id)
            log = self.archive.logs.get(session_id)
            lease = None if log and log.lease else await self.archive.claim(session_id)
            try:
                if not await self.archive.do(change):
                    raise self.missing(session_id)
            finally:
                await self.archive.release(lease)

    def is_open(self, session_id: str) -> bool:
        """True for a session that is open in this process, or is being opened or removed."""
        return session_id in self.archive.logs or self._alone(session_id).locked()

    async def delete(self, session_id: str) -> bool:
        """Remove a session; False where there is none. Raises `SessionError` where it is in use."""
        if not self.place.exists():
            return False
        async with self._alone(session_id):
            log = self.archive.logs.get(session_id)
            if log is None and not await self.ask(partial(is_there, session_id=session_id)):
                return False
            lease = (log.lease if log else None) or await self.archive.claim(session_id)
            try:
                removed = await self.archive.do(partial(self.place.delete, session_id=session_id))
                lease.clear()
            finally:
                await self.archive.release(lease)
            if log is not None:
                log.gone = True
            return removed

    async def segments(self, session_id: str) -> list[list[Message]]:
        """The histories of a session, oldest first. Raises `SessionError`."""
        stored, entries = await self.stored(session_id)
        return [
            History.of(entry for entry in entries if entry.segment == segment).messages
            for segment in range(stored["segment"] + 1)
        ]
