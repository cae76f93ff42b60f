"""The sessions of a database as they lie there: listed, searched, opened again, copied, removed."""

from __future__ import annotations

import asyncio
import logging
import uuid
from functools import partial
from typing import TypeVar

from crow import Message, SessionError, SessionInfo
from crow.events import Event
from crow.extensions.persistence.archive import Archive
from crow.extensions.persistence.database import explain
from crow.extensions.persistence.history import History, Replay
from crow.extensions.persistence.lease import Lease, read_tail
from crow.extensions.persistence.ledger import Ledger
from crow.extensions.persistence.record import Entry, together
from crow.extensions.persistence.restoring import restore
from crow.extensions.persistence.shelf import (
    Stored,
    copy_session,
    delete_session,
    export_session,
    find_session,
    is_there,
    mark_damaged,
    rename_session,
    session_page,
    whole_session,
)
from crow.extensions.persistence.words import Found, index, search
from crow.extensions.persistence.writer import Work

logger = logging.getLogger("crow.persistence")

T = TypeVar("T")


class StoredSessions:
    """All sessions of an archive; imported with the first question for them."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive

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
        import apsw

        try:
            connection = self.archive.database.read()
            try:
                return question(connection)
            finally:
                connection.close()
        except (apsw.Error, ValueError) as error:
            raise explain(error, self.archive.path) from error

    def missing(self, session_id: str) -> SessionError:
        """The error for a session that is not there."""
        seen = "".join(f" ({notice})" for notice in self.archive.database.notices)
        return SessionError(f"there is no session {session_id!r} in {self.archive.path}{seen}")

    async def load(self, session_id: str) -> Ledger:
        """Open a stored session, mended. Raises `SessionError`."""
        if not self.archive.path.exists() or not await self.ask(
            partial(is_there, session_id=session_id)
        ):
            raise self.missing(session_id)
        lease, trouble = self._try_lease(session_id)
        try:
            tail = read_tail(self.archive.database.locks, session_id)
            ledger = await self.ask(partial(restore, session_id=session_id, tail=tail))
            if ledger is None:
                raise self.missing(session_id)
            ledger.lease, ledger.trouble = lease, trouble
            await self._mend(ledger)
        except BaseException:
            if lease is not None:
                lease.release()
            raise
        self.archive.ledgers[session_id] = ledger
        return ledger

    def _try_lease(self, session_id: str) -> tuple[Lease | None, str]:
        """The lock, or why there is none. Raises `SessionError` where another holds it."""
        try:
            return Lease.take(self.archive.database.locks, session_id), ""
        except OSError as error:
            return None, str(explain(error, self.archive.path))

    async def _mend(self, ledger: Ledger) -> None:
        """Store what was mended; what cannot be written now waits."""
        try:
            if ledger.damaged:
                seqs = ledger.damaged
                await self.archive.do(
                    partial(mark_damaged, session_id=ledger.session.id, seqs=seqs)
                )
            await self.archive.flush(ledger)
            if ledger.lease is not None:
                ledger.lease.clear()
        except SessionError as error:
            ledger.trouble = str(error)

    async def page(
        self, cwd: str | None, cursor: str | None, limit: int
    ) -> tuple[list[SessionInfo], str | None]:
        """One page of the list; empty where nothing was ever stored."""
        if not self.archive.path.exists():
            return [], None
        return await self.ask(partial(session_page, cwd=cwd, cursor=cursor, limit=limit))

    async def stored(self, session_id: str) -> tuple[Stored, list[Entry]]:
        """A session's row and all rows of its log, without opening it. Raises `SessionError`."""
        tail = read_tail(self.archive.database.locks, session_id)
        if self.archive.path.exists():
            found = await self.ask(partial(whole_session, session_id=session_id))
            if found is not None:
                return found[0], together(found[1], tail.rows)
        raise self.missing(session_id)

    async def knows(self, session_id: str) -> bool:
        """True where there is a session of that id. Raises `SessionError`."""
        if not self.archive.path.exists():
            return False
        return await self.ask(partial(find_session, session_id=session_id)) is not None

    async def replay(self, session_id: str, *, asked: bool = False) -> list[Event]:
        """A session as events; one that cannot be stored, from memory. Raises `SessionError`."""
        ledger = self.archive.ledgers.get(session_id)
        try:
            _, entries = await self.stored(session_id)
        except SessionError:
            if ledger is None or not ledger.waiting:
                raise
            entries = []
        entries = together(entries, list(ledger.waiting.values()) if ledger else [])
        return await asyncio.to_thread(lambda: list(Replay(session_id, asked).events(entries)))

    async def lines(self, session_id: str) -> str:
        """A session as JSON Lines. Raises `SessionError`."""
        if self.archive.path.exists():
            tail = read_tail(self.archive.database.locks, session_id)
            text = await self.ask(partial(export_session, session_id=session_id, tail=tail.rows))
            if text is not None:
                return text
        raise self.missing(session_id)

    async def search(self, text: str, cwd: str | None, limit: int) -> list[Found]:
        """Sessions where a text was said. Raises `SessionError`."""
        if not self.archive.path.exists():
            return []
        try:
            while await self.archive.do(index):
                pass
        except SessionError as error:
            logger.info("searching what was indexed before: %s", error)
        return await self.ask(partial(search, text=text, cwd=cwd, limit=limit))

    async def fork(self, session_id: str) -> str:
        """Copy a session, in use or not; the copy's id. Raises `SessionError`."""
        new_id = uuid.uuid4().hex
        if self.archive.path.exists():
            tail = read_tail(self.archive.database.locks, session_id)
            copy = partial(copy_session, session_id=session_id, new_id=new_id, tail=tail.rows)
            if await self.archive.do(copy):
                return new_id
        raise self.missing(session_id)

    async def rename(self, session_id: str, title: str) -> None:
        """Give a session a title. Raises `SessionError`."""
        change = partial(rename_session, session_id=session_id, title=title)
        if not self.archive.path.exists() or not await self.archive.do(change):
            raise self.missing(session_id)
        ledger = self.archive.ledgers.get(session_id)
        if ledger is not None:
            ledger.session.title = ledger.fields["title"] = title

    async def delete(self, session_id: str) -> bool:
        """Remove a session; False where there is none. Raises `SessionError` where it is in use."""
        if not self.archive.path.exists():
            return False
        ledger = self.archive.ledgers.get(session_id)
        if ledger is None and not await self.ask(partial(is_there, session_id=session_id)):
            return False
        lease = (ledger.lease if ledger else None) or self.archive.lease(session_id)
        try:
            removed = await self.archive.do(partial(delete_session, session_id=session_id))
            lease.clear()
        finally:
            lease.release()
        if ledger is not None:
            ledger.gone = True
        return removed

    async def segments(self, session_id: str) -> list[list[Message]]:
        """The histories of a session, oldest first. Raises `SessionError`."""
        stored, entries = await self.stored(session_id)
        return [
            History.of(entry for entry in entries if entry.segment == segment).messages
            for segment in range(stored["segment"] + 1)
        ]
