"""A program in a process group of its own: captured, watched, and killed with all its children."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from crow.tools.output import Capture, readable
from crow.tools.spool import Spool

MARKER = "CROW_COMMAND"
_PENDING = 64 * 1024
_POLL = 0.02
_ROUNDS = 3


class Process(asyncio.SubprocessProtocol):
    """A running program. It has ended when ``exited`` is set, whoever still holds its pipes."""

    def __init__(self, command: str, spool: Spool, limit: int, pending: int = _PENDING) -> None:
        self.command = command
        self.spool = spool
        self.streams = {1: Capture(limit), 2: Capture(limit)}
        self.exited = asyncio.Event()
        self.silent = asyncio.Event()
        self.news = asyncio.Event()
        self.marker = os.urandom(8).hex()
        self.was_stopped = self.is_reported = False
        self._decoders = {fd: codecs.getincrementaldecoder("utf-8")("replace") for fd in (1, 2)}
        self._pending: list[tuple[int, bytes]] = []
        self._pending_size = self._skipped = 0
        self._pending_limit = pending
        self._open = {1, 2}
        self._transport: asyncio.SubprocessTransport | None = None

    async def start(self, argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> None:
        """Start the program; standard input is empty, and there is no terminal.

        Raises ``OSError`` where it cannot be started, ``ValueError`` for an impossible argument.
        """
        starting = asyncio.ensure_future(
            asyncio.get_running_loop().subprocess_exec(
                lambda: self,
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=cwd,
                env={**env, MARKER: self.marker},
                start_new_session=True,
            )
        )
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            # asyncio would end the program alone, and wait for all that it has started
            try:
                await asyncio.wait({starting})
            finally:
                self.kill()
                self.close()
            raise

    @property
    def pid(self) -> int:
        """Of the program, and of its group."""
        assert self._transport is not None
        return self._transport.get_pid()

    @property
    def code(self) -> int | None:
        """Exit status, or minus the signal that ended it; None while it runs."""
        return self._transport.get_returncode() if self._transport else None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Called by asyncio."""
        self.streams[fd].feed(data)
        self.spool.feed(data)
        if self._pending_size < self._pending_limit:
            self._pending.append((fd, data))
            self._pending_size += len(data)
        else:
            self._skipped += len(data)
        self.news.set()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Called by asyncio."""
        self._open.discard(fd)
        if not self._open:
            self.silent.set()

    def process_exited(self) -> None:
        """Called by asyncio."""
        self.exited.set()
        self.news.set()

    def take(self) -> str:
        """What was printed since the last call; of a flood the beginning."""
        pieces = [self._decoders[fd].decode(data) for fd, data in self._pending]
        if self._skipped:
            pieces.append(f"\n[... {self._skipped} bytes not shown ...]\n")
        self._pending.clear()
        self._pending_size = self._skipped = 0
        return readable("".join(pieces))

    async def settle(self, seconds: float) -> None:
        """After the program's end, wait for the rest of its output, but not for its children."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.silent.wait()

    async def stop(self, grace: float) -> None:
        """End the whole group: SIGTERM, ``grace`` seconds, SIGKILL; also those who left it."""
        self.was_stopped = True
        try:
            self.signal(signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(grace):
                    while self.has_members():  # noqa: ASYNC110 - no event tells of a group
                        await asyncio.sleep(_POLL)
        finally:
            self.kill()
        await self._end(_POLL * 25)

    async def _end(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.exited.wait()
                await self.silent.wait()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def has_members(self) -> bool:
        """True while any process of the group runs; those that nobody has reaped do not count."""
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return runs(self.pid)

    def kill(self) -> None:
        """SIGKILL the group, and whatever carries the command's mark in its environment."""
        if self._transport:
            self.signal(signal.SIGKILL)
        for _ in range(_ROUNDS):
            escaped = marked(self.marker)
            for pid in escaped:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if not escaped:
                break

    def close(self) -> None:
        """Let go of pipes and files. Kills the program where it still runs."""
        self.spool.close()
        if self._transport:
            self._transport.close()


def runs(group: int) -> bool:
    """True where a process of a group is more than a zombie (elsewhere than on Linux always)."""
    stats = list(Path("/proc").glob("[0-9]*/stat"))
    for path in stats:
        try:
            state, _, its_group = path.read_text("latin-1").rpartition(")")[2].split()[:3]
        except (OSError, ValueError):
            continue
        if int(its_group) == group and state not in "ZX":
            return True
    return not stats


def marked(marker: str) -> list[int]:
    """Processes that a command started and that left its group (Linux; elsewhere none)."""
    sought = f"{MARKER}={marker}".encode()
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if sought in entry.read_bytes():
                found.append(int(entry.parent.name))
        except OSError:
            continue
    return found
