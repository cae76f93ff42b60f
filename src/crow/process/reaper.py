"""A tiny process that outlives the agent for a moment and ends what the agent left behind.

However the agent dies, its end of the pipe closes; then the groups that are still on the list get
SIGTERM and, a second later, SIGKILL. So does, on Linux, whoever has left a group but carries its
mark. A mark is told before its process is there: bwrap's children have a session
of their own before they are bound to it, and an agent may die at that instant.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from typing import Any

from crow.process.mark import limit_of

_SCRIPT = """
trap '' HUP INT TERM
groups=
while read -r change group mark; do
    rest=
    for each in $groups; do
        case $each in
            "0:$mark") continue ;;
            0:*) ;;
            "$group":*) continue ;;
        esac
        rest="$rest $each"
    done
    groups=$rest
    [ "$change" = + ] && groups="$groups $group:$mark"
done
[ -n "$groups" ] || exit 0
find() {
    grep -lsF -e "${1%:*}" /proc/[0-9]*/environ
    [ "${1##*:}" = 0 ] || grep -lsF -e " ${1##*:} " /proc/[0-9]*/limits
}
end() { [ "${2%%:*}" = 0 ] || kill -s "$1" -- "-${2%%:*}"; }
for each in $groups; do end TERM "$each"; done
sleep 1
for each in $groups; do
    end KILL "$each"
    [ -n "${each#*:}" ] || continue
    for round in 1 2 3 4 5 6 7 8 9; do
        found=$(find "${each#*:}")
        [ -n "$found" ] || break
        for path in $found; do
            path=${path#/proc/}
            kill -s KILL "${path%/*}"
        done
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

    def expect(self, mark: str) -> None:
        """From now on whoever carries the mark dies with the agent, until its group is added.

        ``mark`` is a variable of its environment, ``NAME=VALUE`` without blanks, that no other has.
        """
        self.add(0, mark)

    def add(self, group: int, mark: str = "") -> None:
        """From now on this group dies with the agent, and whoever carries its mark."""
        if self._close is None:
            with contextlib.suppress(OSError, AttributeError):  # there is no posix_spawn everywhere
                self._start()
        self._tell(f"+ {group} {_told(mark)}")

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

    def remove(self, group: int = 0, mark: str = "") -> None:
        """This group has ended, or may go on; or what was expected does not come."""
        self._tell(f"- {group} {_told(mark)}")

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


def _told(mark: str) -> str:
    """A mark, and the limit that goes with it."""
    return f"{mark}:{limit_of(mark)}" if mark else ""
