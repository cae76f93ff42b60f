"""Processes that a confined command has left behind, found though they have left its group.

While a command runs, whoever loses its parent becomes a child of this process. Its filter, which
nobody can take off, tells it from the children that belong here.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from contextlib import ExitStack
from functools import cache

from crow.extensions.sandbox.orphans import children, orphans

_ROUNDS, _PAUSE = 50, 0.002


class Survivors:
    """Ends what was left behind once the last command that runs so has ended."""

    def __init__(self) -> None:
        self._running = 0
        self._taken = ExitStack()
        self._own = own_filters()

    def begin(self) -> None:
        """A command starts: its orphans come here."""
        if not self._running:
            self._taken.enter_context(orphans().taken())
        self._running += 1

    def end(self) -> None:
        """A command has ended; none of its processes goes on."""
        self._running -= 1
        if self._running:
            return  # it cannot be told whose they are
        ended: set[str] = set()
        for _ in range(_ROUNDS):
            left = [pid for pid in children() if filters(pid) > self._own]
            for pid in left:
                with contextlib.suppress(OSError):
                    os.kill(int(pid), signal.SIGKILL)
            ended = {pid for pid in (*ended, *left) if not _forget(pid)}
            if not ended:
                break
            time.sleep(_PAUSE)  # what they had started comes here next
        self._taken.close()


def filters(pid: int | str) -> int:
    """How many filters of system calls a process has; containers bring one."""
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/status") as file:  # noqa: PTH123
        for line in file:
            if line.startswith("Seccomp_filters:"):
                return int(line.split()[1])
    return 0


@cache
def own_filters() -> int:
    """How many this process has."""
    return filters("self")


def _forget(pid: str) -> bool:
    """Let the system forget a child that has ended; False while it has not."""
    try:
        return os.waitpid(int(pid), os.WNOHANG)[0] != 0
    except OSError:
        return True
