"""The sessions of a database as they lie there: listed, searched, opened again, copied, removed."""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from crow import Message, Session
from crow.errors import SessionError, SessionInUse
from crow.extensions.persistence.archive import Archive
from crow.extensions.persistence.record import Entry, Row, dump, together
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
from crow.keys import Key

if TYPE_CHECKING:
    from crow.events import Event
    from crow.extensions.persistence.full_text import Found
    from crow.extensions.persistence.lease import Claim
    from crow.extensions.persistence.overview import Overview
    from crow.extensions.persistence.points import Point
    from crow.extensions.persistence.sql import Connection
    from crow.storage import Attachments, SessionInfo

logger = logging.getLogger("crow.persistence")

FILE = "~/.crow/crow.db"
ID = re.compile(r"[A-Za-z0-9][\w-]{0,99}", re.ASCII)
"""The id of a session that somebody else names: files are called after it."""
AT_ONCE = 64
"""Events that are made in one go, which is faster than in turns with what is done to them."""


class SessionStore:
    """All sessions of a place; a `crow.storage.Store`, and more that is asked of sessions."""

    def __init__(self, archive: Archive, log: Key[SessionLog]) -> None:
        self._place = archive.place
        self._archive = archive
        self._log = log
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def path(self) -> Path:
        """The database file, absolute; what else is stored lies beside it."""
        return self._place.path or Path(os.path.expanduser(FILE)).absolute()

    @property
    def attachments(self) -> Attachments | None:
        """What extensions keep beside sessions, where machines share the store."""
        return self._place.attachments

    def announce(self, address: str) -> bool:
        """Say where other machines reach this process, for those that want what is open here.

        False where the store is this machine's alone, and nobody else is told.
        """
        return self._place.announce(address)

    # open sessions

    def seq(self, session: Session | None) -> int:
        """Up to which record a session is stored, exclusively; zero for one that is not."""
        log = None if session is None else self._log.get(session)
        return 0 if log is None else log.kept

    def holds(self, session: Session) -> bool:
        """False for an open session that another process has taken over."""
        log = self._log.get(session)
        return log is None or log.lease is None or not log.lease.is_lost

    def save(self, session: Session) -> None:
        """Write what is new, without waiting for it."""
        log = self._log.get(session)
        if log is not None:
            self._archive.save(log)

    async def load(self, session_id: str) -> Session:
        """A stored session, opened and whole: calls that nobody answered have an answer.

        Raises `SessionError` where there is none of that id, or another process has it open.
        """
        async with self._alone(session_id):
            log = await self._load(session_id)
        self._log.set(log.session, log)
        return log.session

    async def _load(self, session_id: str) -> SessionLog:
        from crow.extensions.persistence.restoring import restore

        if not self._place.exists() or not await self._archive.ask(
            partial(is_there, session_id=session_id)
        ):
            raise self._missing(session_id)
        lease, trouble = await self._try_claim(session_id)
        try:
            log = await self._archive.ask(
                lambda connection: restore(connection, session_id, self._place.tail(session_id))
            )
            if log is None:
                raise self._missing(session_id)
            log.hold(lease)
            log.trouble = trouble
            await self._mend(log)
        except BaseException:
            await self._archive.release(lease)
            raise
        self._archive.logs[session_id] = log
        return log

    async def _try_claim(self, session_id: str) -> tuple[Claim | None, str]:
        """The lock, or why there is none. Raises `SessionInUse` where another holds it."""
        try:
            return await self._archive.claim(session_id), ""
        except SessionInUse:
            raise
        except SessionError as error:
            return None, str(error)

    async def _mend(self, log: SessionLog) -> None:
        """Store what was mended; what cannot be written now waits."""
        try:
            if log.damaged:
                seqs = log.damaged
                await self._archive.do(partial(mark_damaged, session_id=log.session.id, seqs=seqs))
            await self._archive.flush(log)
            if log.lease is not None:
                log.lease.clear()
        except SessionError as error:
            log.trouble = str(error)

    # which there are

    async def sessions(
        self,
        *,
        cwd: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
        archived: bool | None = None,
    ) -> tuple[list[SessionInfo], str | None]:
        """Stored sessions, the last used first, and the cursor of the next page.

        ``archived`` True lists the archived ones alone, False the others. Raises ``ValueError`` for
        a cursor that no page has ended with.
        """
        if cursor and not (cursor.isascii() and cursor.isdecimal()):
            raise ValueError(f"there is no page at the cursor {cursor!r}")
        if not self._place.exists():  # nothing was ever stored
            return [], None
        return await self._archive.ask(
            partial(session_page, cwd=cwd, cursor=cursor, limit=limit, archived=archived)
        )

    async def knows(self, session_id: str) -> bool:
        """True where there is a stored session of that id. Raises `SessionError`."""
        if not self._place.exists():
            return False
        return await self._archive.ask(partial(find_session, session_id=session_id)) is not None

    async def search(self, text: str, *, cwd: str | None = None, limit: int = 20) -> list[Found]:
        """Sessions where all words of a text were said in one message, the best first.

        Prompts, answers and titles are searched; the last word may be the beginning of one.
        """
        from crow.extensions.persistence.full_text import search

        if not self._place.exists():
            return []
        try:
            while await self._archive.do(self._place.index):
                pass
        except SessionError as error:
            logger.info("searching what was indexed before: %s", error)
        return await self._archive.ask(
            partial(search, place=self._place, text=text, cwd=cwd, limit=limit)
        )

    async def overview(
        self, text: str = "", *, cwd: str | None = None, limit: int = 50
    ) -> list[Overview]:
        """Sessions with what helps to choose one, the last used first; with a text as `search`."""
        from crow.extensions.persistence.overview import overviews

        if text.strip():
            hits = await self.search(text, cwd=cwd, limit=limit)
            found = [(each.session, each.snippet) for each in hits]
        else:
            page, _ = await self.sessions(cwd=cwd, limit=limit)
            found = [(info, "") for info in page]
        if not found:
            return []
        return await self._archive.ask(partial(overviews, infos=found, user_of=self._place.user_of))

    # what was said

    async def tree(self, session_id: str) -> list[Point]:
        """The prompts and answers of a session and of all that it has forks in common with.

        Reads only. Raises `SessionError`.
        """
        from crow.extensions.persistence.points import family, said_in, tree

        if not await self.knows(session_id):
            raise self._missing(session_id)

        def points(connection: Connection) -> list[Point]:
            related = family(connection, session_id)
            told = [
                (each, said_in(connection, each, self._place.tail(each).rows)) for each in related
            ]
            return tree(told, session_id)

        return await self._archive.ask(points)

    async def replay(self, session_id: str, *, asked: bool = False) -> AsyncIterator[Event]:
        """A session as the events that a client saw: prompts, thoughts, answers, calls, plans.

        All segments, each message once; text and calls in one piece. Message ids are those of the
        first time. ``asked``: only the calls that its user was asked about. Reads only, and one
        that cannot be stored from memory; the events are made one by one. Raises `SessionError`.
        """
        from crow.extensions.persistence.history import Replay, deeds
        from crow.tools import read_in_thread

        log = self._archive.logs.get(session_id)
        entries = together(
            await self._entries(session_id, log), list(log.waiting.values()) if log else []
        )
        told = Replay(session_id, await read_in_thread(deeds, entries), asked)
        events = told.events(entries)
        while some := [*islice(events, AT_ONCE)]:
            for event in some:
                yield event

    async def _entries(self, session_id: str, log: SessionLog | None) -> list[Entry]:
        """All rows of a session: of one that was just opened those that were read then, once."""
        if log is not None and log.read:
            read, log.read = [*log.read], ()
            return read
        try:
            return (await self._whole(session_id))[1]
        except SessionError:
            if log is None or not log.waiting:
                raise
            return []

    async def segments(self, session_id: str) -> list[list[Message]]:
        """The histories of a session, oldest first: all but the last were compacted or left.

        Reads only. Raises `SessionError`.
        """
        from crow.extensions.persistence.history import History

        stored, entries = await self._whole(session_id)
        return [
            History.of(entry for entry in entries if entry.segment == segment).messages
            for segment in range(stored["segment"] + 1)
        ]

    async def export(self, session_id: str) -> str:
        """A session as JSON Lines: itself first, then every record in order.

        Reads only, so another process may have it open. Raises `SessionError`.
        """
        if self._place.exists():
            tail = await asyncio.to_thread(self._place.tail, session_id)
            text = await self._archive.ask(
                partial(export_session, session_id=session_id, tail=tail.rows)
            )
            if text is not None:
                return text
        raise self._missing(session_id)

    # what is done with them

    async def fork(self, session_id: str, *, before: int | None = None) -> str:
        """Copy a session, even one in use, with its old segments; the id of the copy.

        With ``before`` it ends at that point of its `tree`, and counts its usage from there on.
        Raises `SessionError` where there is none of that id.
        """
        new_id = os.urandom(16).hex()
        if self._place.exists():
            tail = await asyncio.to_thread(self._place.tail, session_id)
            copy = partial(
                copy_session, session_id=session_id, new_id=new_id, tail=tail.rows, before=before
            )
            if await self._archive.do(copy):
                return new_id
        raise self._missing(session_id)

    async def add(self, session_id: str, head: Stored, rows: Iterable[Mapping[str, Any]]) -> None:
        """Store a session that came about elsewhere, as `export` has it: itself, then its records.

        It has no more rights than a new one: of its mode, options and directories nothing is taken.
        Raises `SessionError`, also where there is one of that id, and for what is no session.
        """
        if not ID.fullmatch(session_id):
            raise SessionError(f"this is no id of a session: {session_id!r}")
        try:
            made = [
                Row(int(e["seq"]), int(e["segment"]), e["kind"], dump(e["data"]), float(e["at"]))
                for e in rows
            ]
            add = partial(add_session, session_id=session_id, head=head, rows=made)
            is_new = await self._archive.do(add)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise SessionError(f"this is no session, or damaged: {error!r}") from error
        if not is_new:
            raise SessionError(f"it is here already: session {session_id}")

    async def rename(self, session_id: str, title: str) -> None:
        """Give a session another title. Raises `SessionError` where there is none of that id."""
        change = partial(rename_session, session_id=session_id, title=title)
        if not self._place.exists() or not await self._archive.do(change):
            raise self._missing(session_id)
        log = self._archive.logs.get(session_id)
        if log is not None:
            log.session.title = log.fields["title"] = title

    async def archive(self, session_id: str, *, archived: bool = True) -> None:
        """Put a session away, or take it back. Raises `SessionError`, also where it is in use."""
        change = partial(archive_session, session_id=session_id, archived=archived)
        async with self._alone(session_id):
            if not await self.knows(session_id):
                raise self._missing(session_id)
            log = self._archive.logs.get(session_id)
            lease = None if log and log.lease else await self._archive.claim(session_id)
            try:
                if not await self._archive.do(change):
                    raise self._missing(session_id)
            finally:
                await self._archive.release(lease)

    async def delete(self, session_id: str) -> bool:
        """Remove a session for good; False where there is none. `SessionError` where it is used."""
        if not self._place.exists():
            return False
        async with self._alone(session_id):
            log = self._archive.logs.get(session_id)
            if log is None and not await self._archive.ask(
                partial(is_there, session_id=session_id)
            ):
                return False
            lease = (log.lease if log else None) or await self._archive.claim(session_id)
            try:
                removed = await self._archive.do(partial(self._place.delete, session_id=session_id))
                lease.clear()
            finally:
                await self._archive.release(lease)
            if log is not None:
                log.gone = True
            return removed

    # what they have in common

    def _alone(self, session_id: str) -> asyncio.Lock:
        """What lets one after the other open, put away or remove a session: they take its lease."""
        return self._locks.setdefault(session_id, asyncio.Lock())

    def is_open(self, session_id: str) -> bool:
        """True for a session that is open in this process, or is being opened or removed."""
        return session_id in self._archive.logs or self._alone(session_id).locked()

    async def _whole(self, session_id: str) -> tuple[Stored, list[Entry]]:
        """A session's row and all rows of its log, without opening it. Raises `SessionError`."""
        tail = await asyncio.to_thread(self._place.tail, session_id)
        if self._place.exists():
            found = await self._archive.ask(partial(whole_session, session_id=session_id))
            if found is not None:
                return found[0], together(found[1], tail.rows)
        raise self._missing(session_id)

    def _missing(self, session_id: str) -> SessionError:
        """The error for a session that is not there."""
        seen = "".join(f" ({notice})" for notice in self._place.notices)
        return SessionError(f"there is no session {session_id!r} in {self._place.name}{seen}")
