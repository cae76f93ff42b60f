"""The monitor of a running command: what it uses with all that it has started.

The kernel counts the processes of everybody but root, and memory a process; a watch counts for a
command, whatever confines it. It ends one that uses too much, and says so.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from _thread import start_new_thread
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Self

from crow.dataclasses import frozen
from crow.extensions.sandbox.policy import Limits
from crow.extensions.sandbox.ramfiles import held_by, total
from crow.extensions.sandbox.survivors import filters, own_filters
from crow.process import limit_of

_EVERY = 0.05  # seconds between glances at the machine
_PART = 8  # of all memory that a command may have: so much more calls for a look
_OFTEN = 40  # glances, after which there is a look at the command in any case
_ROUNDS, _PAUSE = 200, 0.002
_STARTERS = 2  # generations until the command itself, where something confines it
_FIRST = 600
"""What the kernel adds to the score of a process when memory ends: these go before the agent."""
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_MANY = 64  # threads more than before, which is when the agent hurries
_SOON = getattr(os, "SCHED_RR", 0) | getattr(os, "SCHED_RESET_ON_FORK", 0)


@frozen
class Running:
    """A process as the kernel lists it; ``memory`` in bytes, ``began`` in its ticks.

    ``is_own`` tells an orphan that is a command's by its filter.
    """

    pid: int
    parent: int
    group: int
    session: int
    threads: int
    memory: int
    began: int
    is_own: bool = False


class ProcessMonitor:
    """Looks after one command, from `begin` until the context is left.

    Where nothing confines it, ``mark`` is what its processes have in their environment, or by a
    limit. What was too much is said in ``over``.
    """

    def __init__(self, limits: Limits, mark: str = "") -> None:
        self.over: list[str] = []
        self._limits, self._mark = limits, mark.encode()
        self._closed = threading.Event()
        self._total = self._tasks = self._left = self._at_first = self._glances = 0
        self._files = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()

    def begin(self, pid: int) -> None:
        """It has started, as the leader of a session."""
        limits = self._limits
        if os.path.isdir("/proc/self") and (limits.processes or limits.memory):  # noqa: PTH112
            self._total, self._left = memory()
            self._files = total()
            self._tasks = self._at_first = tasks()
            self._bound(pid)
            # not of `threading`, which waits until it runs
            start_new_thread(self._look, (Family(pid, self._mark),))

    def _bound(self, pid: int) -> None:
        """Let the kernel count for everybody but root, and end this first where memory ends."""
        import resource

        most = self._at_first + (self._limits.processes or 0)
        for each in starters(pid):
            with contextlib.suppress(OSError, ValueError):
                with open(f"/proc/{each}/oom_score_adj", "w") as file:  # noqa: PTH123
                    file.write(str(_FIRST))
                if self._limits.processes and sys.platform == "linux":
                    hard = resource.prlimit(each, resource.RLIMIT_NPROC)[1]
                    bound = most if hard < 0 else min(most, hard)
                    resource.prlimit(each, resource.RLIMIT_NPROC, (bound, bound))

    def _look(self, family: Family) -> None:
        try:
            hurry(True)  # until the first look
            while not (self._closed.wait(_EVERY) or self.over):
                if self._is_calm():
                    continue
                with self._halted(family):
                    if (too_much := self._excess(family.members())) is not None:
                        self.over.append(too_much)
                        family.end()
        finally:
            hurry(False)

    @contextmanager
    def _halted(self, family: Family) -> Generator[None]:
        """Where there are so many processes that counting them would take long, count in peace."""
        if not self._limits.processes or self._tasks - self._at_first <= self._limits.processes:
            yield
            return
        family.signal(signal.SIGSTOP)
        yield
        family.signal(signal.SIGCONT)

    def _is_calm(self) -> bool:
        """True where the machine has changed so little that the command cannot use too much."""
        limits = self._limits
        count, left = tasks(), memory()[1]
        self._at_first = min(self._at_first, count)  # others end, too
        self._tasks = min(self._tasks, count)
        grows = limits.processes and count - self._tasks > limits.processes // 4
        eats = limits.memory and self._left - left > limits.memory // _PART
        self._glances += 1
        hurry(count - self._at_first > _MANY)
        if not (grows or eats or self._glances % _OFTEN == 0):
            return True
        self._tasks, self._left = count, left
        return False

    def _excess(self, family: list[Running]) -> str | None:
        """What is too much of it, in words."""
        limits = self._limits
        if limits.processes and sum(each.threads for each in family) > limits.processes:
            return _SAID.format(f"{limits.processes} processes and threads", "processes")
        if limits.memory and self._uses(family) > limits.memory:
            return _SAID.format(f"{limits.memory / 1e9:.1f} GB of memory", "memory")
        return None

    def _uses(self, family: list[Running]) -> int:
        """Bytes of memory, each counted once; only where it can be too much is that asked for.

        What lies in files of memory (``/dev/shm``) is no process's, and counts beside.
        """
        most = self._limits.memory or 0
        grown = total() - self._files > most // _PART
        files = held_by(each.pid for each in family) if grown else 0
        at_most = min(sum(each.memory for each in family) + files, self._total - self._left)
        if at_most <= most:
            return at_most
        parts = [_share(each.pid) for each in family]
        of_files = max(files, sum(part for _, part in parts))
        return sum(own - part for own, part in parts) + of_files


_SAID = "the command was ended: it used more than {} (the setting extensions.sandbox.{})"


class Family:
    """A command's processes: what it has started, its session, and orphans that are its own."""

    def __init__(self, pid: int, mark: bytes = b"") -> None:
        self.pid, self._mark = pid, mark
        number = limit_of(mark.decode())
        self._marks = {"environ": mark, "limits": f" {number} ".encode() if number else mark}
        self._here = os.getpid()
        self._own_filters = own_filters()
        leader = seen(str(pid))
        self._began = leader.began if leader else 0

    def members(self) -> list[Running]:
        """Those that run now."""
        everyone = [*self._young()]
        children: dict[int, list[Running]] = {}
        for each in everyone:
            children.setdefault(each.parent, []).append(each)
        found: dict[int, Running] = {}

        def add(at_hand: list[Running]) -> None:
            while at_hand:
                each = at_hand.pop()
                if each.pid not in found:
                    found[each.pid] = each
                    at_hand += children.get(each.pid, ())

        add([*self._session(everyone), *(each for each in everyone if each.is_own)])
        if self._mark:
            add([each for each in everyone if each.pid not in found and self._is_marked(each.pid)])
        return list(found.values())

    def _young(self) -> Iterator[Running]:
        """Processes that were not there before it; orphans that are here now are asked at once."""
        for each in running():
            if each.began >= self._began:
                is_here = each.parent == self._here
                is_own = is_here and filters(each.pid) > self._own_filters
                yield replace(each, is_own=True) if is_own else each

    def _session(self, everyone: Iterable[Running]) -> list[Running]:
        """Those that its number tells of, unless another process has that by now."""
        found = [each for each in everyone if self.pid in (each.pid, each.group, each.session)]
        is_other = any(each.pid == self.pid and each.began != self._began for each in found)
        return [] if is_other else found

    def _is_marked(self, pid: int) -> bool:
        """Whether a process has the command's mark; waits where that starts a program just now."""
        for name, mark in self._marks.items():
            with contextlib.suppress(OSError), open(f"/proc/{pid}/{name}", "rb") as file:  # noqa: PTH123
                if mark in file.read():
                    return True
        return False

    def signal(self, number: signal.Signals) -> None:
        """Send it to the first ones, with their groups: the kernel does that at once."""
        for pid in starters(self.pid):
            with contextlib.suppress(OSError):
                os.killpg(pid, number)

    def end(self) -> None:
        """SIGKILL them all, however fast they start more.

        Who is stopped starts nothing and leaves no orphans: so they are all stopped before that.
        """
        self.signal(signal.SIGKILL)
        seen: set[int] = set()
        for _ in range(_ROUNDS):
            if (left := {each.pid for each in self.members()}) <= seen:
                break
            _send(left - seen, signal.SIGSTOP)
            seen |= left
        for _ in range(_ROUNDS):
            if not (left := {each.pid for each in self.members()}):
                break
            _send(left, signal.SIGKILL)
            time.sleep(_PAUSE)


