"""A child process: a program in a session of its own, ended with all that it has started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from crow.core.support.threads import read_in_thread
from crow.process.mark import limit_of, mark_of
from crow.process.program import can_watch, start_program
from crow.process.reaper import ProcessReaper

if TYPE_CHECKING:
    from crow.core.ports.tool import Launcher

POLL = 0.02
LAST = 0.5  # seconds for the news of an end that nothing can hold up
ROUNDS = 3
CAN_GROUP = os.name == "posix"


class ChildProcess(asyncio.SubprocessProtocol):
    """A program without a terminal. A subclass is told of its output by ``pipe_data_received``.

    ``exited`` is set when it has ended, whoever still holds its pipes, ``silent`` when nobody does.
    While it runs ``reaper`` ends it where the agent dies; ``mark``, a variable of its environment
    (``NAME=VALUE``) that no other has, leads to what has left its group; a launcher may give one.
    """

    def __init__(self, reaper: ProcessReaper | None = None, mark: str = "") -> None:
        self.exited = asyncio.Event()
        self.silent = asyncio.Event()
        self._reaper, self._mark = reaper, mark
        self._open = {1, 2}
        self._launch = ExitStack()
        self._ask: Callable[[int], bool] | None = None
        self._ended: Callable[[int | None], object] | None = None
        self._transport: asyncio.SubprocessTransport | None = None

    async def start(
        self,
        argv: Sequence[str],
        cwd: str,
        env: Mapping[str, str],
        *,
        stdin: int = asyncio.subprocess.DEVNULL,
        launcher: Launcher | None = None,
    ) -> None:
        """Start it, as ``launcher`` says where there is one; cancelled, nothing of it stays.

        Raises ``OSError`` where it cannot be started, ``ValueError`` for an impossible argument.
        """
        beginning = self._begin(argv, cwd, env, stdin, launcher)
        if launcher is None and stdin == asyncio.subprocess.DEVNULL and can_watch():
            await beginning  # which waits for nothing
            return
        starting = asyncio.ensure_future(beginning)
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            # asyncio would end the program alone, and wait for all that it has started
            try:
                await asyncio.wait({starting})
            finally:
                await self.end()
            raise

    async def _begin(
        self,
        argv: Sequence[str],
        cwd: str,
        env: Mapping[str, str],
        stdin: int,
        launcher: Launcher | None,
    ) -> None:
        name, _, value = self._mark.partition("=")
        env = {**env, name: value} if name else env
        if launcher is None:
            await self._spawn(argv, cwd, env, stdin)
            return
        try:
            launch = self._launch.enter_context(launcher.launch(argv, cwd, env))
            self._mark = self._mark or mark_of(launch.env)
            self._ask = getattr(launch, "ask", None)  # newer than some launchers, as is the next
            self._ended = getattr(launch, "ended", None)
            files = tuple(launch.pass_fds)
            await self._spawn(launch.argv, cwd, launch.env, stdin, files, launch.restrict)
            if launch.started is not None:
                launch.started(self.pid)
        except BaseException:
            self._launch.close()
            raise

    async def _spawn(
        self,
        argv: Sequence[str],
        cwd: str,
        env: Mapping[str, str],
        stdin: int,
        pass_fds: Sequence[int] = (),
        restrict: Callable[[], object] | None = None,
    ) -> None:
        options: dict[str, Any] = {
            "stdin": stdin,
            "stdout": asyncio.subprocess.PIPE,
            "stderr": asyncio.subprocess.PIPE,
            "cwd": cwd,
            "env": env,
            "start_new_session": True,
            "pass_fds": pass_fds,
        }
        with self._expected():
            if restrict is not None or can_watch():
                await start_program(self, argv, restrict=restrict, **options)
            else:
                await asyncio.get_running_loop().subprocess_exec(lambda: self, *argv, **options)

    @contextlib.contextmanager
    def _expected(self) -> Generator[None]:
        """Have it ended also where the agent dies before it knows its number."""
        if self._reaper is None or not self._mark:
            yield
            return
        self._reaper.expect(self._mark)
        try:
            yield
        except BaseException:
            self._reaper.remove(mark=self._mark)
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

    # called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It runs."""
        self._transport = cast("asyncio.SubprocessTransport", transport)
        if self._reaper is not None:
            self._reaper.add(self.pid, self._mark)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Nobody can write to a pipe any more."""
        self._open.discard(fd)
        if not self._open:
            self.silent.set()

    def process_exited(self) -> None:
        """It has ended."""
        self.exited.set()

    # its input

    def send(self, data: bytes) -> None:
        """Write to its input; never waits. One that reads nothing any more is no error."""
        pipe = self._input()
        if pipe is not None and not pipe.is_closing():
            pipe.write(data)

    def end_input(self) -> None:
        """Close its input, when all that was sent is written."""
        pipe = self._input()
        if pipe is not None:
            pipe.close()

    def _input(self) -> asyncio.WriteTransport | None:
        pipe = self._transport.get_pipe_transport(0) if self._transport else None
        return cast("asyncio.WriteTransport | None", pipe)

    # its end

    async def wait(self, seconds: float) -> bool:
        """Wait a bounded time for the program's end; whether it came."""
        return await within(seconds, self.exited)

    async def settle(self, seconds: float) -> None:
        """After the program's end, wait for the rest of its output, but not for its children."""
        await within(seconds, self.silent)

    async def stop(self, grace: float) -> None:
        """End the whole group: SIGTERM, ``grace`` seconds, SIGKILL; also those who left it."""
        try:
            if self._ask is None or not self._ask(signal.SIGTERM):
                self.signal(signal.SIGTERM)
            await self._wait_for_group(grace)
        finally:
            await self._kill_all()
        await self.wait(LAST)

    async def end(self) -> None:
        """SIGKILL the group at once, and let go of the pipes."""
        try:
            await self._kill_all()
            if self._transport is not None:
                await self.wait(LAST)
        finally:
            self.close()

    async def _wait_for_group(self, seconds: float) -> None:
        """Wait until no process of the group runs any more."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await within(POLL, self.exited)
                while self.has_members():  # noqa: ASYNC110 - no event tells of a group
                    await asyncio.sleep(POLL)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the group; where there are no groups, end the program."""
        if self._transport is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if CAN_GROUP:
                os.killpg(self.pid, number)
            else:
                self._transport.kill()

    def has_members(self) -> bool:
        """True while any process of the group runs; those that nobody has reaped do not count."""
        if not CAN_GROUP:
            return not self.exited.is_set()
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return runs(self.pid)

    def kill(self) -> None:
        """SIGKILL the group."""
        self.signal(signal.SIGKILL if CAN_GROUP else signal.SIGTERM)

    async def _kill_all(self) -> None:
        """SIGKILL the group, and whatever carries the mark: a look at every process."""
        self.kill()
        if self._mark:
            try:
                await read_in_thread(_kill_marked, self._mark)
            except asyncio.CancelledError:  # there may be no loop any more for the rest
                _kill_marked(self._mark)
                raise

    def close(self) -> None:
        """Let go of the pipes; the program ends where it still runs, its children may go on."""
        ended, self._ended = self._ended, None
        if ended is not None:
            ended(self.code)
        self._launch.close()
        if self._transport is None:
            return
        self._transport.close()
        reaper, self._reaper = self._reaper, None
        if reaper is not None:
            reaper.remove(self.pid)


