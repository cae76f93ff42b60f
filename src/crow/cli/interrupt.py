"""Ctrl-C: the first one cancels what runs, the second one ends the process."""

from __future__ import annotations

import asyncio
import os
import signal
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from crow.cli.output import Output
    from crow.core.agent import Agent

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """``with Interrupts(agent, out) as interrupts``: signals cancel what runs in its sessions.

    ``status`` is the exit status that the signal stands for, None where none came.
    """

    def __init__(self, agent: Agent, out: Output) -> None:
        self.agent = agent
        self.out = out
        self.status: int | None = None
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for each in SIGNALS:
            self._before[each] = signal.signal(each, self._came)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)

    def _came(self, number: int, _: FrameType | None) -> None:
        """Runs between two steps of whatever the process does, even where its loop is stuck."""
        if self.status is not None:
            os._exit(self.status)
        self.status = 128 + number
        self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        self.out.at_start = not self.out.is_terminal  # which has written ^C
        running = [session for session in self.agent.sessions.values() if session.busy]
        for session in running:
            self.agent.cancel(session)
        if not running and self._task is not None and not self.agent.sessions:
            self._task.cancel()
