"""Limits on a command: the defaults, and those that the kernel keeps itself."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from crow.extensions.sandbox.policy import Limits
from crow.process import limit_of

_SET = "{} 2>/dev/null; "
_PROCESSES, _OF_EACH_CORE = 2048, 256
_OPEN_FILES = 65536
_PART_OF_NUMBERS, _PART_OF_MEMORY = 4, (3, 4)
_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where a container finds how much memory it may use."""
_HIT = (
    ("open_files", re.compile(r"too many open files|\bEMFILE\b", re.IGNORECASE), "open files"),
    ("file_size", re.compile(r"file size limit|file too large|\bEFBIG\b", re.IGNORECASE), "bytes"),
)


@cache
def limits_of(options: Any) -> Limits:
    """What counts where options say nothing, and no limit where they say 0."""
    default = {"processes": _most_processes, "memory": _most_memory, "open_files": _most_files}
    kept: dict[str, int | None] = {}
    for name in ("processes", "memory", "open_files", "file_size"):
        value = getattr(options, name)
        find = default.get(name, lambda: None)
        kept[name] = find() if value is None else value or None
    return Limits(**kept)


def _most_processes() -> int:
    """Room for a build on all cores, and never so many that nobody else can start one."""
    wanted = max(_PROCESSES, _OF_EACH_CORE * (os.cpu_count() or 1))
    numbers = _number("/proc/sys/kernel/pid_max")
    return wanted if numbers is None else min(wanted, numbers // _PART_OF_NUMBERS)


def _most_memory() -> int | None:
    """A part of what there is, which is less in a container."""
    try:
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None
    part, of = _PART_OF_MEMORY
    granted = [number for path in _GROUPS if (number := _number(path)) is not None]
    return min((there, *granted)) * part // of


def _most_files() -> int | None:
    """A limit only where there is hardly any, as containers have it."""
    import resource

    inherited = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    is_endless = inherited == resource.RLIM_INFINITY or inherited > _OPEN_FILES
    return _OPEN_FILES if is_endless else None


def _number(path: str) -> int | None:
    """What a file of the kernel's says; None where that is no number."""
    try:
        return int(Path(path).read_text())
    except (OSError, ValueError):
        return None


def kept_by_the_kernel(limits: Limits) -> list[tuple[int, int]]:
    """What the kernel keeps for each process: numbers of limits, with their values.

    Who has one leaves no core dumps either.
    """
    import resource

    blocks = limits.file_size and limits.file_size // 512 * 512  # as a shell counts
    wanted = ((resource.RLIMIT_NOFILE, limits.open_files), (resource.RLIMIT_FSIZE, blocks))
    kept = [(which, value) for which, value in wanted if value is not None]
    return [(resource.RLIMIT_CORE, 0), *kept] if kept else []


def limited(argv: Sequence[str], limits: Limits, mark: str = "") -> list[str]:
    """A command that sets what the kernel keeps for each process, and becomes what it was.

    It leaves no core dumps either. What cannot be set (a higher limit than its parent's) stays. By
    the limit that goes with its ``mark`` its processes are found, whatever they put off.
    """
    kept = [("ulimit -n {0}", limits.open_files, 1), ("ulimit -f {0}", limits.file_size, 512)]
    lines = [line.format(value // unit) for line, value, unit in kept if value is not None]
    lines = ["ulimit -c 0", *lines] if lines else []
    if number := limit_of(mark):
        lines.append(f"ulimit -w {number} 2>/dev/null || ulimit -x {number}")  # dash, or bash
    if not lines:
        return list(argv)
    script = "".join(_SET.format(line) for line in lines)
    return ["/bin/sh", "-c", f'{script}exec "$@"', "sh", *argv]


def hit(printed: str, limits: Limits) -> str | None:
    """The line for the model about a limit that a command met; None where it met none."""
    for name, message, what in _HIT:
        most = getattr(limits, name)
        if most is not None and message.search(printed):
            where = f"the setting extensions.sandbox.{name}"
            return f"a process may have {most} {what} in the sandbox at most ({where})"
    return None
