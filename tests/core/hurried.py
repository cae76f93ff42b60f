"""An event loop that never waits for time: its clock jumps to the next timer instead."""

from __future__ import annotations

import asyncio
import selectors
import threading
from typing import Any

STEPS = 30_000
"""How many turns of the loop are endless."""
MOMENT = 0.05


class Selector(selectors.SelectSelector):
    """Waits for threads that work, and for nothing else."""

    loop: HurriedLoop

    def select(self, timeout: float | None = None) -> Any:
        """What is ready; the clock jumps where that is nothing."""
        loop = self.loop
        loop.steps += 1
        assert loop.steps < STEPS, "the loop turns for ever"
        if timeout is not None and timeout <= 0:
            return super().select(0)
        ready = super().select(MOMENT * 20 if loop.works() else 0)
        if not ready and timeout is not None:
            loop.now += timeout
        assert ready or timeout is not None, "everybody waits, and for nobody"
        return ready


class HurriedLoop(asyncio.SelectorEventLoop):
    """``held`` are the threads that are known to hang: nobody waits for these."""

    def __init__(self) -> None:
        self.now = 0.0
        self.steps = 0
        self.held: set[threading.Thread] = set()
        self._before = set(threading.enumerate())
        selector = Selector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        """Seconds, of which none pass while somebody computes."""
        return self.now

    def works(self) -> bool:
        """True while a thread is at work that was begun since."""
        return bool(set(threading.enumerate()) - self._before - self.held)
