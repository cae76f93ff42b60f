"""One program: fed, read up to a limit, and ended in time with all its children."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any, cast

from crow.extensions.shell_hooks.output import Printed
from crow.warden import Warden

LIMIT = 1024 * 1024
DRAIN = 0.2
GRACE = 0.2
FIRST_LINE = 4096


class Program(asyncio.SubprocessProtocol):
    """A running hook. ``decided`` is set when it ends, or says that nobody is to wait for it.

    While it runs its group is on the list of ``warden``. ``limit`` is how many seconds it wants to
    have when it is not waited for.
    """

    def __init__(self, warden: Warden) -> None:
        self.decided = asyncio.Event()
        self.exited = asyncio.Event()
        self.silent = asyncio.Event()
        self.detached = False
        self.limit: float | None = None
        self._output = {1: bytearray(), 2: bytearray()}
        self._open = {1, 2}
        self._transport: asyncio.SubprocessTransport | None = None
        self._warden: Warden | None = warden
        self._began = perf_counter()

    async def start(
        self, argv: Sequence[str], stdin: bytes, cwd: str, env: Mapping[str, str]
    ) -> None:
        """Start it in a session of its own, without a terminal.

        Raises ``OSError`` or ``ValueError`` where that is impossible.
        """
        starting = asyncio.ensure_future(self._spawn(argv, cwd, env))
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:  # asyncio would end the program and not its children
            await asyncio.wait({starting})
            if starting.exception() is None:
                await self.kill()
            raise
        assert self._transport is not None
        pipe = cast("asyncio.WriteTransport | None", self._transport.get_pipe_transport(0))
        if pipe is not None:  # a program that reads nothing breaks the pipe, which is no error
            pipe.write(stdin)
            pipe.close()

    async def _spawn(self, argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> None:
        await asyncio.get_running_loop().subprocess_exec(
            lambda: self,
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=cwd,
            env=env,
            start_new_session=True,
        )

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        self._transport = cast("asyncio.SubprocessTransport", transport)
        if self._warden is not None:
            self._warden.add(self._transport.get_pid())

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

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Called by asyncio."""
        self._open.discard(fd)
        if not self._open:
            self.silent.set()

    def process_exited(self) -> None:
        """Called by asyncio."""
        self.exited.set()
        self.decided.set()

    async def printed(self) -> Printed:
        """Wait for its end; what it left. Children that hold its output are not waited for."""
        await self.exited.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN):
                await self.silent.wait()
        assert self._transport is not None
        code = self._transport.get_returncode() or 0
        stdout, stderr = (bytes(self._output[fd]).decode("utf-8", "replace") for fd in (1, 2))
        if self.detached:
            stdout = stdout.partition("\n")[2]
        seconds = perf_counter() - self._began
        return Printed(code if code >= 0 else 128 - code, stdout, stderr, seconds)

    async def stop(self) -> None:
        """End the whole group: SIGTERM, a moment, SIGKILL."""
        self.signal(signal.SIGTERM)
        try:
            await self._end()
        finally:
            await self.kill()

    async def kill(self) -> None:
        """End the whole group at once, and let go of the pipes."""
        self.signal(signal.SIGKILL)
        try:
            await self._end()
        finally:
            self.close()

    async def _end(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                await self.exited.wait()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the group."""
        if self._transport is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._transport.get_pid(), number)

    def close(self) -> None:
        """Let go of the pipes; what a program that has ended left behind may go on."""
        if self._transport is None:
            return
        self._transport.close()
        warden, self._warden = self._warden, None
        if warden is not None:
            warden.remove(self._transport.get_pid())


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
