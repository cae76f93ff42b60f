"""A program that is heard of by a descriptor, and that may have given up rights before it began.

asyncio hears of the end of each process by a thread of its own before Python 3.12; a descriptor
takes half the time. It starts programs on the loop's own thread, which must keep its rights, and
what Python runs between fork and exec may hang in a process of many threads. So where rights are
given up, a thread of its own does that, starts the program and ends.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import IO, Any, cast

SIZE = 256 * 1024
"""Bytes that are read from a pipe at once, as asyncio does."""


@cache
def can_watch() -> bool:
    """True where the kernel has descriptors of processes, and lets them be used."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (OSError, AttributeError):
        return False
    return True


async def start_program(
    protocol: asyncio.SubprocessProtocol,
    argv: Sequence[str],
    *,
    restrict: Callable[[], object] | None = None,
    **options: Any,
) -> None:
    """Start a program as ``loop.subprocess_exec`` does; ``options`` are of `Popen`.

    ``restrict`` gives up rights of the thread that it is called in. Raises what that and `Popen`
    raise, and ``OSError`` where there is no descriptor of the process.
    """
    options = {"bufsize": 0, **options}
    if restrict is None:
        program = _opened(argv, options)  # on the loop's thread, as asyncio does
    else:
        program = await _restricted(restrict, argv, options)
    try:
        await Program(program, protocol).connect()
    except BaseException:
        program.kill()
        program.wait()
        raise


def _opened(argv: Sequence[str], options: dict[str, Any]) -> subprocess.Popen[bytes]:
    return cast("subprocess.Popen[bytes]", subprocess.Popen(argv, **options))


async def _restricted(
    restrict: Callable[[], object], argv: Sequence[str], options: dict[str, Any]
) -> subprocess.Popen[bytes]:
    loop = asyncio.get_running_loop()
    started: asyncio.Future[subprocess.Popen[bytes]] = loop.create_future()

    def start() -> None:
        try:
            restrict()
            program = _opened(argv, options)
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            loop.call_soon_threadsafe(started.set_exception, error)
        else:
            loop.call_soon_threadsafe(started.set_result, program)

    threading.Thread(target=start, name="crow-restricted", daemon=True).start()
    return await started


class Program(asyncio.SubprocessTransport):
    """A program that runs already, as asyncio shows one."""

    def __init__(
        self, program: subprocess.Popen[bytes], protocol: asyncio.SubprocessProtocol
    ) -> None:
        super().__init__()
        self._program, self._protocol = program, protocol
        self._loop = asyncio.get_running_loop()
        self._pipes: dict[int, asyncio.BaseTransport] = {
            number: _Pipe(self._loop, protocol, number, pipe)
            for number, pipe in ((1, program.stdout), (2, program.stderr))
            if pipe is not None
        }
        self._pidfd = os.pidfd_open(program.pid)

    async def connect(self) -> None:
        """Tell the protocol that it runs, and from now on what it prints, and its end."""
        if self._program.stdin is not None:
            self._pipes[0], _ = await self._loop.connect_write_pipe(
                asyncio.BaseProtocol, self._program.stdin
            )
        for number in (1, 2):
            if isinstance(pipe := self._pipes.get(number), _Pipe):
                pipe.resume_reading()
        self._loop.add_reader(self._pidfd, self._end)
        self._protocol.connection_made(self)  # which may want a pipe to wait

    def _end(self) -> None:
        """Learn how it has ended."""
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._program.wait()
        self._protocol.process_exited()

    def get_pid(self) -> int:
        """Of the program."""
        return self._program.pid

    def get_returncode(self) -> int | None:
        """Exit status, or minus the signal; None while it runs."""
        return self._program.returncode

    def get_pipe_transport(self, fd: int) -> asyncio.BaseTransport | None:
        """The transport of one of its pipes."""
        return self._pipes.get(fd)

    def kill(self) -> None:
        """SIGKILL it, where it still runs."""
        self._program.kill()

    def close(self) -> None:
        """Let go of the pipes, and end it where it still runs."""
        for pipe in self._pipes.values():
            pipe.close()
        if self._program.returncode is None:
            self._program.kill()


class _Pipe(asyncio.ReadTransport):
    """One of its pipes: tells the protocol what comes out of it, as long as nobody says to wait.

    asyncio's own takes four turns of the loop to be made.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        protocol: asyncio.SubprocessProtocol,
        number: int,
        pipe: IO[bytes],
    ) -> None:
        super().__init__()
        self._loop, self._protocol, self._number, self._pipe = loop, protocol, number, pipe
        os.set_blocking(pipe.fileno(), False)

    def _ready(self) -> None:
        """Read what there is, and look once more: behind a short piece the end is often there."""
        if 0 < self._read() < SIZE and not self._pipe.closed:
            self._read()

    def _read(self) -> int:
        """Tell of a piece; how long it is, 0 where there is none now or no more."""
        try:
            data = os.read(self._pipe.fileno(), SIZE)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            self._end(error)
            return 0
        if data:
            self._protocol.pipe_data_received(self._number, data)
        else:
            self._end()
        return len(data)

    def _end(self, error: OSError | None = None) -> None:
        if not self._pipe.closed:
            self.pause_reading()
            self._pipe.close()
            self._protocol.pipe_connection_lost(self._number, error)

    def is_closing(self) -> bool:
        """True once nothing more comes out of it."""
        return self._pipe.closed

    def close(self) -> None:
        """Let go of it."""
        self._loop.call_soon(self._end)

    def pause_reading(self) -> None:
        """Leave in it what is in it."""
        self._loop.remove_reader(self._pipe.fileno())

    def resume_reading(self) -> None:
        """Read it again."""
        if not self._pipe.closed:
            self._loop.add_reader(self._pipe.fileno(), self._ready)
