"""An editor for tests: a client of the protocol that records everything and answers by a script."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from crow.testing.shell import Shell
from crow.testing.wire import Message, Wire

if TYPE_CHECKING:
    from acp.client.connection import ClientSideConnection
    from acp.schema import InitializeResponse, PromptResponse

    from crow.core.agent import Agent
    from crow.testing.editor_handlers import Answer

FAREWELL = 30.0
"""Seconds for an agent to end in, on a machine that does much else."""


class FakeEditor:
    """An editor; needs ``crow-acp[testing]``.

    ``permissions`` answer requests for permission one after another, the last one all that
    follow: an option's id or kind, ``"cancelled"``, a whole response, an exception to answer
    with, or a callable that gets the request's parameters. ``answers`` do the same for forms: a
    value for each field, a dict with them by name, or with an ``action``, or None to decline;
    without them no forms are offered. ``pages`` are looked at where offered, too. ``files`` (path
    to text, as in unsaved buffers; other paths are read from the disk) and ``terminals`` are
    offered where given. ``notices`` and ``meta`` go into the capabilities, and so do
    ``drafts``, which the library may not know yet. Requests of the methods in
    ``silent`` are never answered, those in ``refused`` (method to reason) with an error.

    After ``async with editor.connected(agent)``, ``editor.spawned(command, ...)`` or
    ``editor.dialed(url)`` the agent is initialized. Whatever the agent sends is held against the
    protocol's schema; leaving the block raises AssertionError if it did not fit.
    """

    def __init__(
        self,
        *,
        permissions: Iterable[Answer] = ("allow_once",),
        answers: Iterable[Any] | None = None,
        files: dict[str, str] | None = None,
        terminals: bool = False,
        pages: bool = False,
        notices: bool = False,
        switches: bool = False,
        meta: Message | None = None,
        drafts: Message | None = None,
        silent: Iterable[str] = (),
        refused: Mapping[str, str] | None = None,
    ) -> None:
        self.files = files
        self.refused = dict(refused or {})
        self.shell = Shell() if terminals else None
        self.asked: list[Message] = []
        self.greeting: InitializeResponse | None = None
        self.process: asyncio.subprocess.Process | None = None
        self._permissions = list(permissions)
        self._answers = None if answers is None else list(answers)
        self._pages = pages
        self._notices = notices
        self._switches = switches
        self._meta = meta
        self._drafts = drafts
        self._silent = frozenset(silent)
        self._wire: Wire | None = None
        self._connection: ClientSideConnection | None = None

    # connecting

    @asynccontextmanager
    async def connected(self, agent: Agent, *, initialize: bool = True) -> AsyncGenerator[None]:
        """Serve an agent in this process, over two pipes, and be its client."""
        from crow.acp import run_agent

        agent_source, editor_sink = os.pipe()
        editor_source, agent_sink = os.pipe()
        serving = asyncio.create_task(run_agent(agent, source=agent_source, sink=agent_sink))
        try:
            wire = await _wire(editor_source, editor_sink)
            async with self._talking(wire, initialize=initialize):
                yield
            async with asyncio.timeout(FAREWELL):
                await serving
        finally:
            serving.cancel()
            await asyncio.wait([serving])
            os.close(agent_source)
            os.close(agent_sink)

    @asynccontextmanager
    async def spawned(
        self,
        *command: str,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        initialize: bool = True,
    ) -> AsyncGenerator[None]:
        """Start an agent's process and be its client; it has to end with the block."""
        self.process = process = await asyncio.create_subprocess_exec(
            *command,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            async with self._talking(Wire(process.stdout, process.stdin), initialize=initialize):
                yield
            async with asyncio.timeout(FAREWELL):
                await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    @asynccontextmanager
    async def dialed(self, url: str, *, initialize: bool = True) -> AsyncGenerator[None]:
        """Be a client of an agent's server: over HTTP, or over WebSocket at a ``ws://`` URL."""
        from crow.testing.remote import dial

        lines: Any = await dial(url)
        try:
            async with self._talking(Wire(lines, lines), initialize=initialize):
                yield
        finally:
            await lines.closed()

    @asynccontextmanager
    async def _talking(self, wire: Wire, *, initialize: bool) -> AsyncGenerator[None]:
        try:
            from acp.client.connection import ClientSideConnection
        except ImportError as error:
            raise ImportError("a FakeEditor needs: pip install 'crow-acp[testing]'") from error
        from crow.testing.editor_handlers import FakeEditorHandlers

        self._wire = wire
        wire.silent = self._silent
        connection: Any = ClientSideConnection(
            FakeEditorHandlers(self),  # type: ignore[arg-type]
            wire,
            use_unstable_protocol=True,
        )
        self._connection = connection
        try:
            if initialize:
                await self.initialize()
            yield
        finally:
            await connection.close()
            if self.shell is not None:
                await self.shell.close()
        assert not wire.faults, "\n".join(wire.faults)

    # talking

    @property
    def connection(self) -> ClientSideConnection:
        """The library's connection, for everything that has no shorter way here."""
        assert self._connection is not None, "the editor is not connected"
        return self._connection

    @property
    def wire(self) -> Wire:
        """What goes over the wire, as it is."""
        assert self._wire is not None, "the editor is not connected"
        return self._wire

    async def initialize(self, version: int = 1) -> InitializeResponse:
        """Say hello."""
        from acp.schema import ClientCapabilities, Implementation, InitializeResponse

        if self._drafts is not None:
            params = {"protocolVersion": version, "clientCapabilities": self.capabilities}
            answer = await self.wire.request("initialize", params)
            self.greeting = InitializeResponse.model_validate(answer["result"])
            return self.greeting
        self.greeting = await self.connection.initialize(
            version,
            ClientCapabilities.model_validate(self.capabilities),
            Implementation(name="fake-editor", version="1"),
        )
        return self.greeting

    @property
    def capabilities(self) -> Message:
        """What this editor announces."""
        offered: Message = {"terminal": self.shell is not None, **(self._drafts or {})}
        if self.files is not None:
            offered["fs"] = {"readTextFile": True, "writeTextFile": True}
        shown = {"form": self._answers is not None, "url": self._pages}
        if any(shown.values()):
            offered["elicitation"] = {mode: {} for mode, is_shown in shown.items() if is_shown}
        if self._notices:
            offered["session"] = {"notices": {}, "compaction": {}}
        if self._switches:
            shown = offered.setdefault("session", {})
            shown["configOptions"] = {"boolean": {}}
        return {**offered, "_meta": self._meta} if self._meta else offered

    async def new_session(self, cwd: str | os.PathLike[str]) -> str:
        """Open a session; its id."""
        return (await self.connection.new_session(os.fspath(cwd))).session_id

    async def prompt(self, session_id: str, *blocks: str | Message) -> PromptResponse:
        """Send a prompt of texts and content blocks, and wait for its answer."""
        from acp.schema import PromptRequest

        said = [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]
        request = PromptRequest.model_validate({"sessionId": session_id, "prompt": said})
        return await self.connection.prompt(session_id, request.prompt)

    async def cancel(self, session_id: str) -> None:
        """End the turn."""
        await self.connection.cancel(session_id)

    # what was seen

    def updates(self, kind: str | None = None, session_id: str | None = None) -> list[Message]:
        """The updates in order; of one kind or one session where named."""
        return [
            params["update"]
            for params in self._told()
            if session_id in (None, params["sessionId"])
            and kind in (None, params["update"]["sessionUpdate"])
        ]

    def _told(self) -> list[Message]:
        return [m["params"] for m in self.wire.received if m.get("method") == "session/update"]

    def text(self, session_id: str | None = None, kind: str = "agent_message_chunk") -> str:
        """What the agent said, in one piece."""
        chunks = self.updates(kind, session_id)
        return "".join(chunk["content"].get("text", "") for chunk in chunks)

    def cards(self, session_id: str | None = None) -> list[Message]:
        """The tool calls as they stand, each update laid over the ones before it.

        A call's id is its session's: a sub-agent's may be one of its parent's as well.
        """
        cards: dict[tuple[str, str], Message] = {}
        for params in self._told():
            update = params["update"]
            if session_id not in (None, params["sessionId"]):
                continue
            if update["sessionUpdate"] in ("tool_call", "tool_call_update"):
                card = cards.setdefault((params["sessionId"], update["toolCallId"]), {})
                card.update({k: v for k, v in update.items() if k != "sessionUpdate"})
        return list(cards.values())

    async def saw(self, kind: str, **fields: Any) -> Message:
        """Wait for an update of a kind that has these fields, and return it."""
        found: list[Message] = []

        def is_there() -> bool:
            found[:] = [u for u in self.updates(kind) if fields.items() <= u.items()]
            return bool(found)

        await self.wire.until(is_there)
        return found[0]

    # what the desk asks

    def next_permission(self) -> Answer:
        """The answer to the next request for permission."""
        return self._permissions.pop(0) if len(self._permissions) > 1 else self._permissions[0]

    def next_answer(self) -> Any:
        """The answer to the next form."""
        answers = self._answers or [None]
        return answers.pop(0) if len(answers) > 1 else answers[0]


async def _wire(source: int, sink: int) -> Wire:
    """The editor's ends of two pipes."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    reading, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(source, "rb")
    )
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(sink, "wb")
    )
    return Wire(reader, asyncio.StreamWriter(transport, protocol, None, loop), reading)
