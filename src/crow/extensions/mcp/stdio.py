"""A server that runs as a process: one line a message, bounded, and never left behind.

The library's own transport takes lines of any length; hence this one.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from math import inf
from typing import TYPE_CHECKING, cast

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from crow.extensions.mcp.limits import MESSAGE
from crow.extensions.mcp.requests import Broken
from crow.process import ChildProcess, ProcessReaper, python_cache_env

if TYPE_CHECKING:
    from crow.extensions.mcp.description import Description
    from crow.extensions.mcp.failure import Failure
    from crow.keys import Launcher

INHERITED = re.compile(
    r"TRACEPARENT|TRACESTATE|BAGGAGE"
    r"|HOME|LOGNAME|PATH|SHELL|TERM|USER|LANG|LANGUAGE|TZ|TMPDIR|LC_\w+|XDG_\w+|SSL_CERT_\w+"
    r"|NODE_EXTRA_CA_CERTS|(?i:https?_proxy|no_proxy|all_proxy)"
    r"|APPDATA|LOCALAPPDATA|USERPROFILE|USERNAME|HOMEDRIVE|HOMEPATH|PATHEXT|SYSTEM\w+|TEMP|TMP"
)
"""Variables that every server gets; keys and the rest only where its description says so."""
SETTLE = 0.2

Streams = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]


class ServerProcess(ChildProcess):
    """The process. Its output ends when it does, whoever else holds the pipe."""

    def __init__(self, failure: Failure, reaper: ProcessReaper) -> None:
        super().__init__(reaper)
        self.output = asyncio.StreamReader(limit=MESSAGE)
        self._failure = failure
        self._has_spoken = False
        self._is_silent = False
        self._is_stopping = False

    # called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Let the output's reader hold the process back."""
        super().connection_made(transport)
        pipe = cast("asyncio.SubprocessTransport", transport).get_pipe_transport(1)
        if pipe is not None:
            self.output.set_transport(pipe)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Output, or a complaint."""
        if fd == 2:
            self._failure.complain(data)
        elif not self._is_silent:
            self._has_spoken = True
            self.output.feed_data(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """A server that has closed its input or output is of no use any more."""
        super().pipe_connection_lost(fd, exc)
        if fd == 1:
            self.silence()
        elif fd == 0:
            self._silence_soon()

    def process_exited(self) -> None:
        """What is still in the pipe is read; its children may hold that open for ever."""
        if not self._is_stopping:
            self._failure.code = self.code
        super().process_exited()
        self._silence_soon()

    def _silence_soon(self) -> None:
        asyncio.get_running_loop().call_later(SETTLE, self.silence)

    def silence(self) -> None:
        """Nothing more is to come."""
        if not self._is_silent:
            self._is_silent = True
            self.output.feed_eof()

    # called by the connection

    async def leave(self, grace: float) -> None:
        """End it and its children: no more input, then SIGTERM, then SIGKILL.

        One that has not said a word yet has nothing to finish, and may never look at its input.
        """
        self._is_stopping = not self._is_silent
        try:
            self.end_input()
            if self._is_silent:  # it may have ended by itself, and say how in a moment
                await self.wait(SETTLE)
            if not (self._has_spoken and await self.wait(grace / 2)):
                self._is_stopping = True
                await self.stop(grace / 2)
            await self.settle(SETTLE)
        finally:
            await self.end()


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """What a server inherits, and what its description adds."""
    inherited = {key: value for key, value in os.environ.items() if INHERITED.fullmatch(key)}
    return {**python_cache_env(), **inherited, **given}


@asynccontextmanager
async def process_streams(
    described: Description,
    cwd: str,
    failure: Failure,
    grace: float,
    reaper: ProcessReaper,
    launcher: Launcher | None = None,
) -> AsyncGenerator[Streams]:
    """Start a server and exchange messages with it; at the end it and its children are gone.

    Raises ``OSError`` or ``ValueError`` where it cannot be started.
    """
    process = ServerProcess(failure, reaper)
    argv, env = (described.command, *described.args), environment(described.env)
    where = described.cwd or cwd
    await process.start(argv, where, env, stdin=asyncio.subprocess.PIPE, launcher=launcher)
    to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, from_session = anyio.create_memory_object_stream[SessionMessage](inf)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_read, process, to_session, failure)
            group.start_soon(_write, process, from_session)
            try:
                yield from_server, to_server
            finally:
                group.cancel_scope.cancel()
    finally:
        for stream in (to_session, from_server, to_server, from_session):
            stream.close()
        with anyio.CancelScope(shield=True):
            await process.leave(grace)


async def _read(
    process: ServerProcess,
    to_session: MemoryObjectSendStream[SessionMessage | Exception],
    failure: Failure,
) -> None:
    """Hand on line by line; a line that is too long is the end."""
    with to_session:
        while True:
            try:
                line = await process.output.readuntil(b"\n")
            except asyncio.IncompleteReadError:
                return
            except asyncio.LimitOverrunError:
                failure.say(f"it sent a line of more than {MESSAGE // 1024 // 1024} MiB")
                return
            try:
                await to_session.send(_item(line))
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                return


def _item(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        return Broken(line)


async def _write(
    process: ServerProcess, from_session: MemoryObjectReceiveStream[SessionMessage]
) -> None:
    async for message in from_session:
        text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
        process.send(f"{text}\n".encode("utf-8", "replace"))
