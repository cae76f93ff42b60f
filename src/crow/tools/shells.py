"""The commands of one session: those in the background, and what others left running."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from crow.core.cache import Key
from crow.core.ports.tool import Launcher, ToolEnvironment
from crow.keys import ENV_FILE
from crow.process.reaper import ProcessReaper
from crow.tools.errors import ToolError
from crow.tools.process import Process
from crow.tools.spill import outputs
from crow.tools.spool import Spool

_TITLE = 200
_DRAIN = 0.2


class BackgroundCommand:
    """A command in the background as whoever waits for it sees it: a `crow.keys.Job`."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @property
    def title(self) -> str:
        """The command line, shortened."""
        line = " ".join(self._process.command.split())
        return line if len(line) <= _TITLE else f"{line[: _TITLE - 3]}..."

    @property
    def reported(self) -> bool:
        """True once BashOutput or KillShell told the model of its end."""
        return self._process.is_reported

    async def wait(self) -> str:
        """Wait for its end."""
        await self._process.exited.wait()
        await self._process.settle(_DRAIN)
        return (
            f"{status(self._process)}, exit code {self._process.code} (BashOutput reads its output)"
        )


def status(process: Process) -> str:
    """How it is with a command, in Claude Code's word."""
    if process.was_stopped:
        return "killed"
    if not process.exited.is_set():
        return "running"
    return "failed" if process.code else "completed"


class Shells:
    """Lives in the session's cache; `aclose` ends everything that still runs."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.env_file: str | None = None
        self.environment: Mapping[str, str] = {}
        self.secrets: Sequence[str] = ()
        self.background: dict[str, Process] = {}
        self._running: set[Process] = set()
        self._reaper = ProcessReaper()
        self._program: tuple[str, str, str] | None = None
        self._guard: asyncio.Task[None] | None = None

    @classmethod
    def of(cls, ctx: ToolEnvironment) -> Shells:
        """The session's own."""
        shells = SHELLS.setdefault(ctx, cls(ctx.session_id))
        shells.env_file = ENV_FILE.get(ctx)
        shells.environment = ctx.environment
        shells.secrets = ctx.secrets
        return shells

    async def start(
        self,
        command: str,
        cwd: str,
        *,
        limit: int,
        is_background: bool,
        launcher: Launcher | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Process:
        """Run a command line with bash, in the session's environment unless another one is given.

        Raises `ToolError` where that is impossible.
        """
        environment = self.environment if environment is None else environment
        self._sweep()
        spool = Spool(
            partial(outputs, self.session_id),
            "bash",
            threshold=-1 if is_background else limit,
        )
        pending = limit if is_background else 65536
        process = Process(command, spool, limit, pending, self._reaper, self.secrets)
        try:
            line = sourced(command, self.env_file)
            argv = [self._bash(cwd, environment), "-c", line]
            await process.start(argv, cwd, environment, launcher=launcher)
        except (OSError, ValueError) as error:
            raise ToolError(_cannot_start(error, cwd)) from error
        self._running.add(process)
        return process

    def _bash(self, cwd: str, environment: Mapping[str, str]) -> str:
        """Bash, which is looked for once a directory and ``PATH``, and where it is gone."""
        path = environment.get("PATH", os.defpath)
        known = self._program
        if known is None or known[1:] != (cwd, path) or not os.access(known[0], os.X_OK):
            known = self._program = program(cwd, path), cwd, path
        return known[0]

    def register(self, process: Process) -> str:
        """Put a command into the background; its id."""
        name = f"bash_{len(self.background) + 1}"
        self.background[name] = process
        self._watch_over()
        return name

    def find(self, name: str) -> Process:
        """A command in the background. Raises `ToolError` for an unknown id."""
        if name not in self.background:
            known = ", ".join(self.background) or "none"
            raise ToolError(f"No background command {name!r}; there are: {known}.")
        return self.background[name]

    async def end(self, process: Process, grace: float) -> None:
        """End a command and all that it has started, at once where somebody cancels that."""
        try:
            await process.stop(grace)
        finally:
            self.release(process)

    def release(self, process: Process) -> None:
        """Forget a command, unless it left processes running: those go on."""
        if not process.silent.is_set() or process.has_members():
            self._watch_over()
            return
        self._running.discard(process)
        process.close()

    def _sweep(self) -> None:
        for process in [each for each in self._running if each.exited.is_set()]:
            self.release(process)

    async def aclose(self) -> None:
        """End every command within a second."""
        await self._end()
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.cancel()
            await asyncio.wait([guard])

    def _watch_over(self) -> None:
        """See to it that what still runs ends with the event loop, if nobody closes the session."""
        if self._guard is None:
            self._guard = asyncio.create_task(self._end_when_cancelled(), name="crow.shells")

    async def _end_when_cancelled(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await self._end()

    async def _end(self) -> None:
        running = list(self._running)
        await asyncio.gather(*(process.stop(0.3) for process in running))
        for process in running:
            process.close()
        self._running.clear()
        await asyncio.to_thread(self._reaper.close)


def sourced(command: str, env_file: str | None) -> str:
    """A command line behind the variables of a session's file."""
    return command if env_file is None else f". {shlex.quote(env_file)}\n{command}"


def program(cwd: str, path: str) -> str:
    """Bash as ``PATH`` leads to it, passing over what lies in the directory that is worked in."""
    for folder in filter(os.path.isabs, path.split(os.pathsep)):
        found = os.path.join(folder, "bash")  # noqa: PTH118 - before every command
        if _is_there(found) and not _is_below(folder, cwd):
            return found
    return "/bin/bash"


def _is_there(found: str) -> bool:
    return os.access(found, os.X_OK) and os.path.isfile(found)  # noqa: PTH113


def _is_below(path: str, cwd: str) -> bool:
    return Path(path).resolve().is_relative_to(Path(cwd).resolve())


def _cannot_start(error: OSError | ValueError, cwd: str) -> str:
    if not os.path.isdir(cwd):  # noqa: PTH112
        return f"The working directory {cwd} is gone, so no command can run in it."
    if isinstance(error, ValueError):
        return f"The command cannot be passed to bash: {error}."
    return f"The command cannot be started: {error.strerror or error}."


SHELLS: Key[Shells] = Key("tools.shells")
