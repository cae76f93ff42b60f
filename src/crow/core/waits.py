"""What keeps a thread from running without its own doing: others that have the CPU or the GIL."""

from __future__ import annotations

import os
import sys
from collections import deque
from contextlib import suppress
from math import inf
from time import perf_counter, process_time, thread_time
from typing import Any, NamedTuple

resource: Any = None
with suppress(ImportError):  # there is none on Windows
    import resource

AGE = 0.005
"""Seconds after which what was known of a thread's waiting says nothing about what begins now."""
KEPT = 32
"""How many looks are remembered: what took long may hold something else that did."""
CAN_COUNT = hasattr(resource, "RUSAGE_THREAD")
SCHEDULED = "/proc/thread-self/schedstat"


class Reading(NamedTuple):
    """What the kernel says of this thread ``at`` a time of `time.perf_counter`, in seconds.

    ``cpu`` is what it computed, ``process`` what all threads did, ``queued`` how long it waited for
    a CPU; ``slept`` is how often it slept.
    """

    at: float
    cpu: float
    process: float
    queued: float
    slept: float


class Waits:
    """How long this thread has waited for a CPU, or for the GIL, where it seemed to do something.

    A look costs microseconds, so there are few: one where somebody begins and the last is older
    than `AGE`, at ``stale`` that is, and one where something took long.
    """

    __slots__ = ("_readings", "stale")

    def __init__(self) -> None:
        self.stale = 0.0
        self._readings: deque[Reading] = deque(maxlen=KEPT)

    def look(self, now: float) -> None:
        """Know how things stand now."""
        self._readings.append(_read(now))
        self.stale = now + AGE

    def own(self, began: float, seconds: float) -> float:
        """How many of the seconds since ``began`` were the thread's own doing.

        That is what it computed, and what it slept: in `time.sleep`, or for a file. Who waits for
        the GIL wakes up all the time to ask for it.
        """
        self.look(perf_counter())
        now, before = self._readings[-1], self._readings[0]
        before = next((one for one in reversed(self._readings) if one.at <= began), before)
        cpu, queued = now.cpu - before.cpu, max(now.queued - before.queued, 0.0)
        computed = max(cpu - max(began - before.at, 0.0), 0.0)
        asleep = max(seconds - computed - queued, 0.0)
        asked = (now.slept - before.slept) * sys.getswitchinterval() if CAN_COUNT else inf
        others = max(now.process - before.process - cpu, 0.0)
        return max(seconds - queued - min(asleep, asked, others), 0.0)


def _read(now: float) -> Reading:
    queued = slept = 0.0
    with suppress(OSError, ValueError, IndexError):
        file = os.open(SCHEDULED, os.O_RDONLY)
        try:
            queued = int(os.read(file, 200).split()[1]) / 1e9
        finally:
            os.close(file)
    if CAN_COUNT:
        slept = float(resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw)
    return Reading(now, thread_time(), process_time(), queued, slept)
