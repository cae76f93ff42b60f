"""The mark of a command: what its processes keep of it when they leave its group.

A variable of the environment, which `env -i` takes off; and on Linux a limit that means nothing any
more (of locks, since 2.4), which passes to every child. A process can lower it, if it knows.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from zlib import crc32

MARK = "CROW_COMMAND"
"""The variable that tells the processes of one command from others."""
_LOCKS = 10  # RLIMIT_LOCKS, which Python does not name
_MOST, _SPREAD = 1 << 62, 1 << 24


def mark_of(env: Mapping[str, str]) -> str:
    """The mark in an environment, as ``NAME=VALUE``; empty where there is none."""
    return f"{MARK}={env[MARK]}" if env.get(MARK) else ""


def limit_of(mark: str) -> int:
    """The limit that goes with a mark in this process's children; 0 where there is none."""
    if not mark or sys.platform != "linux":
        return 0
    import resource

    inherited = resource.getrlimit(_LOCKS)[1]  # within a command of another agent it is lower
    half = (_MOST if inherited == resource.RLIM_INFINITY else inherited) // 2
    return half + crc32(mark.encode()) * _SPREAD % half if half > _SPREAD else 0
