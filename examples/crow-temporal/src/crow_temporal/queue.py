"""A `crow.fleet.Queue`: Temporal says what may begin, and the table of jobs who has begun.

`run_session` is the activity. It puts its offer where `lease` finds it, tells Temporal how far the
session is, and lasts until the offer is finished.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from temporalio import activity
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import Priority
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Worker

from crow.fleet import FleetError, Offer
from crow_temporal.workflow import ACTIVITY, BEAT, RunSession

HIGHEST, ORDINARY, LOWEST = 1, 3, 5
"""Priorities of Temporal's."""
Key = tuple[str, int]


@dataclass
class Held:
    """An activity that waits for a session to stop. ``seq`` is how far that is stored."""

    offer: Offer
    seq: int = 0
    ended: asyncio.Future[str] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class TemporalQueue:
    """The queue of a process that may run so many sessions at once (``places``).

    ``client`` is for who has one; else it connects where ``TEMPORAL_ADDRESS`` says.
    """

    def __init__(self, places: int = 0, client: Client | None = None) -> None:
        self.places = places
        self.name = os.environ.get("TEMPORAL_TASK_QUEUE", "crow-fleet")
        self._client = client
        self._found: list[Held] = []
        self._held: dict[Key, Held] = {}
        self._wake: Callable[[], Awaitable[None]] | None = None
        self._cancel: Callable[[str], Awaitable[None]] | None = None

    async def connected(self) -> Client:
        """The client. Raises `FleetError` where there is no server."""
        if self._client is None:
            address = os.environ.get("TEMPORAL_ADDRESS", "127.0.0.1:7233")
            namespace = os.environ.get("TEMPORAL_NAMESPACE", "default")
            try:
                self._client = await Client.connect(address, namespace=namespace)
            except RuntimeError as error:
                raise FleetError(f"Temporal cannot be reached at {address}: {error}") from error
        return self._client

    async def offer(self, offers: Sequence[Offer], connection: Any = None) -> list[int]:
        """Start a workflow for each; one that runs already is that very offer."""
        client = await self.connected()
        await asyncio.gather(*(self._start(client, offer) for offer in offers))
        return [0] * len(offers)

    async def _start(self, client: Client, offer: Offer) -> None:
        key = min(max(ORDINARY - offer.priority, HIGHEST), LOWEST)
        try:
            await client.start_workflow(
                RunSession.run,
                args=[offer.job, offer.epoch],
                id=name_of(offer),
                task_queue=self.name,
                priority=Priority(priority_key=key),
            )
        except WorkflowAlreadyStartedError:
            pass
        except RPCError as error:
            raise FleetError(f"Temporal did not take {name_of(offer)}: {error}") from error

    async def lease(self, limit: int) -> list[Offer]:
        """Take offers whose activities have begun here."""
        taken, self._found = self._found[:limit], self._found[limit:]
        return [held.offer for held in taken]

    async def renew(self, offer: Offer, seq: int) -> None:
        """The next heartbeat has how far the session is."""
        if held := self._held.get((offer.job, offer.epoch)):
            held.seq = seq

    async def finish(self, offer: Offer, end: Literal["done", "failed"]) -> None:
        """Let the offer's activity end."""
        held = self._held.get((offer.job, offer.epoch))
        if held is not None and not held.ended.done():
            held.ended.set_result(end)

    async def waiting(self, offers: Sequence[Offer]) -> set[str]:
        """Those whose workflows run: Temporal brings them to somebody."""
        client = await self.connected()
        running = await asyncio.gather(*(self._runs(client, offer) for offer in offers))
        return {offer.job for offer, runs in zip(offers, running, strict=True) if runs}

    async def _runs(self, client: Client, offer: Offer) -> bool:
        try:
            told = await client.get_workflow_handle(name_of(offer)).describe()
        except RPCError as error:
            if error.status == RPCStatusCode.NOT_FOUND:
                return False
            raise FleetError(f"Temporal did not tell of {name_of(offer)}: {error}") from error
        return told.status == WorkflowExecutionStatus.RUNNING

    async def listen(
        self, wake: Callable[[], Awaitable[None]], cancel: Callable[[str], Awaitable[None]]
    ) -> None:
        """Be a worker of Temporal's until cancelled."""
        self.attend(wake, cancel)
        worker = Worker(
            await self.connected(),
            task_queue=self.name,
            workflows=[RunSession],
            activities=[self.run_session],
            max_concurrent_activities=self.places or 1,
        )
        await worker.run()

    def attend(
        self, wake: Callable[[], Awaitable[None]], cancel: Callable[[str], Awaitable[None]]
    ) -> None:
        """Tell from now on who leases (``wake``) and who can call a job off (``cancel``)."""
        self._wake, self._cancel = wake, cancel

    @activity.defn(name=ACTIVITY)
    async def run_session(self, job: str, epoch: int) -> str:
        """Last until the session of this offer stops; how that was.

        Raises ``CancelledError`` where people have cancelled the workflow: the session is, too.
        """
        held = Held(Offer(job, epoch))
        self._held[job, epoch] = held
        self._found.append(held)
        try:
            if self._wake is not None:
                await self._wake()
            while not held.ended.done():
                activity.heartbeat(held.seq)
                await asyncio.wait({held.ended}, timeout=BEAT)
            return held.ended.result()
        except asyncio.CancelledError:
            await self._called_off(held)
            raise
        finally:
            self._found = [each for each in self._found if each is not held]
            if self._held.get((job, epoch)) is held:
                del self._held[job, epoch]

    async def _called_off(self, held: Held) -> None:
        """Cancel the session where that is what people want, and see its end.

        A worker that ends cancels its activities as well; then Temporal starts them elsewhere.
        """
        details = activity.cancellation_details()
        if details is None or not details.cancel_requested or self._cancel is None:
            return
        await self._cancel(held.offer.job)
        if held not in self._found:
            await held.ended


def name_of(offer: Offer) -> str:
    """The workflow's id."""
    return f"crow-{offer.job}-{offer.epoch}"
