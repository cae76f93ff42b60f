"""A tiny process that outlives the agent for a moment and ends what the agent left behind.

However the agent dies, its end of the pipe closes; then the groups that are still on the list get
SIGTERM and, a second later, SIGKILL. So does, on Linux, whoever has left a group but carries its
mark. A mark is told before its process is there: bwrap's children have a session
of their own before they are bound to it, and an agent may die at that instant.

The list is a file without a name that both have open: nobody is woken up for a command. Each line
of it is as long as the next and in one page, so that no death leaves half of one.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import weakref
from typing import Any

from crow.process.mark import limit_of

_SCRIPT = """
trap '' HUP INT TERM
while read -r nothing; do :; done
groups=
while read -r group mark; do
    [ -z "$group" ] || groups="$groups $group:$mark"
done <&3
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


_LINE = 128
"""Bytes of each line, which many fill a page: what is in one page is written as a whole."""


class ProcessReaper:
    """Keeps the list of process groups that must not outlive the agent.

    Its process is started with the first of them; where that is impossible nothing is kept.
    """

    def __init__(self) -> None:
        self._pid = self._list = self._many = 0
        self._close: weakref.finalize[..., Any] | None = None
        self._lines: dict[int | str, tuple[int, str]] = {}
        """By group, or by mark where that is expected: which line, and what it says of the mark."""
        self._blank: list[int] = []

    def expect(self, mark: str) -> None:
        """From now on whoever carries the mark dies with the agent, until its group is added.

        ``mark`` is a variable of its environment, ``NAME=VALUE`` without blanks, that no other has;
        it is short. Raises ``ValueError`` for one that is not.
        """
        self.add(0, mark)

    def add(self, group: int, mark: str = "") -> None:
        """From now on this group dies with the agent, and whoever carries its mark."""
        if self._close is None:
            with contextlib.suppress(OSError, AttributeError):  # there is no posix_spawn everywhere
                self._start()
        self.remove(group)  # whoever had the number has ended
        known = self._lines.pop(mark, None) if mark else None
        line, told = known or (self._new_line(), _told(mark))
        self._lines[group or mark] = line, told
        self._write(line, f"{group} {told}")

    def _new_line(self) -> int:
        if not self._blank:
            self._blank.append(self._many)
            self._many += 1
        return self._blank.pop()

    def _start(self) -> None:
        listening, pipe = os.pipe()
        self._list = _unnamed()
        close = weakref.finalize(self, _close, pipe, self._list)
        try:
            self._pid = os.posix_spawn(
                "/bin/sh",
                ["sh", "-c", _SCRIPT],
                {"PATH": os.defpath},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, listening, 0),
                    (os.POSIX_SPAWN_DUP2, self._list, 3),
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
        known = self._lines.pop(group or mark, None)
        if known is not None:
            self._write(known[0], "")
            self._blank.append(known[0])

    def close(self) -> None:
        """End it; waits for it, a millisecond where its list is empty."""
        if self._close is not None and self._close.alive:
            self._close()
            with contextlib.suppress(ChildProcessError):  # somebody else reaped it
                os.waitpid(self._pid, 0)

    def _write(self, line: int, text: str) -> None:
        if len(text) >= _LINE:
            raise ValueError(f"too long a mark: {text}")
        if self._close is not None and self._close.alive:
            with contextlib.suppress(OSError):  # on a full disk commands run all the same
                os.pwrite(self._list, f"{text:{_LINE - 1}}\n".encode(), line * _LINE)


def _unnamed() -> int:
    """A new file that has no name; in memory where the system can do that."""
    try:
        return os.memfd_create("crow-reaper")
    except (AttributeError, OSError):
        with tempfile.TemporaryFile() as file:
            return os.dup(file.fileno())


def _close(*files: int) -> None:
    for file in files:
        os.close(file)


def _told(mark: str) -> str:
    """A mark, and the limit that goes with it."""
    return f"{mark}:{limit_of(mark)}" if mark else ""
