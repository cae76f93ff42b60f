"""A tiny process that outlives the agent for a moment and ends what the agent left behind.

However the agent dies, its end of the pipe closes; then the groups that are still on the list get
SIGTERM and, a second later, SIGKILL. So does, on Linux, whoever has left a group but carries its
mark in the environment.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from typing import Any

_SCRIPT = """
trap '' HUP INT TERM
groups=
while read -r change group mark; do
    rest=
    for each in $groups; do
        [ "${each%%:*}" = "$group" ] || rest="$rest $each"
    done
    groups=$rest
    [ "$change" = + ] && groups="$groups $group:$mark"
done
[ -n "$groups" ] || exit 0
for each in $groups; do kill -s TERM -- "-${each%%:*}"; done
sleep 1
for each in $groups; do
    kill -s KILL -- "-${each%%:*}"
    [ -n "${each#*:}" ] || continue
    for path in $(grep -lsF -e "${each#*:}" /proc/[0-9]*/environ); do
        path=${path%/environ}
        kill -s KILL "${path#/proc/}"
    done
done
"""


class ProcessReaper:
    """Keeps the list of process groups that must not outlive the agent.

    Its process is started with the first of them; where that is impossible nothing is kept.
    """

    def __init__(self) -> None:
        self._pid = 0
        self._close: weakref.finalize[[int], Any] | None = None

    def add(self, group: int, mark: str = "") -> None:
        """From now on this group dies with the agent.

        ``mark`` is a variable of its environment, ``NAME=VALUE`` without blanks, that no other has.
        """
        if self._close is None:
            with contextlib.suppress(OSError, AttributeError):  # there is no posix_spawn everywhere
                self._start()
        self._tell(f"+ {group} {mark}")

    def _start(self) -> None:
        listening, self._pipe = os.pipe()
        close = weakref.finalize(self, os.close, self._pipe)
        try:
            self._pid = os.posix_spawn(
                "/bin/sh",
                ["sh", "-c", _SCRIPT],
                {"PATH": os.defpath},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, listening, 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_DUP2, 1, 2),
                ],
                setpgroup=0,
            )
        except (OSError, AttributeError):
            close()
            raise
        finally:
            os.close(listening)
        self._close = close

    def remove(self, group: int) -> None:
        """This group has ended, or may go on."""
        self._tell(f"- {group}")

    def close(self) -> None:
        """End it; waits for it, a millisecond where its list is empty."""
        if self._close is not None and self._close.alive:
            self._close()
            with contextlib.suppress(ChildProcessError):  # somebody else reaped it
                os.waitpid(self._pid, 0)

    def _tell(self, change: str) -> None:
        if self._close is not None and self._close.alive:
            # where somebody killed it, commands run all the same
            with contextlib.suppress(BrokenPipeError):
                os.write(self._pipe, f"{change}\n".encode())