def python_cache_env() -> dict[str, str]:
    """Variables by which Python programs keep and look for their caches in the user's folder alone.

    A hook's script is trusted by its content, and so must be what Python runs for it.
    """
    name = "PYTHONPYCACHEPREFIX"
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return {name: os.environ.get(name) or str(Path(base, "crow", "pycache"))}


async def within(seconds: float, event: asyncio.Event) -> bool:
    """Wait a bounded time for an event; whether it came."""
    if not event.is_set():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()
    return event.is_set()


def runs(group: int) -> bool:
    """True where a process of a group is more than a zombie (elsewhere than on Linux always)."""
    is_linux = False
    for _, stat in each_process("stat"):
        is_linux = True
        state, _, its_group = stat.rpartition(b")")[2].split()[:3]
        if int(its_group) == group and state not in b"ZX":
            return True
    return not is_linux


def _kill_marked(mark: str) -> None:
    """SIGKILL whatever carries a mark, and what that starts meanwhile."""
    for _ in range(ROUNDS):
        escaped = marked(mark)
        for pid in escaped:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not escaped:
            break


def marked(mark: str) -> list[int]:
    """Processes that have a variable in their environment, or its limit (Linux; else none)."""
    sought = mark.encode()
    found = [pid for pid, environ in each_process("environ") if sought in environ]
    if number := limit_of(mark):
        limit = f" {number} ".encode()
        found += [pid for pid, limits in each_process("limits") if limit in limits]
    return found


def each_process(file: str) -> Iterator[tuple[int, bytes]]:
    """Every process by its number, and what one of its files in `/proc` says (Linux; else none).

    One that ends meanwhile is left out. `Path.glob` looks at each of them and fails then (ESRCH).
    """
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir("/proc"):  # noqa: PTH208 - the names alone
            if name.isdecimal():
                with contextlib.suppress(OSError), open(f"/proc/{name}/{file}", "rb", 0) as told:  # noqa: PTH123
                    yield int(name), told.read()
