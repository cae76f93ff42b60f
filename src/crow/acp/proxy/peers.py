"""The two ends that a proxy stands between: lines come from one, and go to it when it has room."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Protocol, cast

from crow.acp.jsonrpc import Lines, Oversized
from crow.acp.proxy.line import Line
from crow.process.child import ChildProcess
from crow.process.reaper import ProcessReaper

CHUNK = 64 * 1024
LEAVING = 2.0
"""Seconds that an agent has to end by itself when nobody talks to it any more."""
TERMINATING = 1.0


class Peer(Protocol):
    """One end. ``take`` waits while it cannot take more; to one that is gone nothing is sent."""

    async def take(self, line: Line) -> None: ...


async def lines(stream: asyncio.StreamReader) -> AsyncGenerator[bytes | Oversized]:
    """The lines of a stream, without their ends; blank ones are none."""
    cut = Lines()
    while chunk := await stream.read(CHUNK):
        for line in cut.feed(chunk):
            if isinstance(line, Oversized) or line.strip():
                yield line
    for line in cut.rest():
        yield line


class Flow:
    """Flow control of one end: whether it takes more; called by asyncio."""

    def __init__(self) -> None:
        self._has_room = asyncio.Event()
        self._has_room.set()

    def pause_writing(self) -> None:
        """It cannot take more for now."""
        self._has_room.clear()

    def resume_writing(self) -> None:
        """It can again, or is gone."""
        self._has_room.set()

    async def room(self) -> None:
        """Wait while it cannot take more."""
        await self._has_room.wait()


class StandardIO(Flow, asyncio.BaseProtocol):
    """Whoever started this process, on its standard input and output."""

    def __init__(self) -> None:
        Flow.__init__(self)
        self.stream = asyncio.StreamReader(limit=CHUNK)
        self._input: asyncio.ReadTransport | None = None
        self._output: asyncio.WriteTransport | None = None
        self._copying: Thread | None = None

    async def open(self, source: int, sink: int) -> None:
        """Speak on these file descriptors from now on."""
        loop = asyncio.get_running_loop()
        if is_file(source):
            source = self._copied(source, into_pipe=False)
        if is_file(sink):
            sink = self._copied(sink, into_pipe=True)
        reading = asyncio.StreamReaderProtocol(self.stream)
        input_, _ = await loop.connect_read_pipe(lambda: reading, os.fdopen(source, "rb", 0))
        output, _ = await loop.connect_write_pipe(lambda: self, os.fdopen(sink, "wb", 0))
        self._input, self._output = input_, output

    def _copied(self, file: int, *, into_pipe: bool) -> int:
        """The end of a pipe that stands for a file, which no event loop waits for."""
        reading, writing = os.pipe()
        ends = (reading, file) if into_pipe else (file, writing)
        thread = Thread(target=copy, args=ends, name="crow-acp-copy", daemon=True)
        thread.start()
        if into_pipe:
            self._copying = thread
        return writing if into_pipe else reading

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody reads any more."""
        del exc
        self.resume_writing()
        self.hang_up()

    def hang_up(self) -> None:
        """Read nothing more, as if it had gone."""
        if self._input is not None:
            self._input.close()

    async def take(self, line: Line) -> None:
        """Write, when it has room."""
        await self.room()
        if self._output is not None and not self._output.is_closing():
            self._output.write(line.raw)

    async def drained(self, seconds: float) -> None:
        """Wait until all is written, for so long at most."""
        if self._output is None:
            return
        self._output.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._output.get_write_buffer_size():  # noqa: ASYNC110 - there is no event
                    await asyncio.sleep(0.005)
                if self._copying is not None:
                    await asyncio.to_thread(self._copying.join, seconds)


def is_file(number: int) -> bool:
    """True for what is neither a pipe nor a terminal: a file, or ``/dev/null``."""
    mode = os.fstat(number).st_mode
    return stat.S_ISREG(mode) or (stat.S_ISCHR(mode) and not os.isatty(number))


def copy(source: int, sink: int) -> None:
    """Copy all that comes out of one file to another."""
    with os.fdopen(source, "rb", 0) as reading, os.fdopen(sink, "wb", 0) as writing:
        while data := reading.read(CHUNK):
            writing.write(data)


class AgentProcess(ChildProcess):
    """The agent that is stood in front of. What it says on standard error goes to this one's."""

    def __init__(self, command: Sequence[str]) -> None:
        super().__init__(ProcessReaper())
        self.command = command
        self.stream = asyncio.StreamReader(limit=CHUNK)
        self._flow = Flow()

    async def open(self) -> None:
        """Start it. Raises ``OSError`` and ``ValueError``."""
        await self.start(self.command, str(Path.cwd()), os.environ, stdin=asyncio.subprocess.PIPE)
        assert self._transport is not None
        output = self._transport.get_pipe_transport(1)
        self.stream.set_transport(cast("asyncio.ReadTransport", output))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """It said something."""
        if fd == 1:
            self.stream.feed_data(data)
        else:
            with suppress(OSError):
                os.write(2, data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """It has closed a pipe."""
        super().pipe_connection_lost(fd, exc)
        if fd == 0:
            self._flow.resume_writing()
        elif fd == 1:
            self.stream.feed_eof()

    def pause_writing(self) -> None:
        """It reads more slowly than it is written to."""
        self._flow.pause_writing()

    def resume_writing(self) -> None:
        """It has caught up."""
        self._flow.resume_writing()

    async def take(self, line: Line) -> None:
        """Write, when it has room."""
        await self._flow.room()
        self.send(line.raw)

    async def leave(self) -> None:
        """Let it end: first by itself, then by force, with all that it has started."""
        self.end_input()
        if not await self.wait(LEAVING):
            await self.stop(TERMINATING)
        await self.end()

    @property
    def ending(self) -> str:
        """How it has ended, in a few words."""
        match self.code:
            case None:
                return "closed its output"
            case code if code < 0:
                return f"was ended by the signal {-code}"
            case code:
                return f"ended with status {code}"
