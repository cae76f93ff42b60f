"""Waits of a thread that are not its own doing: for the CPU, the GIL, or garbage."""

from __future__ import annotations

import gc
import os
import sys
from collections import deque
from contextlib import suppress
from threading import get_ident
from time import perf_counter, process_time, thread_time
from typing import NamedTuple
from weakref import finalize

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
    """How many seconds this process has collected garbage: whoever allocates next pays for all."""

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
