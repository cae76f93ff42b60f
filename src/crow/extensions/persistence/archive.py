"""The archive of one database: its open sessions, written by their logs, and kept through runs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar
from weakref import WeakValueDictionary

from crow import Context, RunContext
from crow.errors import SessionError
from crow.events import Notice
from crow.extensions.persistence.record import Row
from crow.extensions.persistence.session_log import Batch, SessionLog
from crow.extensions.persistence.writer import Work, Writer

if TYPE_CHECKING:
    from crow.extensions.persistence.backend import Backend
    from crow.extensions.persistence.lease import Claim

T = TypeVar("T")
SOON = 0.05
BRIEFLY = 0.01
PATIENCE = 1.0
SCHEMES = ("postgresql://", "postgres://")


def place_of(where: str | Path, *, synchronous: Literal["normal", "full"] = "normal") -> Backend:
    """The place that an address or a path names."""
    if str(where).startswith(SCHEMES):
        from crow.extensions.persistence.postgres import Postgres

        return Postgres(str(where))
    from crow.extensions.persistence.database import Database

    return Database(Path(os.path.expanduser(where)).absolute(), synchronous=synchronous)


class Archive:
    """All sessions of a database. Nothing is opened before the first question or write."""

    def __init__(self, place: Backend) -> None:
        self.place = place
        self.writer = Writer(place)
        self.logs: WeakValueDictionary[str, SessionLog] = WeakValueDictionary()

    async def do(self, work: Work[T]) -> T:
        """Do something in a transaction of the writer's, behind all else. Raises `SessionError`."""
        for log in list(self.logs.values()):
            if log.timer.is_on:
                self._write(log)
        return await asyncio.wrap_future(self.writer.submit(work))

    async def ask(self, question: Work[T]) -> T:
        """Ask the database something, of all that was written before. Raises `SessionError`."""
        from crow.tools import read_in_thread

        trouble: SessionError | None = None
        try:
            await self.do(lambda _: None)
        except SessionError as error:
            trouble = error
        try:
            return await read_in_thread(self._answer, question)
        except SessionError as error:
            raise trouble or error from error

    def _answer(self, question: Work[T]) -> T:
        try:
            connection = self.place.read()
            try:
                return question(connection)
            finally:
                connection.close()
        except (*self.place.errors, ValueError) as error:
            raise self.place.explain(error) from error

    # one open session

    async def begin(self, log: SessionLog) -> None:
        """Give a new session its row, and its lock. Raises `SessionError`."""
        self.logs.setdefault(log.session.id, log)
        await self.do(lambda _: None)
        log.hold(await self.claim(log.session.id))
        log.catch_up()
        await self.flush(log)

    async def claim(self, session_id: str) -> Claim:
        """The right to write a session. Raises `SessionError`."""
        try:
            if self.place.path is not None:  # a lock of the kernel's, in microseconds
                return self.place.claim(session_id)
            return await asyncio.to_thread(self.place.claim, session_id)
        except OSError as error:
            raise self.place.explain(error) from error

    async def release(self, claim: Claim | None) -> None:
        """Let others have a session."""
        if claim is not None and self.place.path is None:
            await asyncio.to_thread(claim.release)
        elif claim is not None:
            claim.release()

    async def flush(self, log: SessionLog, *, used: bool = False) -> None:
        """Write all that waits into the database. Raises `SessionError`."""
        upto = log.seq
        there = await asyncio.wrap_future(self._submit(log, log.batch(used=used)))
        if not there or log.vanished:
            log.begin_again()
            log.catch_up()
            upto = log.seq
            await asyncio.wrap_future(self._submit(log, log.batch(used=used)))
        log.kept, log.error = max(upto, log.kept), ""

    async def flush_briefly(self, log: SessionLog) -> None:
        """`flush`, waited for as long as it mostly takes; it goes on by itself then."""
        upto = log.seq
        writing = asyncio.wrap_future(self._submit(log, log.batch()))
        writing.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait({writing}, timeout=BRIEFLY)
        if not writing.done():
            return
        if not writing.result() or log.vanished:
            await self.flush(log)
        log.kept, log.error = max(upto, log.kept), ""

    def keep(self, log: SessionLog) -> Awaitable[None] | None:
        """Make what waits outlive the process, and let the writer take it from there.

        What it answers is to be awaited; None where nobody has to wait. Raises `SessionError` where
        that, or what the writer took before, is impossible.
        """
        if log.lease is None or log.vanished or not self.place.keeps_records:
            return self.flush(log)
        if log.error:
            raise SessionError(log.error)
        rows = log.unkept()
        if len(rows) == len(log.waiting):
            log.lease.settle()
        self._keep(log, log.lease, rows)
        self.save_soon(log)
        return None

    def keep_soon(self, log: SessionLog) -> Awaitable[None] | None:
        """Make what waits outlive the process in a moment, where that takes longer than one.

        As `keep`.
        """
        if log.lease is None or log.vanished or self.place.keeps_records:
            return self.keep(log)
        if log.error:
            raise SessionError(log.error)
        return self.save_soon(log)

    def _keep(self, log: SessionLog, lease: Claim, rows: list[Row]) -> None:
        try:
            lease.keep(rows)
        except OSError as error:
            raise self.place.explain(error) from error
        log.kept = log.seq

    async def retry(self, log: SessionLog) -> None:
        """Write what waits, from the beginning where not even that was possible."""
        log.catch_up()
        if log.lease is None:
            await self.begin(log)
        else:
            await self.flush(log)

    def save(self, log: SessionLog) -> None:
        """Write what is new without waiting for it."""
        log.catch_up()
        self._write(log)

    def save_soon(self, log: SessionLog, within: float = SOON) -> None:
        """Write what is new a moment later, all at once: to wake the writer up costs time."""
        log.catch_up()
        loop = asyncio.get_running_loop()
        if log.timer.is_later(loop, within):
            log.timer.start(loop, within, lambda: self._write(log))

    def _write(self, log: SessionLog) -> None:
        self._submit(log, log.batch())

    def _submit(self, log: SessionLog, batch: Batch) -> Future[bool]:
        log.timer.stop()
        if log.gone or batch.nothing:
            return _done(True)
        work = partial(self.place.write, batch=batch, claim=log.lease)
        future = self.writer.submit(work, at_once=self.place.writes_at_once and not batch.first)
        future.add_done_callback(partial(_settle, log, batch))
        return future

    async def end(self, log: SessionLog) -> None:
        """Write what waits, into the tail if need be, and let others have the session.

        Raises `SessionError` where what waited is lost.
        """
        log.catch_up()
        try:
            await self._end(log)
        finally:
            await self.release(log.lease)
            if self.logs.get(log.session.id) is log:
                del self.logs[log.session.id]
            self.writer.rest()

    async def _end(self, log: SessionLog) -> None:
        try:
            await self.flush(log)
            if log.lease is not None:
                log.lease.clear()
        except SessionError:
            if log.lease is None:
                raise
            self._keep(log, log.lease, log.unkept())


