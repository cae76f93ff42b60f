"""A worker: it leases jobs, runs so many sessions at once, and takes back what others left."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import socket
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from crow.fleet.board import Board
from crow.fleet.containers import Kinds, sweep
from crow.fleet.database import retried
from crow.fleet.job_filter import JobFilter
from crow.fleet.job_run import Build, JobRun
from crow.fleet.leases import Leases
from crow.fleet.queue import Offer, Renewing
from crow.fleet.schedules import Schedules
from crow.fleet.task import FleetError
from crow.fleet.webhooks import AT_ONCE, Webhooks
from crow.fleet.workspace import NONE

logger = logging.getLogger("crow.fleet")

T = TypeVar("T")

POLL = 5.0
"""Seconds between two looks at the queue where nothing was heard."""
HOUR = 3600.0


class Worker:
    """Runs jobs until `drain`. ``ended`` is called with each and how it was left, None where lost.

    ``until_empty``: it ends where nothing is queued, runs or can come back.
    """

    def __init__(
        self,
        board: Board,
        build: Build,
        root: Path,
        *,
        concurrency: int = 4,
        grace: float = 30.0,
        until_empty: bool = False,
        kinds: Kinds = NONE,
        ended: Callable[[JobRun, Any], None] = lambda _, __: None,
    ) -> None:
        self.board = board
        self.root = root
        self.concurrency = concurrency
        self.grace = grace
        self.who = f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:6]}"
        self.running: dict[asyncio.Task[None], JobRun] = {}
        self._build = build
        self._ended = ended
        self._until_empty = until_empty
        self._kinds = kinds
        self._schedules = Schedules(board)
        self._webhooks = Webhooks(board)
        self._leases = Leases(board.address, board.lease)
        self._news = asyncio.Event()
        self._draining = False

    def drain(self) -> None:
        """Begin nothing more, and hand back after the time of grace what still runs."""
        self._draining = True
        self._news.set()

    async def run(self) -> None:
        """Work until `drain`, or until nothing is left. Raises `FleetError`."""
        self._leases.start()
        beside = [
            asyncio.create_task(self._tick(), name="fleet tick"),
            asyncio.create_task(self._listen(), name="fleet listen"),
            *(asyncio.create_task(self._again(*each)) for each in self._chores()),
        ]
        try:
            await self._waited(self._come_by)  # who refuses is known before anything is asked
            while not self._draining:
                self._news.clear()
                if await self._fill() and self._until_empty and await self._is_over():
                    break
                await self._wait()
            await self._finish()
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            await asyncio.gather(self.board.go(self.who), return_exceptions=True)
            await asyncio.to_thread(self._leases.close)

    def _chores(self) -> list[tuple[Callable[[], Awaitable[None]], float]]:
        """What is done beside the jobs, and the seconds from one time to the next."""
        return [
            (self._rescue, self.board.lease / 3),
            (self._schedule, POLL),
            (self._tell, POLL),
            (self.board.clean, HOUR),
            (self._sweep, HOUR),
        ]

    async def _fill(self) -> bool:
        """Begin what there is room for; True where there was nothing more to begin."""
        free = self.concurrency - len(self.running)
        if not free:
            return False
        try:
            offers = await self.board.queue.lease(free)
        except Exception as error:  # noqa: BLE001 - the engine's, whatever it is: it is tried again
            logger.warning("the queue was not reached: %s", error)
            return False
        for offer in offers:
            await self._begin(offer)
        return len(offers) < free

    async def _begin(self, offer: Offer) -> None:
        try:
            claimed = await self.board.claim(offer, self.who)
        except Exception as error:  # noqa: BLE001 - the database's; the job is offered again
            logger.warning("%s was not begun: %s", offer.job, error)
            return None
        if claimed is None:
            return await self._over(offer)
        running = JobRun(self.board, claimed, self.root, self._build, offer, self._kinds)
        loop = asyncio.get_running_loop()
        self._leases.hold(running.key, lambda why: loop.call_soon_threadsafe(running.call_off, why))
        task = asyncio.create_task(self._see_through(running), name=claimed.job)
        self.running[task] = running
        task.add_done_callback(self._forget)
        return None

    def _forget(self, task: asyncio.Task[None]) -> None:
        del self.running[task]
        self._news.set()

    async def _see_through(self, running: JobRun) -> None:
        left = None
        try:
            left = await running.run()
        except Exception:
            logger.exception("%s ended with an error of Crow's", running.claimed.job)
        finally:
            self._leases.drop(running.key)
        await self._over(running.offer)
        self._ended(running, left)

    async def _over(self, offer: Offer) -> None:
        try:
            await self.board.queue.finish(offer, "done")
        except Exception as error:  # noqa: BLE001 - a row that is left counts for nothing
            logger.info("the offer of %s stays in the queue: %s", offer.job, error)

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(POLL * random.uniform(0.5, 1)):  # noqa: S311
                await self._news.wait()
        except TimeoutError:
            pass

    async def _is_over(self) -> bool:
        if self.running:
            return False
        summary = await self._waited(lambda: self.board.summary(JobFilter()))
        return not summary["states"].keys() & {"queued", "running"}

    async def _waited(self, work: Callable[[], Awaitable[T]]) -> T:
        """What the database says, which may be away for a while."""
        return await retried(work, patience=self.board.database.patience)

    async def _finish(self) -> None:
        """Let what runs come to its end for a while, then to that of its turn; then cut it off."""
        await self._ended_within(self.grace)
        for running in self.running.values():
            running.hand_back()
        await self._ended_within(self.grace)
        for running in self.running.values():
            running.call_off("drained")
        await self._ended_within(None)

    async def _ended_within(self, seconds: float | None) -> None:
        if self.running:
            await asyncio.wait(self.running, timeout=seconds)

    async def _tick(self) -> None:
        while True:
            self._leases.alive()
            if isinstance(queue := self.board.queue, Renewing):
                for running in [*self.running.values()]:
                    await queue.renew(running.offer, running.seq)
            await asyncio.sleep(1)

    async def _rescue(self) -> None:
        """Take back what workers left that are not heard of; each worker does, none leads."""
        await self._come_by()
        if await self.board.rescue():
            logger.info("jobs of a worker that is not heard of were taken back")
        if await self.board.offer_due() or await self.board.offer_again():
            self._news.set()

    async def _come_by(self) -> None:
        """Say that this one is there, and hear what all are asked to do."""
        if await self.board.come_by(self.who, self.concurrency, len(self.running)):
            self.drain()

    async def _tell(self) -> None:
        """Post what there is to be told; each worker looks, and each message is taken by one."""
        await self._webhooks.look()
        while await self._webhooks.deliver() == AT_ONCE:
            pass

    async def _sweep(self) -> None:
        """Remove containers that nobody needs, of this machine or wherever they are made."""
        await sweep(self._kinds, self.board)

    async def _schedule(self) -> None:
        """Submit what schedules want; each worker looks, and each tick is submitted once."""
        if await self._schedules.tick():
            self._news.set()

    async def _again(self, work: Callable[[], Awaitable[None]], pause: float) -> None:
        """Do something now and then, for as long as this works."""
        while True:
            try:
                await work()
            except Exception as error:  # noqa: BLE001 - the database's; it is tried again
                logger.warning("%s: %s", work.__name__.strip("_"), error)
            await asyncio.sleep(pause * random.uniform(0.5, 1))  # noqa: S311

    async def _listen(self) -> None:
        async def wake() -> None:
            self._news.set()

        async def cancel(job: str) -> None:
            await self.board.cancel(JobFilter(job=job))

        while True:
            try:
                await self.board.queue.listen(wake, cancel)
            except Exception as error:  # noqa: BLE001 - the engine's; it is tried again
                logger.info("the queue is not heard: %s", error)
                await asyncio.sleep(1)


__all__ = ["FleetError", "Worker"]
