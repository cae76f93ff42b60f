"""A process that has imported what the command needs, and runs command lines in forks of itself.

Each is a process as any other, with streams, environment, directory and exit status of its own, but
without the half second that an interpreter and its imports take. What happens while those start is
not seen here: a test of it has the command started in an interpreter of its own.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NoReturn

GROUPS = ("crow.extensions", "crow.extensions.judge", "crow.extensions.on_request")
IMPORTED = """
anyio._backends._asyncio apsw concurrent.futures.thread crow.app crow.app.models crow.cli.ask
crow.cli.chat crow.cli.jsonl crow.cli.plain_chat crow.cli.call_preview crow.cli.run crow.cli.session_lookup
crow.extensions.mcp.description crow.extensions.permissions.permissions
crow.extensions.permissions.shell.shfmt crow.extensions.permissions.suggestion
crow.extensions.persistence.history crow.extensions.prompt_cache.cause
crow.extensions.prompt_cache.stored crow.llm.chat crow.llm.factory crow.llm.model_names crow.llm.routing
crow.llm.source crow.project.imports crow.project.scripts crow.settings.schema crow.tools.bash
crow.tools.declarations crow.tools.edit crow.tools.encoding crow.tools.read crow.tools.write
difflib encodings.utf_8_sig httpcore2 httpx2 jsonschema_rs prompt_toolkit tree_sitter
tree_sitter_bash truststore yaml
"""
LONGEST = 1 << 20


class Fork:
    """A command that runs, with what tests use of `asyncio.subprocess.Process`."""

    def __init__(
        self, pid: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.pid = pid
        self._reader = reader
        self._writer = writer

    async def wait(self) -> int:
        """The exit status, once it has ended; ended it is where nobody waits any longer."""
        try:
            return int(await self._reader.readline())
        except BaseException:
            self.send_signal(signal.SIGKILL)
            raise
        finally:
            self._writer.close()

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)


class Forks:
    """``await forks.start(argv, cwd, env, streams)``; the server starts with the first one."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[bytes] | None = None
        self._asking: socket.socket | None = None

    async def start(
        self,
        argv: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        streams: tuple[int, int, int],
        *,
        new_session: bool = False,
    ) -> Fork:
        """Start a command line on three open files."""
        what = {"argv": argv, "cwd": str(cwd), "env": dict(env), "new_session": new_session}
        told, tells = socket.socketpair()
        with tells:
            message = json.dumps(what).encode() + b"\n"
            socket.send_fds(self._to_server(), [message], [*streams, tells.fileno()])
        reader, writer = await asyncio.open_connection(sock=told)
        return Fork(int(await reader.readline()), reader, writer)

    def _to_server(self) -> socket.socket:
        if self._asking is None:
            self._asking, asked = socket.socketpair()
            with asked:
                fd = asked.fileno()
                argv = [sys.executable, "-P", __file__, str(fd)]
                self._server = subprocess.Popen(argv, pass_fds=[fd], process_group=0)
        return self._asking

    def close(self) -> None:
        """End the server and what it runs."""
        if self._asking and self._server:
            self._asking.close()
            os.killpg(self._server.pid, signal.SIGKILL)
            self._server.wait()
        self._asking = self._server = None


def serve(asked: socket.socket) -> None:
    """Run command lines in forks, until nobody is there to ask for more."""
    while (received := socket.recv_fds(asked, LONGEST, 4))[0]:
        message, streams, *_ = received
        while not message.endswith(b"\n"):
            message += asked.recv(LONGEST)
        if not os.fork():
            asked.close()
            tell(streams, **json.loads(message))
        for each in streams:
            os.close(each)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def tell(streams: list[int], **what: Any) -> NoReturn:
    """Run a command line in a fork and tell its number and, when it has ended, its exit status."""
    *streams, tells = streams
    with socket.socket(fileno=tells) as told:
        if not (pid := os.fork()):
            told.close()
            become(streams, **what)
        for each in streams:
            os.close(each)
        told.send(b"%d\n" % pid)
        _, status = os.waitpid(pid, 0)
        with suppress(BrokenPipeError):
            told.send(b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def become(
    streams: list[int], argv: list[str], cwd: str, env: dict[str, str], *, new_session: bool
) -> NoReturn:
    """Be the process that ``python -m crow`` would be."""
    from crow.cli import main

    if new_session:
        os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout = open(0), open(1, "w")  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace")  # noqa: SIM115
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.path.insert(0, cwd)
    sys.argv[1:] = argv
    end(main())


def end(status: int) -> NoReturn:
    """End as an interpreter does, but leave the modules alone, which are the server's.

    To take them apart would copy all memory that is shared, and cost more than most commands do.
    """
    try:
        threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]
        atexit._run_exitfuncs()
        gc.collect()
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError, KeyboardInterrupt):
        sys.exit(status)  # which says what is wrong with a stream
    os._exit(status)


if __name__ == "__main__":
    for group in GROUPS:
        for each in entry_points(group=group):
            each.load()
    for name in IMPORTED.split():
        import_module(name)
    gc.freeze()  # what a fork never touches stays shared
    serve(socket.socket(fileno=int(sys.argv[1])))
