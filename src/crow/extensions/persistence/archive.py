"""The open sessions of one database file, written by their ledgers."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar
from weakref import WeakValueDictionary

from crow import SessionError
from crow.extensions.persistence.database import Database, explain
from crow.extensions.persistence.lease import Lease
from crow.extensions.persistence.ledger import Batch, Ledger, write
from crow.extensions.persistence.record import Row
from crow.extensions.persistence.writer import Work, Writer

T = TypeVar("T")
SOON = 0.05


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
        """Do something in a transaction of the writer's, behind all else. Raises `SessionError`."""
        for ledger in list(self.ledgers.values()):
            if ledger.writing_soon is not None:
                self._write(ledger)
        return await asyncio.wrap_future(self.writer.submit(work))

    # one open session

    async def begin(self, ledger: Ledger) -> None:
        """Give a new session its row, and its lock. Raises `SessionError`."""
        self.ledgers.setdefault(ledger.session.id, ledger)
        await self.do(lambda _: None)
        ledger.lease = self.lease(ledger.session.id)
        ledger.catch_up()
        await self.flush(ledger)

    def lease(self, session_id: str) -> Lease:
        """The lock of a session. Raises `SessionError`."""
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
        self.save_soon(ledger)
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
        self._write(ledger)

    def save_soon(self, ledger: Ledger) -> None:
        """Write what is new a moment later, all at once: to wake the writer up costs time."""
        ledger.catch_up()
        loop = asyncio.get_running_loop()
        if ledger.writing_soon is not loop:
            ledger.writing_soon = loop
            loop.call_later(SOON, self._write_soon, ledger)

    def _write_soon(self, ledger: Ledger) -> None:
        if ledger.writing_soon is not None:  # nobody has written since, or ended the session
            self._write(ledger)

    def _write(self, ledger: Ledger) -> None:
        ledger.writing_soon = None
        self._submit(ledger, ledger.batch())

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
        ledger.writing_soon = None
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
