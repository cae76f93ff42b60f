"""One program: fed, read up to a limit, and ended in time with all its children."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from crow.extensions.shell_hooks.output import RawOutput
from crow.process import ChildProcess, ProcessReaper

if TYPE_CHECKING:
    from crow.keys import Launcher

LIMIT = 1024 * 1024
DRAIN = 0.2
GRACE = 0.2
FIRST_LINE = 4096


class Program(ChildProcess):
    """A running hook. ``decided`` is set when it ends, or says that nobody is to wait for it.

    ``limit`` is how many seconds it wants to have when it is not waited for.
    """

    def __init__(self, reaper: ProcessReaper) -> None:
        super().__init__(reaper)
        self.decided = asyncio.Event()
        self.detached = False
        self.limit: float | None = None
        self._output = {1: bytearray(), 2: bytearray()}
        self._began = perf_counter()

    async def feed(
        self,
        argv: Sequence[str],
        stdin: bytes,
        cwd: str,
        env: Mapping[str, str],
        launcher: Launcher | None = None,
    ) -> None:
        """Start it, and give it what it reads. Raises ``OSError`` or ``ValueError``."""
        await self.start(argv, cwd, env, stdin=asyncio.subprocess.PIPE, launcher=launcher)
        self.send(stdin)
        self.end_input()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Called by asyncio."""
        kept = self._output[fd]
        if fd == 1 and not self.detached and b"\n" not in kept[:FIRST_LINE]:
            kept += data[: LIMIT - len(kept)]
            self._look(kept)
        else:
            kept += data[: LIMIT - len(kept)]

    def _look(self, kept: bytearray) -> None:
        """Notice a first line that asks for not being waited for."""
        line, newline, _ = kept[:FIRST_LINE].partition(b"\n")
        wish = wish_to_detach(line) if newline else None
        if wish is not None:
            self.detached, self.limit = True, seconds_of(wish.get("asyncTimeout"))
            self.decided.set()

    def process_exited(self) -> None:
        """Called by asyncio."""
        super().process_exited()
        self.decided.set()

    @property
    def so_far(self) -> RawOutput:
        """What it has printed by now."""
        stdout, stderr = (bytes(self._output[fd]).decode("utf-8", "replace") for fd in (1, 2))
        return RawOutput(stdout=stdout, stderr=stderr)

    async def printed(self) -> RawOutput:
        """Wait for its end; what it left. Children that hold its output are not waited for."""
        await self.exited.wait()
        await self.settle(DRAIN)
        code = self.code or 0
        left = self.so_far
        stdout = left.stdout.partition("\n")[2] if self.detached else left.stdout
        seconds = perf_counter() - self._began
        return RawOutput(code if code >= 0 else 128 - code, stdout, left.stderr, seconds)


def wish_to_detach(line: bytes | bytearray) -> Mapping[str, Any] | None:
    """What stands in ``{"async": true, "asyncTimeout": milliseconds}``; None for other lines."""
    try:
        said: object = json.loads(line)
    except ValueError:
        return None
    wish = cast("dict[str, Any]", said) if isinstance(said, dict) else {}
    return wish if wish.get("async") is True else None


def seconds_of(milliseconds: object) -> float | None:
    """A limit in seconds; None for what is none."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return None
    return milliseconds / 1000 if milliseconds > 0 else None
