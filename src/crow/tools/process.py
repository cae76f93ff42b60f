"""A command: its output captured, shown as it comes, and kept on disk where it is long."""

from __future__ import annotations

import asyncio
import codecs
import os
from collections.abc import Sequence

from crow.core.secrets import Scrubber
from crow.process.child import LAST, ChildProcess
from crow.process.mark import MARK
from crow.process.reaper import ProcessReaper
from crow.tools.output import Capture, readable
from crow.tools.spool import Spool

_PENDING = 64 * 1024


class Process(ChildProcess):
    """A running command. ``news`` is set when it has printed something, or has ended.

    Nothing that it prints is kept or shown with ``secrets`` in it.
    """

    def __init__(
        self,
        command: str,
        spool: Spool,
        limit: int,
        pending: int = _PENDING,
        reaper: ProcessReaper | None = None,
        secrets: Sequence[str] = (),
    ) -> None:
        super().__init__(reaper, f"{MARK}={os.urandom(8).hex()}")
        self.command = command
        self.spool = spool
        self.streams = {1: Capture(limit), 2: Capture(limit)}
        self.news = asyncio.Event()
        self.was_stopped = self.is_reported = False
        self._scrubbers = {fd: Scrubber(secrets) for fd in (1, 2)}
        self._decoders = {fd: codecs.getincrementaldecoder("utf-8")("replace") for fd in (1, 2)}
        self._pending: list[tuple[int, bytes]] = []
        self._pending_size = self._skipped = 0
        self._pending_limit = pending

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Called by asyncio."""
        self._hear(fd, self._scrubbers[fd].feed(data))

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Called by asyncio."""
        if fd in self._scrubbers:
            self._hear(fd, self._scrubbers[fd].end())
        super().pipe_connection_lost(fd, exc)

    def flush(self) -> None:
        """Let everything be seen that was printed until now."""
        for fd, scrubber in self._scrubbers.items():
            self._hear(fd, scrubber.end())
        self.spool.flush()

    def _hear(self, fd: int, data: bytes) -> None:
        if not data:
            return
        self.streams[fd].feed(data)
        self.spool.feed(data)
        if self._pending_size < self._pending_limit:
            self._pending.append((fd, data))
            self._pending_size += len(data)
        else:
            self._skipped += len(data)
        self.news.set()

    def process_exited(self) -> None:
        """Called by asyncio."""
        super().process_exited()
        self.news.set()

    def take(self) -> str:
        """What was printed since the last call; of a flood the beginning."""
        pieces = [self._decoders[fd].decode(data) for fd, data in self._pending]
        if self._skipped:
            pieces.append(f"\n[... {self._skipped} bytes not shown ...]\n")
        self._pending.clear()
        self._pending_size = self._skipped = 0
        return readable("".join(pieces))

    async def stop(self, grace: float) -> None:
        """End the whole group: SIGTERM, ``grace`` seconds, SIGKILL; also those who left it."""
        self.was_stopped = True
        await super().stop(grace)
        await self.settle(LAST)

    def close(self) -> None:
        """Let go of pipes and files."""
        self.spool.close()
        super().close()
