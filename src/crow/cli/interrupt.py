"""Ctrl-C and its like: the first one cancels what runs, the second one ends the process."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Coroutine
from types import FrameType
from typing import TYPE_CHECKING, Any, Self, TypeVar

if TYPE_CHECKING:
    from crow.cli.ask import Asker
    from crow.cli.output import Output
    from crow.core.agent import Agent

T = TypeVar("T")
CAN_WAKE = sys.platform != "win32"
SIGNALS = (signal.SIGINT, signal.SIGTERM, *((signal.SIGHUP,) if CAN_WAKE else ()))


def run_async(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, whose Ctrl-C is heard whenever it comes, and whatever thread it is given to.

    Raises ``KeyboardInterrupt`` once what ran has ended.
    """

    async def woken() -> T:
        if CAN_WAKE and threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGINT)
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, _wake)
            signal.signal(signal.SIGINT, handler)
        return await main

    return asyncio.run(woken())


class Interrupts:
    """``with Interrupts(...) as interrupts``: signals cancel what runs in the agent's sessions.

    So does who leaves instead of answering the ``asker``. While ``opening``, until `opened` is
    called, they cancel the task that opens the session.
    ``status`` is the exit status that the signal stands for, None where none came.
    """

    def __init__(
        self, agent: Agent, out: Output, asker: Asker | None, *, opening: bool = False
    ) -> None:
        self.agent = agent
        self.out = out
        self.status: int | None = None
        self._loop = asyncio.get_running_loop()
        self._opening = asyncio.current_task() if opening else None
        self._before: dict[signal.Signals, Any] = {}
        if asker is not None:
            asker.when_left = self._cancel

    def __enter__(self) -> Self:
        for each in SIGNALS:
            before = signal.getsignal(each)
            if before is signal.SIG_IGN and each != signal.SIGINT:
                continue  # it was started to outlive that, as by nohup
            self._before[each] = before
            if CAN_WAKE:
                self._loop.add_signal_handler(each, _wake)
            signal.signal(each, self._came)
        return self

    def __exit__(self, *_: object) -> None:
        for each, handler in self._before.items():
            if CAN_WAKE:
                self._loop.remove_signal_handler(each)
            signal.signal(each, handler)

    def opened(self) -> None:
        """The session is open: from now on signals cancel its runs."""
        self._opening = None

    def _came(self, number: int, _: FrameType | None) -> None:
        """Runs between two steps of whatever the process does, even where its loop is stuck."""
        if self.status is not None:
            os._exit(self.status)
        self.status = 128 + number
        self.out.at_start = not self.out.is_terminal  # which has written ^C
        self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
        for session in self.agent.sessions.values():
            self.agent.cancel(session)


def _wake() -> None:
    """Nothing is to be done: the signal has woken the loop.

    Without this, one that comes just before the loop falls asleep, or that the system gives to
    another thread, would be heard only when something else wakes the loop.
    """