def running() -> Iterator[Running]:
    """Every process that this one sees, but for those that have ended."""
    for name in os.listdir("/proc"):  # noqa: PTH208 - hundreds, ten times a second
        if name.isdigit() and (each := seen(name)) is not None:
            yield each


def seen(name: str) -> Running | None:
    """A process by its number; None for one that has ended."""
    try:
        with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
            told = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    if not told or told[0] in b"ZX":
        return None
    parent, group, session = map(int, told[1:4])
    threads, began, pages = int(told[17]), int(told[19]), int(told[21])
    return Running(int(name), parent, group, session, threads, pages * _PAGE, began)


def _send(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def hurry(is_wanted: bool) -> None:
    """Let the agent run before everybody else, or as all others; the kernel lets root do that.

    Among a thousand processes it would wait for seconds between two looks.
    """
    for name in os.listdir("/proc/self/task"):  # noqa: PTH208
        with contextlib.suppress(OSError):
            is_first = os.sched_getscheduler(int(name)) == _SOON
            if is_first != is_wanted:
                policy = _SOON if is_wanted else os.SCHED_OTHER
                os.sched_setscheduler(int(name), policy, os.sched_param(int(is_wanted)))


def starters(pid: int) -> list[int]:
    """What was started and confines the command, and the command: whoever starts all the others."""
    found = [pid]
    for _ in range(_STARTERS):
        found += [each for one in found for each in _children(one) if each not in found]
    return found


def _children(pid: int) -> list[int]:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children") as file:  # noqa: PTH123
        return [int(each) for each in file.read().split()]
    return []


def tasks() -> int:
    """How many threads the machine has."""
    with open("/proc/loadavg", "rb") as file:  # noqa: PTH123
        return int(file.read().split()[3].partition(b"/")[2])


def memory() -> tuple[int, int]:
    """How much memory the machine has, and how much of it could be had; in bytes."""
    told: Mapping[bytes, int]
    with open("/proc/meminfo", "rb") as file:  # noqa: PTH123
        lines = [file.readline().split() for _ in range(3)]
    told = {line[0]: int(line[1]) * 1024 for line in lines}
    return told[b"MemTotal:"], told[b"MemAvailable:"]


def _share(pid: int) -> tuple[int, int]:
    """A process's memory, what it has together with others by its part; and that of files."""
    found = {b"Pss:": 0, b"Pss_Shmem:": 0}
    with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup", "rb") as file:  # noqa: PTH123
        for line in file:
            name, _, rest = line.partition(b" ")
            if name in found:
                found[name] = int(rest.split()[0]) * 1024
    return found[b"Pss:"], found[b"Pss_Shmem:"]
