"""Processes that have lost their parents: for a time they come to this one, which waits for them.

Elsewhere they go to the system's first process, which in many a container waits for none.
"""

from __future__ import annotations

import os
import re
import select
import signal
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

_SUBREAPER = 36
_TOLD = re.compile(rb'"child-pid": *(\d+)')
_SECONDS = 2.0
"""How long a namespace may take to go down; a thousand processes need a tenth of a second."""


class Orphans:
    """The taking in of orphans, as long as anybody wants it, whichever back end that is."""

    def __init__(self) -> None:
        self._wanted = 0

    @contextmanager
    def taken(self) -> Generator[None]:
        """Take those that there will be within the context."""
        self._wanted += 1
        adopt(True)
        try:
            yield
        finally:
            self._wanted -= 1
            if not self._wanted:
                adopt(False)


@cache
def orphans() -> Orphans:
    """Of this process: the kernel asks it once, and not each back end."""
    return Orphans()


class Namespace:
    """The first process in a namespace of bwrap's, which bwrap does not wait for.

    It ends all others in there. Until it has ended, one of them may still write.
    """

    def __init__(self) -> None:
        self._told, self.telling = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._known = 0
        self.line = ("--json-status-fd", str(self.telling))

    @contextmanager
    def ended(self) -> Generator[None]:
        """At the end of the context it is gone; its bwrap has ended before."""
        with orphans().taken():
            try:
                yield
            finally:
                pid = self._pid()
                os.close(self._told)
                os.close(self.telling)
                self._told, self._known = -1, 0
                if pid:
                    _wait_for(pid)

    def ask(self, number: int) -> bool:
        """Send a signal to the command: bwrap itself would end by it, and all others at once.

        The first process has the command in its group, and heeds none but SIGKILL and SIGSTOP.
        """
        pid = self._pid()
        try:
            if pid:
                os.killpg(pid, number)
        except OSError:
            return False  # it has ended, or has no group yet
        return pid != 0

    def _pid(self) -> int:
        """Its number here; 0 where bwrap has not come so far."""
        with suppress(OSError):
            if not self._known and (found := _TOLD.search(os.read(self._told, 4096))):
                self._known = int(found[1])
        return self._known


def _wait_for(pid: int) -> None:
    """Wait for the end of an orphan that has come here; for nobody else's child."""
    if str(pid) not in children():
        return
    with suppress(OSError):
        os.kill(pid, signal.SIGKILL)
        file = os.pidfd_open(pid)
        try:
            end = select.poll()
            end.register(file, select.POLLIN)
            end.poll(_SECONDS * 1000)
        finally:
            os.close(file)
        os.waitpid(pid, os.WNOHANG)


def adopt(is_wanted: bool) -> None:
    """Be the parent of orphans, or leave them to the system."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_SUBREAPER, ctypes.c_ulong(is_wanted), *[ctypes.c_ulong(0)] * 3)


def children() -> list[str]:
    """Of this process, whichever thread of it they belong to."""
    found: list[str] = []
    for thread in os.listdir("/proc/self/task"):  # noqa: PTH208 - one may end before it is looked at
        with suppress(OSError):
            found += Path("/proc/self/task", thread, "children").read_text().split()
    return found
