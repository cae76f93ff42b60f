"""The clock of an errand, which stands still while it waits for somebody else.

What keeps a thread from running is not its own doing: the CPU, the GIL, garbage (`Waits`).
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from math import inf
from threading import get_ident
from time import perf_counter, process_time, thread_time
from typing import Any, NamedTuple
from weakref import finalize

BLOCKING = 0.05
"""Seconds for which somebody's code may keep everything else from running before it is named."""


class Clock:
    """An errand's own time, of which it has so many seconds.

    It is made where the first step begins, at ``began``. ``blocks`` is called with the seconds for
    which a step of the errand's own has kept everything else from running; what others did in that
    step is ``elsewhere``, and what the thread was kept from doing in it is known by ``waits``. For
    ``stood`` seconds it has waited for others. ``over`` says that this step is the last.
    """

    elsewhere: float = 0.0
    stood: float = 0.0
    over: bool = False
    expired: bool = False
    waiter: asyncio.Future[None] | None = None
    _due: bool = False
    _handle: asyncio.TimerHandle | None = None
    _in_step: bool = True
    _loop: asyncio.AbstractEventLoop | None = None
    _pauses: int = 1
    _stopped: float = 0.0
    _since: float = 0.0

    def __init__(
        self,
        seconds: float,
        blocks: Callable[[float], None] | None = None,
        waits: Waits | None = None,
    ) -> None:
        self.blocks = blocks
        self._waits = waits
        self.seconds = self._left = seconds
        self.began = now = perf_counter()
        if waits is not None and now > waits.stale:
            waits.look(now)

    def begin(self) -> None:
        """Look at how long a step takes, from here on."""
        self._in_step = True
        self._begin()

    def _begin(self) -> None:
        self.elsewhere = 0.0
        self.began = now = perf_counter()
        if self._waits is not None and now > self._waits.stale:
            self._waits.look(now)

    def end(self) -> None:
        """Look no longer."""
        if perf_counter() - self.began > BLOCKING:
            self._look()
        self._in_step = False
        if self._due:
            self._due = False
            if not self.over:
                self._expire()

    def _look(self) -> None:
        """Tell of a step that took long, as far as that was the errand's own doing."""
        if not self._in_step or not self._runs or self.blocks is None:
            return
        seconds = perf_counter() - self.began - self.elsewhere
        if seconds > BLOCKING and self._waits is not None:
            seconds = self._waits.own(self.began, seconds)
        if seconds > BLOCKING:
            self.blocks(seconds)

    @property
    def _runs(self) -> bool:
        """Whether nobody has stopped it; `ended` lets it run, and the first step came before."""
        return self._pauses == (self._loop is None)

    def pause(self) -> None:
        """Stop the clock; pauses nest, and it begins paused."""
        now = perf_counter()
        if self._in_step and now - self.began > BLOCKING:
            self._look()
        if self._runs:
            self._stopped = now
        self._pauses += 1
        if self._pauses == 1 and self._loop is not None:
            self._left -= self._loop.time() - self._since

    def resume(self) -> None:
        """Let the clock run again."""
        self._pauses -= 1
        self._begin()
        if self._runs and self._stopped:
            self.stood, self._stopped = self.stood + self.began - self._stopped, 0.0
        if self._pauses == 0 and self._loop is not None:
            self._since = self._loop.time()
            if self._in_step:  # which is mostly the last
                self._due = self._handle is None
            elif self._handle is None:
                self._set(self._left)

    def _set(self, seconds: float) -> None:
        """Have the loop look when the time can be over: a pause only makes that later."""
        if seconds != inf and self._loop is not None:
            self._handle = self._loop.call_later(max(seconds, 0), self._expire)

    def _expire(self) -> None:
        self._handle = None
        if self._pauses > 0 or self._loop is None:
            return
        left = self._left - (self._loop.time() - self._since)
        if left > 0:
            self._set(left)
        else:
            self.expired = True
            self.wake()

    def wake(self) -> None:
        """Let `ended` look again."""
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    async def ended(self, task: asyncio.Task[Any], spent: float) -> None:
        """Wait until the task is done or its time is over, of which so much is spent already.

        Where the waiting is cancelled, so is the task, which has the rest of its time to end.
        """
        self._left -= spent
        self._in_step = False
        self._loop = loop = task.get_loop()
        self.resume()
        cancelled = False
        try:
            while not task.done() and not self.expired:
                self.waiter = loop.create_future()
                try:
                    await self.waiter
                except asyncio.CancelledError:
                    cancelled = True
                    if not task.cancelling():  # or its tidying up would be cancelled
                        task.cancel()
        finally:
            self.pause()
            if self._handle is not None:
                self._handle.cancel()
        if cancelled:
            raise asyncio.CancelledError