def _done(value: bool) -> Future[bool]:
    future: Future[bool] = Future()
    future.set_result(value)
    return future


def _settle(log: SessionLog, batch: Batch, future: Future[bool]) -> None:
    """Note what came of a write; called by the writer's thread."""
    error = future.exception()
    if error is not None:
        log.error = str(error)
    elif future.result():
        log.written(batch)
    else:
        log.vanished = True


class Keeper:
    """Keeps what the hooks record; where that is impossible the run ends, and its user is told."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive

    def note(self, ctx: Context, log: SessionLog) -> Awaitable[None] | None:
        """`keep`, for whom it is all the same whether that was possible; mostly it is at once."""
        try:
            more = None if log.trouble else self._archive.keep(log)
        except SessionError as error:
            return self.fail(ctx, log, str(error))
        return None if more is None else self.noted(ctx, log, more)

    async def noted(self, ctx: Context, log: SessionLog, more: Awaitable[None]) -> None:
        await self.attempt(ctx, log, lambda _: more)

    async def keep(self, ctx: Context, log: SessionLog) -> bool:
        """Let what waits outlive the process; False where that is impossible.

        The first time it is, the run ends. While there is trouble nothing is tried: `retry` does
        that once before and after a run.
        """
        return await self.attempt(ctx, log, self._archive.keep)

    async def store(self, ctx: Context, log: SessionLog, *, used: bool = False) -> bool:
        """Write what waits into the database, now; False where that is impossible."""
        return await self.attempt(ctx, log, partial(self._archive.flush, used=used))

    async def left(self, ctx: RunContext, log: SessionLog) -> bool:
        """As `store`, at a run's end; who has cancelled it does not wait for megabytes."""
        write = self._archive.flush_briefly if ctx.cancelled else self._archive.flush
        return await self.attempt(ctx, log, write)

    async def attempt(
        self, ctx: Context, log: SessionLog, work: Callable[[SessionLog], Awaitable[None] | None]
    ) -> bool:
        if not log.trouble:
            try:
                if (more := work(log)) is not None:
                    await more
            except SessionError as error:
                if not log.trouble:
                    await self.fail(ctx, log, str(error))
        return not log.trouble

    async def fail(self, ctx: Context, log: SessionLog, trouble: str) -> None:
        log.trouble = trouble
        log.failure = trouble if ctx.run is not None else ""
        ctx.stop(trouble, stop_reason="error")
        text = f"the session cannot be stored: {trouble}"
        await ctx.emit(Notice(text, "error", "persistence"))

    async def retry(self, ctx: Context, log: SessionLog) -> None:
        """Try once more to write all that waits, for a moment."""
        try:
            async with asyncio.timeout(PATIENCE):
                await self._archive.retry(log)
        except (SessionError, TimeoutError):
            return
        log.trouble = ""
        await ctx.emit(Notice("the session is stored again", "info", "persistence"))
