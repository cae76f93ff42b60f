"""Retries and time-outs: how long an endpoint is waited for, and when a request is sent again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import TypeAlias, TypeVar

from crow.core.errors import ModelError
from crow.core.events import Retrying
from crow.core.ports.llm import Completion, Delta
from crow.core.support.frozen import frozen
from crow.core.support.tasks import Begun
from crow.llm.http.assembly import Shown

T = TypeVar("T")


@frozen
class Timeouts:
    """Ceilings in seconds.

    ``connect`` bounds reaching the endpoint, ``first_byte`` the wait for the response's headers,
    ``idle`` the wait for something of meaning (text, reasoning, a call; not any bytes), ``total``
    all waiting for one request with its retries. While a stream shows by pings that it is alive,
    ``pinged`` is the wait instead. ``load`` is how long a server on this machine may take until
    it has loaded its model, ``listen`` until it listens; None is as long as ``load``, for some load
    first. ``closing`` is how long a stream that gave its finish
    reason may take to say that it is done.
    """

    connect: float = 15.0
    first_byte: float = 300.0
    idle: float = 300.0
    pinged: float = 1800.0
    load: float = 300.0
    listen: float | None = None
    total: float = 3600.0
    closing: float = 5.0


class Clock:
    """Counts the time that one request spends waiting; what its reader takes is not counted."""

    __slots__ = ("_idle", "_loop", "_quiet", "_spent", "timeouts")

    def __init__(self, timeouts: Timeouts) -> None:
        self.timeouts = timeouts
        self._loop = asyncio.get_running_loop()
        self._idle = 0.0
        self._quiet = 0.0
        self._spent = 0.0

    @property
    def spent(self) -> float:
        """The seconds that were waited."""
        return self._spent

    @property
    def exhausted(self) -> bool:
        """True once the total is spent."""
        return self._spent >= self.timeouts.total

    def progress(self) -> None:
        """Something of meaning came: the idle time starts again."""
        self._idle = self._quiet = 0.0

    def ping(self) -> None:
        """A sign of life came: the idle time starts again, as long as that is believed."""
        if self._quiet < self.timeouts.pinged:
            self._idle = 0.0

    async def headers(self, pending: Awaitable[T]) -> T:
        """Wait for a response to begin. Raises `ModelError` (timeout)."""
        self.progress()
        limit = self.timeouts.connect + self.timeouts.first_byte
        response = await self._wait(pending, limit, f"sent no response in {limit:g} s")
        self.progress()
        return response

    async def event(self, pending: Awaitable[T], *, closing: bool = False) -> T:
        """Wait for more of a response. Raises `ModelError` (timeout)."""
        limit = min(self.timeouts.closing, self.timeouts.idle) if closing else self.timeouts.idle
        return await self._wait(pending, limit - self._idle, f"stalled: nothing new in {limit:g} s")

    async def pause(self, seconds: float) -> None:
        """Wait between two attempts."""
        await self._wait(asyncio.sleep(seconds), float("inf"), "")

    async def _wait(self, pending: Awaitable[T], limit: float, what: str) -> T:
        began = self._loop.time()
        begun = Begun(pending)
        if begun.done:
            return begun.value
        left = self.timeouts.total - self._spent
        ceiling = asyncio.timeout(max(0.0, min(limit, left)))
        try:
            async with ceiling:
                return await begun
        except TimeoutError as error:
            if not ceiling.expired():
                raise
            if left <= limit:
                text = f"took longer than {self.timeouts.total:g} s in total"
                raise ModelError(text, kind="timeout") from error
            raise ModelError(what, kind="timeout") from error
        finally:
            waited = self._loop.time() - began
            self._idle += waited
            self._quiet += waited
            self._spent += waited


Batch: TypeAlias = "list[Delta | Completion]"
Attempt: TypeAlias = Callable[[Shown], AsyncGenerator[Batch, None]]

RETRYABLE = frozenset({"rate_limit", "overloaded", "server", "network", "timeout", "protocol"})


class UnreachableError(ModelError):
    """Nobody answers at the endpoint's address; that seldom mends itself."""


class BotchedError(ModelError):
    """The model wrote what is no answer; asked once more it often does better."""


class StartingError(ModelError):
    """A server has not loaded its model yet."""


class NotListeningError(StartingError):
    """Nobody listens on this machine yet."""


WHY = "is it running, and is the base URL right?"


