"""The stored sessions of one database file: written by ledgers, opened again, looked through."""

from __future__ import annotations

import asyncio
import logging
import uuid
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar
from weakref import WeakValueDictionary

from crow import SessionError, SessionInfo
from crow.events import Event
from crow.extensions.persistence.database import Database, explain
from crow.extensions.persistence.history import Replay
from crow.extensions.persistence.lease import Lease, read_tail
from crow.extensions.persistence.ledger import Batch, Ledger, write
from crow.extensions.persistence.record import Entry, Row, together
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
from crow.extensions.persistence.writer import Work, Writer

logger = logging.getLogger("crow.persistence")

T = TypeVar("T")


class Archive:
    """All sessions of a database. Nothing is opened before the first question or write."""

    def __init__(self, path: Path, synchronous: Literal["normal", "full"]) -> None:
        self.database = Database(path, synchronous=synchronous)
        self.writer = Writer(self.database)
        self.ledgers: WeakValueDictionary[str, Ledger] = WeakValueDictionary()

    @property
    def path(self) -> Path:
        """The database file."""
        return self.database.path

    async def do(self, work: Work[T]) -> T:
        """Do something in a transaction of the writer's. Raises `SessionError`."""
        return await asyncio.wrap_future(self.writer.submit(work))

    async def ask(self, question: Work[T]) -> T:
        """Ask the database something, of all that was written before. Raises `SessionError`."""
        trouble: SessionError | None = None
        try:
            await self.do(lambda _: None)
        except SessionError as error:
            trouble = error
        try:
            return await asyncio.to_thread(self._ask, question)
        except SessionError as error:
            raise trouble or error from error

    def _ask(self, question: Work[T]) -> T:
        import apsw

        try:
            connection = self.database.read()
            try:
                return question(connection)
            finally:
                connection.close()
        except (apsw.Error, ValueError) as error:
            raise explain(error, self.path) from error

    def missing(self, session_id: str) -> SessionError:
        """The error for a session that is not there."""
        seen = "".join(f" ({notice})" for notice in self.database.notices)
        return SessionError(f"there is no session {session_id!r} in {self.path}{seen}")

    # one open session

    async def begin(self, ledger: Ledger) -> None:
        """Give a new session its row, and its lock. Raises `SessionError`."""
        self.ledgers.setdefault(ledger.session.id, ledger)
        await self.do(lambda _: None)
        ledger.lease = self._lease(ledger.session.id)
        ledger.catch_up()
        await self.flush(ledger)

    def _lease(self, session_id: str) -> Lease:
        try:
            return Lease.take(self.database.locks, session_id)
        except OSError as error:
            raise explain(error, self.path) from error

    async def flush(self, ledger: Ledger, *, used: bool = False) -> None:
        """Write all that waits into the database. Raises `SessionError`."""
        upto = ledger.seq
        there = await asyncio.wrap_future(self._submit(ledger, ledger.batch(used=used)))
        if not there or ledger.vanished:
            ledger.begin_again()
            ledger.catch_up()
            upto = ledger.seq
            await asyncio.wrap_future(self._submit(ledger, ledger.batch(used=used)))
        ledger.kept, ledger.error = max(upto, ledger.kept), ""

    async def keep(self, ledger: Ledger) -> None:
        """Make what waits outlive the process, and let the writer take it from there.

        Raises `SessionError` where that, or what the writer took before, is impossible.
        """
        if ledger.lease is None or ledger.vanished or self.database.synchronous == "full":
            return await self.flush(ledger)
        if ledger.error:
            raise SessionError(ledger.error)
        rows = ledger.unkept()
        if len(rows) == len(ledger.waiting):
            ledger.lease.settle()
        self._keep(ledger, ledger.lease, rows)
        self._submit(ledger, ledger.part(rows))
        return None

    def _keep(self, ledger: Ledger, lease: Lease, rows: list[Row]) -> None:
        try:
            lease.keep(rows)
        except OSError as error:
            raise explain(error, self.path) from error
        ledger.kept = ledger.seq

    async def retry(self, ledger: Ledger) -> None:
        """Write what waits, from the beginning where not even that was possible."""
        ledger.catch_up()
        if ledger.lease is None:
            await self.begin(ledger)
        else:
            await self.flush(ledger)

    def save(self, ledger: Ledger) -> None:
        """Write what is new without waiting for it."""
        ledger.catch_up()
        self._submit(ledger, ledger.batch(ledger.unkept()))

    def _submit(self, ledger: Ledger, batch: Batch) -> Future[bool]:
        if ledger.gone or batch.nothing:
            return _done(True)
        future = self.writer.submit(partial(write, batch=batch))
        future.add_done_callback(partial(_settle, ledger, batch))
        return future

    async def end(self, ledger: Ledger) -> None:
        """Write what waits, into the tail if need be, and let others have the session.

        Raises `SessionError` where what waited is lost.
        """
        ledger.catch_up()
        try:
            await self._end(ledger)
        finally:
            if ledger.lease is not None:
                ledger.lease.release()
            if self.ledgers.get(ledger.session.id) is ledger:
                del self.ledgers[ledger.session.id]
            self.writer.rest()

    async def _end(self, ledger: Ledger) -> None:
        try:
            await self.flush(ledger)
            if ledger.lease is not None:
                ledger.lease.clear()
        except SessionError:
            if ledger.lease is None:
                raise
            self._keep(ledger, ledger.lease, ledger.unkept())

    async def load(self, session_id: str) -> Ledger:
        """Open a stored session, mended. Raises `SessionError`."""
        if not self.path.exists() or not await self.ask(partial(is_there, session_id=session_id)):
            raise self.missing(session_id)
        lease, trouble = self._try_lease(session_id)
        try:
            tail = read_tail(self.database.locks, session_id)
            ledger = await self.ask(partial(restore, session_id=session_id, tail=tail))
            if ledger is None:
                raise self.missing(session_id)
            ledger.lease, ledger.trouble = lease, trouble
            await self._mend(ledger)
        except BaseException:
            if lease is not None:
                lease.release()
            raise
        self.ledgers[session_id] = ledger
        return ledger

    def _try_lease(self, session_id: str) -> tuple[Lease | None, str]:
        """The lock, or why there is none. Raises `SessionError` where another holds it."""
        try:
            return Lease.take(self.database.locks, session_id), ""
        except OSError as error:
            return None, str(explain(error, self.path))

    async def _mend(self, ledger: Ledger) -> None:
        """Store what was mended; what cannot be written now waits."""
        try:
            if ledger.damaged:
                seqs = ledger.damaged
                await self.do(partial(mark_damaged, session_id=ledger.session.id, seqs=seqs))
            await self.flush(ledger)
            if ledger.lease is not None:
                ledger.lease.clear()
        except SessionError as error:
            ledger.trouble = str(error)

    # all of them

    async def page(
        self, cwd: str | None, cursor: str | None, limit: int
    ) -> tuple[list[SessionInfo], str | None]:
        """One page of the list; empty where nothing was ever stored."""
        if not self.path.exists():
            return [], None
        return await self.ask(partial(session_page, cwd=cwd, cursor=cursor, limit=limit))

    async def stored(self, session_id: str) -> tuple[Stored, list[Entry]]:
        """A session's row and all rows of its log, without opening it. Raises `SessionError`."""
        tail = read_tail(self.database.locks, session_id)
        if self.path.exists():
            found = await self.ask(partial(whole_session, session_id=session_id))
            if found is not None:
                return found[0], together(found[1], tail.rows)
        raise self.missing(session_id)

    async def knows(self, session_id: str) -> bool:
        """True where there is a session of that id. Raises `SessionError`."""
        if not self.path.exists():
            return False
        return await self.ask(partial(find_session, session_id=session_id)) is not None

    async def replay(self, session_id: str, *, asked: bool = False) -> list[Event]:
        """A session as events; one that cannot be stored, from memory. Raises `SessionError`."""
        ledger = self.ledgers.get(session_id)
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
        if self.path.exists():
            tail = read_tail(self.database.locks, session_id)
            text = await self.ask(partial(export_session, session_id=session_id, tail=tail.rows))
            if text is not None:
                return text
        raise self.missing(session_id)

    async def search(self, text: str, cwd: str | None, limit: int) -> list[Found]:
        """Sessions where a text was said. Raises `SessionError`."""
        if not self.path.exists():
            return []
        try:
            while await self.do(index):
                pass
        except SessionError as error:
            logger.info("searching what was indexed before: %s", error)
        return await self.ask(partial(search, text=text, cwd=cwd, limit=limit))

    async def fork(self, session_id: str) -> str:
        """Copy a session, in use or not; the copy's id. Raises `SessionError`."""
        new_id = uuid.uuid4().hex
        if self.path.exists():
            tail = read_tail(self.database.locks, session_id)
            copy = partial(copy_session, session_id=session_id, new_id=new_id, tail=tail.rows)
            if await self.do(copy):
                return new_id
        raise self.missing(session_id)

    async def rename(self, session_id: str, title: str) -> None:
        """Give a session a title. Raises `SessionError`."""
        change = partial(rename_session, session_id=session_id, title=title)
        if not self.path.exists() or not await self.do(change):
            raise self.missing(session_id)
        ledger = self.ledgers.get(session_id)
        if ledger is not None:
            ledger.session.title = ledger.fields["title"] = title

    async def delete(self, session_id: str) -> bool:
        """Remove a session; False where there is none. Raises `SessionError` where it is in use."""
        if not self.path.exists():
            return False
        ledger = self.ledgers.get(session_id)
        if ledger is None and not await self.ask(partial(is_there, session_id=session_id)):
            return False
        lease = (ledger.lease if ledger else None) or self._lease(session_id)
        try:
            removed = await self.do(partial(delete_session, session_id=session_id))
            lease.clear()
        finally:
            lease.release()
        if ledger is not None:
            ledger.gone = True
        return removed


def _done(value: bool) -> Future[bool]:
    future: Future[bool] = Future()
    future.set_result(value)
    return future


def _settle(ledger: Ledger, batch: Batch, future: Future[bool]) -> None:
    """Note what came of a write; called by the writer's thread."""
    error = future.exception()
    if error is not None:
        ledger.error = str(error)
    elif future.result():
        ledger.written(batch)
    else:
        ledger.vanished = True
