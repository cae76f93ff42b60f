"""The check of a command's mounts, while its start waits: whether they are as planned.

bwrap finds its way by names. A command beside it that writes in the same workspace can put a link
in the place of a folder just then, and another folder would be mounted. So where there is one, what
was mounted is looked at before the command may begin.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import time
from _thread import start_new_thread
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from crow.dataclasses import frozen
from crow.extensions.sandbox.backend import Finding, Launch
from crow.extensions.sandbox.mounts import is_below

_SECONDS, _SETTLED, _PAUSE = 30.0, 2.0, 0.001
_NEW = ("tmpfs", "proc", "devpts", "mqueue", "devtmpfs")
_OCTAL = re.compile(rb"\\([0-7]{3})")
_UNDER_WAY = ("/oldroot", "/newroot")
_CHANGED = (
    "the command was not started: another one that runs changed the workspace meanwhile; try again"
)
_LATE = (
    f"the command was not started: its sandbox was not there after {_SECONDS:g} s, as on a machine"
    " that has too much to do; try again"
)


@frozen
class Mount:
    """A line of the kernel's: what is mounted at ``place``, from ``root`` of a ``device``."""

    device: str
    root: str
    place: str
    kind: str
    is_written: bool

    def source(self, path: str) -> str:
        """A path below it as one of the device."""
        rest = path.removeprefix(self.place.rstrip("/")).strip("/")
        return f"{self.device}:{self.root.rstrip('/')}/{rest}".rstrip("/")


class MountCheck:
    """Holds a command of bwrap back until its mounts have been looked at."""

    def __init__(self, mounts: Sequence[tuple[str, str]], launch: Launch, stack: ExitStack) -> None:
        self._mounts, self._launch = mounts, launch
        told, telling = os.pipe()
        waiting, go = os.pipe()
        self._own, self.files = [told, go], [telling, waiting]
        self.line = ["--info-fd", str(telling), "--block-fd", str(waiting)]
        stack.callback(self._close)
        launch.started = self._begin

    def _begin(self, pid: int) -> None:
        """It has started, and waits."""
        (told, go), self._own = self._own, []
        self._close()
        start_new_thread(self._look, (pid, told, go))

    def _close(self) -> None:
        while left := self._own or self.files:
            os.close(left.pop())

    def _look(self, pid: int, told: int, go: int) -> None:
        with open(told, "rb") as file, open(go, "wb", buffering=0) as release:
            with contextlib.suppress(OSError, ValueError, KeyError):  # it has ended, and says why
                child = int(json.loads(file.read())["child-pid"])
                wrong = self._wrong(child)
                if not wrong:
                    release.write(b"\n")
                    return
                self._launch.found.append(Finding("", "kept", wrong))
                os.kill(child, signal.SIGKILL)  # itself, or it would begin at the end of the pipe
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def _wrong(self, child: int) -> str:
        """Why it may not begin; nothing where it comes to have the mounts that were planned.

        It waits when it has them all. How long that takes is the machine's affair: only what stays
        strange when they are made is somebody's doing.
        """
        planned = {path for path, _ in self._mounts if path != "/"}
        here = [*mounts(os.getpid())]
        begun = {each.place for each in here}
        now = time.monotonic()
        until, settled = now + _SECONDS, 0.0
        while now < until:
            found = [*mounts(child)]
            places = {each.place for each in found}
            if places != begun and not any(is_below(each, _UNDER_WAY) for each in places):
                if planned <= places and not any(self._strange(found, here)):
                    return ""
                settled = settled or now
                if now - settled > _SETTLED:
                    return _CHANGED
            time.sleep(_PAUSE)
            now = time.monotonic()
        return _LATE

    def _strange(self, found: list[Mount], here: list[Mount]) -> Iterator[bool]:
        """Whether each shows or gives what was not planned."""
        written = [path for path, how in self._mounts if how == "write"]
        allowed = [_source(path, here) for path in written]
        allowed += [each.source(each.place) for each in here if is_below(each.place, written)]
        for each in found:
            counts = each.is_written or is_below(each.place, written)
            if counts and each.kind not in _NEW and not is_below(each.place, ("/dev",)):
                yield not is_below(each.source(each.place), allowed)


def _source(path: str, here: Sequence[Mount]) -> str:
    """Where a path of this process lies on its device."""
    around = [each for each in here if is_below(path, (each.place,))]
    return max(around, key=lambda each: len(each.place)).source(path)


def mounts(pid: int) -> Iterator[Mount]:
    """What a process finds mounted, the last one above the others."""
    with open(f"/proc/{pid}/mountinfo", "rb") as file:  # noqa: PTH123
        for line in file:
            before, _, after = line.partition(b" - ")
            _, _, device, root, place, options, *_ = before.split()
            is_written = options.split(b",")[0] == b"rw"
            kind = after.split()[0].decode()
            yield Mount(device.decode(), _plain(root), _plain(place), kind, is_written)


def _plain(text: bytes) -> str:
    return os.fsdecode(_OCTAL.sub(lambda match: bytes([int(match[1], 8)]), text))