def unreachable(why: str = "") -> UnreachableError:
    """The error where nobody answers; without a reason where that took too long."""
    if not why:
        return UnreachableError("could not be reached in time", kind="timeout")
    return UnreachableError(f"could not be reached: {why} ({WHY})", kind="network")


@frozen
class Retries:
    """Bounded retries with full jitter; times in seconds.

    The wait before retry n is random between 0 and ``base * 2**(n-1)``, at most ``ceiling``, and
    never shorter than the endpoint asked for (Retry-After). An endpoint that asks for more than
    ``patience`` fails the request at once. ``unreachable`` is the limit where nobody answers,
    ``botched`` that where an answer was none.
    """

    limit: int = 5
    base: float = 1.0
    ceiling: float = 30.0
    patience: float = 120.0
    unreachable: int = 2
    botched: int = 1

    def delay(self, error: ModelError, failures: int) -> float | None:
        """How long to wait after ``failures`` failed attempts; None to give up."""
        asked = error.retry_after or 0.0
        again = getattr(error, "again", None)
        retryable = error.kind in RETRYABLE if again is None else again
        if not retryable or failures > self._limit_for(error) or asked > self.patience:
            return None
        from random import uniform

        jitter = uniform(0, min(self.ceiling, self.base * 2 ** (failures - 1)))  # noqa: S311
        return max(jitter, asked)

    def _limit_for(self, error: ModelError) -> int:
        match error:
            case UnreachableError():
                return min(self.limit, self.unreachable)
            case BotchedError():
                return min(self.limit, self.botched)
            case _:
                return self.limit


NO_RETRIES = Retries(limit=0)
POLL = 1.0


class Failures:
    """The failed attempts of one request. ``starting`` while its server is waited for."""

    def __init__(self, retries: Retries, clock: Clock) -> None:
        self._retries = retries
        self._clock = clock
        self._began: float | None = None
        self._limit = 0.0
        self._count = 0

    @property
    def starting(self) -> bool:
        """True once a server was found that is not ready, until it says something else."""
        return self._began is not None

    def delay(self, error: ModelError) -> float | None:
        """The seconds until the next attempt; None to give up."""
        if not isinstance(error, StartingError) or not self._retries.limit:
            self._began = None
            self._count += 1
            return self._retries.delay(error, self._count)
        if self._began is None:
            self._began = self._clock.spent
        waited = self._clock.spent - self._began
        return min(self._retries.base, POLL) if waited < self._patience(error) else None

    def _patience(self, error: StartingError) -> float:
        """The seconds for which a server is waited for."""
        times = self._clock.timeouts
        listens = times.listen is None or not isinstance(error, NotListeningError)
        self._limit = times.load if listens else times.listen or 0.0
        return self._limit

    def notice(self, failure: ModelError, delay: float) -> Retrying:
        """What a person is told of the next attempt."""
        if not self.starting:
            given = self._count, delay, str(failure), failure.kind
            return Retrying(*given, failure.status, self._retries.limit)
        limit = f"up to {self._limit:g} s"
        said = f"{failure}; it is waited for, {limit}"
        return Retrying(self._count + 1, delay, said, failure.kind, failure.status)


async def repeat(
    attempt: Attempt,
    retries: Retries,
    clock: Clock,
    named: Callable[[ModelError], ModelError],
) -> AsyncGenerator[Delta | Completion, None]:
    """Run attempts until one ends well; what a person has seen already is not shown again.

    A server that is starting is waited for, which is told once. Raises the last `ModelError`, as
    ``named`` words it.
    """
    shown = Shown()
    failures = Failures(retries, clock)
    delay: float | None = 0.0
    while True:
        batches = attempt(shown)
        try:
            if delay:
                await clock.pause(delay)
            async for batch in batches:
                for item in batch:
                    yield item
            return  # noqa: TRY300
        except ModelError as error:
            is_known = failures.starting
            delay = failures.delay(error)
            failure = named(error)
            if delay is None or clock.exhausted:
                raise failure from error
        finally:
            await batches.aclose()
        if not (is_known and failures.starting):
            yield failures.notice(failure, delay)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """What a response asks to wait, in seconds; None where it asks nothing that can be read.

    Reads ``Retry-After`` in both forms of RFC 9110 (seconds, HTTP date) and ``retry-after-ms``.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    seconds = _number(text)
    return seconds if seconds is not None else _until(text)


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


def _until(text: str | None) -> float | None:
    from datetime import UTC
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(text or "")
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, moment.timestamp() - time.time())