@contextmanager
def standing(clock: Clock | None) -> Generator[None]:
    """Let a clock stand still meanwhile, where there is one."""
    if clock is not None:
        clock.pause()
    try:
        yield
    finally:
        if clock is not None:
            clock.resume()


AGE = 0.005
"""Seconds after which what was known of a thread's waiting says nothing about what begins now."""


KEPT = 32
"""How many looks are remembered: what took long may hold something else that did."""


SHARE = 8
"""Whoever has the GIL computes for one of so many seconds at least: it may wait for a CPU, too."""


LATE = 2
"""How many times as long as it should, at most, a thread sleeps before it asks for the GIL."""


SCHEDULED = "/proc/thread-self/schedstat"


class _Garbage:
    """The seconds for which this process collected garbage: who allocates next pays for all."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._began = 0.0

    def follow(self) -> None:
        """Know of every collection from now on."""
        if self._collects not in gc.callbacks:
            gc.callbacks.append(self._collects)

    def _collects(self, phase: str, _about: object) -> None:
        if phase == "start":
            self._began = perf_counter()
        else:
            self.seconds += perf_counter() - self._began


GARBAGE = _Garbage()


class ThreadTimes(NamedTuple):
    """The times of this thread by the kernel, ``at`` a time of `time.perf_counter`, in seconds.

    ``cpu`` is what it computed, ``process`` what all threads did, ``queued`` how long it waited for
    a CPU; ``slept`` is how often it began anew, having waited or slept. ``garbage`` is how long any
    thread has collected some.
    """

    at: float
    cpu: float
    process: float
    queued: float
    slept: float
    garbage: float


class Waits:
    """The waits of this thread for a CPU, or for the GIL, where it seemed to do something.

    A look costs microseconds, so there are few: one where somebody begins and the last is older
    than `AGE`, at ``stale`` that is, and one where something took long.
    """

    __slots__ = ("__weakref__", "_file", "_readings", "_thread", "stale")

    def __init__(self) -> None:
        GARBAGE.follow()
        self.stale = 0.0
        self._file: int | None = None
        self._thread = 0
        self._readings: deque[ThreadTimes] = deque(maxlen=KEPT)

    def look(self, now: float) -> None:
        """Know how things stand now."""
        if self._thread != get_ident():
            self._follow()
        queued = slept = 0.0
        if self._file is not None:
            try:
                _, waited, times = os.pread(self._file, 200, 0).split()
                queued, slept = int(waited) / 1e9, float(times)
            except (OSError, ValueError):  # of a thread that has ended, whose number is used again
                self._thread = 0
        here = thread_time(), process_time(), queued, slept, GARBAGE.seconds
        self._readings.append(ThreadTimes(now, *here))
        self.stale = now + AGE

    def _follow(self) -> None:
        """Look at this thread from now on: an agent may be used in one after another."""
        self._thread = get_ident()
        self._readings.clear()
        with suppress(OSError):
            file = os.open(SCHEDULED, os.O_RDONLY)
            if self._file is None:
                self._file = file
                finalize(self, os.close, file)
            else:
                os.dup2(file, self._file, inheritable=False)
                os.close(file)

    def own(self, began: float, seconds: float) -> float:
        """How many of the seconds since ``began`` were the thread's own doing.

        That is what it computed, and what it slept: in `time.sleep`, or for a file. Who waits for
        the GIL wakes up all the time to ask for it. Garbage is everybody's: in a large process one
        collection takes a tenth of a second.
        """
        self.look(perf_counter())
        now, before = self._readings[-1], self._readings[0]
        before = next((one for one in reversed(self._readings) if one.at <= began), before)
        cpu, queued = now.cpu - before.cpu, max(now.queued - before.queued, 0.0)
        computed = max(cpu - max(began - before.at, 0.0), 0.0)
        asleep = max(seconds - computed - queued, 0.0)
        asked = (now.slept - before.slept) * sys.getswitchinterval() * LATE
        others = SHARE * max(now.process - before.process - cpu, 0.0)
        waited = min(asleep, others) if self._file is None else min(asleep, asked, others)
        collected = now.garbage - before.garbage
        return max(seconds - queued - waited - collected, 0.0)
