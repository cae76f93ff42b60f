"""The one thread that writes: it takes work in order and commits what waits together.

It is patient once with whoever holds the lock, and then no more until it could write again.

Nobody's event loop ever waits for a lock or a disk; it waits for a future.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    from crow.extensions.persistence.backend import Backend
    from crow.extensions.persistence.sql import Connection

logger = logging.getLogger("crow.persistence")

T = TypeVar("T")
Work: TypeAlias = "Callable[[Connection], T]"
Job: TypeAlias = "tuple[Work[Any], Future[Any], bool]"
PAUSE = 0.3
BUSY_TIMEOUT = 3000
SHORT_TIMEOUT = 100
"""Milliseconds to wait for a lock, and where somebody has kept it for so long already."""


class Writer:
    """Writes to one database, from any number of event loops. The thread lives while it is used."""

    def __init__(self, place: Backend) -> None:
        self.place = place
        self._jobs: SimpleQueue[Job | None] | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._tidy = threading.Event()

    def submit(self, work: Work[T], *, at_once: bool = False) -> Future[T]:
        """Do something in a transaction, after all that was submitted before.

        ``at_once`` is work of one statement, which needs no transaction where it is alone. The
        future raises `SessionError`, and nothing of the work is stored then. Waiting for it may be
        given up; the work is done all the same.
        """
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        with self._lock:
            if self._jobs is None:
                self._jobs = SimpleQueue()
                self._thread = threading.Thread(
                    target=self._live, args=(self._jobs,), name="crow-writer", daemon=True
                )
                self._thread.start()
            self._jobs.put((work, future, at_once))
        return future

    def rest(self) -> None:
        """Tidy up as soon as nothing has been submitted for a moment."""
        self._tidy.set()
        self.submit(lambda _: None)

    def close(self) -> None:
        """Finish what was submitted and close the file; the next submission opens it again."""
        with self._lock:
            jobs, thread = self._jobs, self._thread
            self._jobs = self._thread = None
        if jobs is not None and thread is not None:
            jobs.put(None)
            thread.join()

    def _live(self, jobs: SimpleQueue[Job | None]) -> None:
        connection: Connection | None = None
        ending = False
        while not ending:
            batch, ending = _waiting(jobs, PAUSE if self._tidy.is_set() else None)
            if batch:
                connection = self._perform(connection, batch)
            else:
                self._tidy.clear()
                if connection is not None and not ending:
                    _clean(self.place, connection, jobs)
        if connection is not None:
            connection.close()
        self.place.close()

    def _perform(
        self, connection: Connection | None, batch: list[Job], since: float | None = None
    ) -> Connection | None:
        """Do a batch in one transaction, or each job in its own where one of them fails."""
        try:
            connection = connection or self.place.open()
            connection.set_busy_timeout(self.place.patience)
            results = _done(self.place, connection, batch)
        except Exception as error:  # noqa: BLE001 - it is the submitter's, whatever it is
            if self.place.is_locked(error.__cause__ or error):
                self.place.patience = SHORT_TIMEOUT
            elif self.place.again(error, waited := 0.0 if since is None else monotonic() - since):
                self.place.failed(connection, error)
                sleep(min(waited / 4, 1))
                return self._perform(None, batch, since or monotonic())
            elif connection is not None and len(batch) > 1:
                for job in batch:
                    connection = self._perform(connection, [job])
                return connection
            told = self.place.explain(error)
            connection = self.place.failed(connection, error)
            for _, future, _ in batch:
                future.set_exception(told)
            return connection
        self.place.patience = BUSY_TIMEOUT
        for (_, future, _), result in zip(batch, results, strict=True):
            future.set_result(result)
        return connection


def _waiting(jobs: SimpleQueue[Job | None], patience: float | None) -> tuple[list[Job], bool]:
    """Wait for work, and take all that is there; True where nothing will follow.

    No work, where none comes for so many seconds.
    """
    batch: list[Job] = []
    try:
        job = jobs.get(timeout=patience)
        while job is not None:
            batch.append(job)
            job = jobs.get_nowait()
    except Empty:
        return batch, False
    return batch, True


def _done(place: Backend, connection: Connection, batch: list[Job]) -> list[Any]:
    if len(batch) == 1 and batch[0][2]:
        return [batch[0][0](connection)]
    return _transact(place, connection, [work for work, *_ in batch])


def _transact(place: Backend, connection: Connection, works: Iterable[Work[Any]]) -> list[Any]:
    connection.execute(place.begin)
    try:
        results = [work(connection) for work in works]
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return results


def _clean(place: Backend, connection: Connection, jobs: SimpleQueue[Job | None]) -> None:
    """Index what was said, and put what is written where a power cut cannot reach it."""
    try:
        while _transact(place, connection, [place.index])[0] and jobs.empty():
            pass
        if jobs.empty():
            place.tidy(connection)
    except Exception as error:  # noqa: BLE001 - the thread must live on: others wait for it
        logger.info("the database was not tidied up: %s", error)
