"""Files that lie in memory: without a name, or in file systems that are a command's own."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

from crow.extensions.sandbox.mount_check import mounts

_NAMES = ("/memfd:", "/dev/shm/", "/SYSV")  # noqa: S108 - as the kernel shows them


def total() -> int:
    """Bytes of them on the whole machine."""
    with open("/proc/meminfo", "rb") as file:  # noqa: PTH123
        for line in file:
            if line.startswith(b"Shmem:"):
                return int(line.split()[1]) * 1024
    return 0


def held_by(pids: Iterable[int]) -> int:
    """Bytes of those that processes have open or mounted, and this one has not."""
    files: dict[tuple[int, int], int] = {}
    devices = {each.device for each in mounts(os.getpid())}
    for pid in pids:
        with contextlib.suppress(OSError):
            files |= _open(pid)
        with contextlib.suppress(OSError):
            for each in mounts(pid):
                if each.kind == "tmpfs" and each.device not in devices:
                    devices.add(each.device)
                    used = os.statvfs(f"/proc/{pid}/root{each.place}")
                    files[hash(each.device), 0] = (used.f_blocks - used.f_bfree) * used.f_frsize
    return sum(files.values())


def _open(pid: int) -> dict[tuple[int, int], int]:
    found: dict[tuple[int, int], int] = {}
    for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
        path = f"/proc/{pid}/fd/{name}"
        with contextlib.suppress(OSError):
            if os.readlink(path).startswith(_NAMES):  # noqa: PTH115
                seen = os.stat(path)  # noqa: PTH116
                found[seen.st_dev, seen.st_ino] = seen.st_blocks * 512
    return found
