"""A client that speaks the draft: the library's own, over a wire that checks every message."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

import pytest
from acp.exceptions import RequestError

from crow import Agent
from crow.acp import run_agent
from crow.acp.initialize import AgentCapabilities
from crow.acp.stdio import StdioTransport
from crow.testing import official_schema
from crow.testing.remote import dial
from crow.testing.schema import Version
from crow.testing.wire import Message, Wire

if TYPE_CHECKING:
    from acp.experimental.v2 import ClientSideConnection

OFFER = AgentCapabilities(store=True, mcp=True, archive=True, prompted=True, latest=2)
NEWER = (
    "InitializeResponse.capabilities.auth.status",
    "InitializeResponse.capabilities.session.archive",
    "InitializeResponse.capabilities.session.status",
    "InitializeResponse.capabilities.session.systemPrompt",
    "InitializeResponse.capabilities.session.title",
    "NewSessionResponse.availableCommands",
    "ResumeSessionResponse.availableCommands",
    "ForkSessionResponse.availableCommands",
    "ListSessionsResponse.sessions[].archived",
    "ListSessionsResponse.sessions[].updatedAt",
    "UpdateSessionNotification.update.availableCommands[].type",
    "UpdateSessionNotification.update.capabilities",
    "UpdateSessionNotification.update.error",
)
"""What the official schema has and the library does not know yet, or writes in another way."""
LIBRARY = Version(
    "acp.experimental.v2.schema",
    {
        "initialize": "InitializeResponse",
        "auth/login": "LoginAuthResponse",
        "auth/logout": "LogoutAuthResponse",
        "session/new": "NewSessionResponse",
        "session/resume": "ResumeSessionResponse",
        "session/fork": "ForkSessionResponse",
        "session/list": "ListSessionsResponse",
        "session/close": "CloseSessionResponse",
        "session/delete": "DeleteSessionResponse",
        "session/set_config_option": "SetSessionConfigOptionResponse",
        "session/prompt": "PromptResponse",
    },
    {
        "session/update": "UpdateSessionNotification",
        "session/request_permission": "RequestPermissionRequest",
        "elicitation/create": "CreateFormSessionElicitationRequest",
        "elicitation/complete": "CompleteElicitationNotification",
        "$/cancel_request": "CancelRequestNotification",
    },
    frozenset(NEWER),
)


def fault(message: Message, method: str | None) -> str | None:
    """What the library or the official schema of the draft says against a message."""
    return LIBRARY.fault(message, method) or official_schema.fault(message, method, 2)


class Draft:
    """A client of version 2. ``permission`` answers requests: an option's kind or id, or a callable."""

    def __init__(self, permission: Any = "allow_once", answer: Any = None) -> None:
        self.permission = permission
        self.answer = answer
        self.asked: list[Message] = []
        self.greeting: Any = None
        self.wire: Wire
        self.connection: ClientSideConnection

    # connecting

    @asynccontextmanager
    async def connected(
        self, agent: Agent, offer: AgentCapabilities = OFFER
    ) -> AsyncGenerator[None]:
        """Serve an agent in this process, over two pipes."""
        agent_source, editor_sink = os.pipe()
        editor_source, agent_sink = os.pipe()
        link = StdioTransport(agent_source, agent_sink, offer)
        serving = asyncio.create_task(
            run_agent(agent, link=link, source=agent_source, sink=agent_sink)
        )
        try:
            loop = asyncio.get_running_loop()
            reader = asyncio.StreamReader()
            reading, _ = await loop.connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(editor_source, "rb")
            )
            transport, protocol = await loop.connect_write_pipe(
                asyncio.streams.FlowControlMixin, os.fdopen(editor_sink, "wb")
            )
            writer = asyncio.StreamWriter(transport, protocol, None, loop)
            async with self._talking(Wire(reader, writer, reading, fault)):
                yield
            async with asyncio.timeout(50):
                await serving
        finally:
            serving.cancel()
            await asyncio.wait([serving])
            os.close(agent_source)
            os.close(agent_sink)

    @asynccontextmanager
    async def spawned(
        self, *command: str, cwd: Any, env: Mapping[str, str] | None = None
    ) -> AsyncGenerator[None]:
        """Start an agent's process, which has to end with the block."""
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            async with self._talking(Wire(process.stdout, process.stdin, check=fault)):
                yield
            async with asyncio.timeout(50):
                await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    @asynccontextmanager
    async def dialed(self, url: str) -> AsyncGenerator[None]:
        """Be a client of a server."""
        lines: Any = await dial(url)
        try:
            async with self._talking(Wire(lines, lines, check=fault)):
                yield
        finally:
            await lines.closed()

    @asynccontextmanager
    async def _talking(self, wire: Wire) -> AsyncGenerator[None]:
        from acp.experimental.v2 import ClientSideConnection, schema  # takes a second

        self.wire = wire
        self.connection = ClientSideConnection(self, wire)
        shown = {"elicitation": {"form": {}, "url": {}}}
        capabilities = shown if self.answer is not None else {}
        try:
            self.greeting = await self.connection.initialize(
                2,
                schema.Implementation(name="draft-client", version="1"),
                schema.ClientCapabilities.model_validate(capabilities),
            )
            yield
        finally:
            await self.connection.close()
        assert not wire.faults, "\n".join(wire.faults)

    # talking

    async def new_session(self, cwd: Any) -> str:
        """Open a session; its id."""
        return (await self.connection.new_session(os.fspath(cwd))).session_id

    async def prompt(self, session_id: str, *said: str | Message) -> str:
        """Send a prompt; the id of its message as soon as it stands in the conversation."""
        from acp.experimental.v2 import schema

        blocks = [{"type": "text", "text": b} if isinstance(b, str) else b for b in said]
        request = schema.PromptRequest.model_validate({"sessionId": session_id, "prompt": blocks})
        return (await self.connection.prompt(session_id, request.prompt)).message_id

    async def turn(self, session_id: str, *said: str | Message) -> Message:
        """Send a prompt and wait for the end of the work; the update that says so."""
        ended = len(self.idles(session_id))
        await self.prompt(session_id, *said)
        await self.wire.until(lambda: len(self.idles(session_id)) > ended)
        return self.idles(session_id)[-1]

    async def sent(self, count: int, method: str) -> None:
        """Wait until so many messages of a method are on their way."""
        while [m.get("method") for m in self.wire.sent].count(method) < count:  # noqa: ASYNC110
            await asyncio.sleep(0)

    # what was seen

    def updates(self, kind: str | None = None, session_id: str | None = None) -> list[Message]:
        """The updates in order; of one kind or one session where named."""
        told = [m["params"] for m in self.wire.received if m.get("method") == "session/update"]
        return [
            params["update"]
            for params in told
            if session_id in (None, params["sessionId"])
            and kind in (None, params["update"]["sessionUpdate"])
        ]

    def idles(self, session_id: str | None = None) -> list[Message]:
        """Every update that says that no work is on."""
        states = self.updates("state_update", session_id)
        return [state for state in states if state["state"] == "idle"]

    def states(self) -> list[str]:
        """How the work went."""
        return [state["state"] for state in self.updates("state_update")]

    def text(self, kind: str = "agent_message") -> str:
        """What was said, in one piece, whole messages and chunks."""
        said = ""
        for update in self.updates():
            if update["sessionUpdate"] == f"{kind}_chunk":
                said += update["content"].get("text", "")
            elif update["sessionUpdate"] == kind:
                said += "".join(block.get("text", "") for block in update["content"])
        return said

    def cards(self) -> list[Message]:
        """The calls as they stand: upserts, and chunks appended."""
        cards: dict[str, Message] = {}
        for update in self.updates():
            kind = update["sessionUpdate"]
            if kind == "tool_call_update":
                card = cards.setdefault(update["toolCallId"], {})
                card.update({k: v for k, v in update.items() if k != "sessionUpdate"})
            elif kind == "tool_call_content_chunk":
                cards[update["toolCallId"]].setdefault("content", []).append(update["content"])
        return list(cards.values())

    def terminals(self) -> dict[str, Message]:
        """The terminals as they stand, with their output as text."""
        terminals: dict[str, Message] = {}
        for update in self.updates():
            if update["sessionUpdate"] == "terminal_update":
                terminal = terminals.setdefault(update["terminalId"], {"text": ""})
                terminal.update({k: v for k, v in update.items() if k != "sessionUpdate"})
                if "output" in update:
                    terminal["text"] = decoded(update["output"]["data"])
            elif update["sessionUpdate"] == "terminal_output_chunk":
                terminals[update["terminalId"]]["text"] += decoded(update["data"])
        return terminals

    async def saw(self, kind: str, **fields: Any) -> Message:
        """Wait for an update of a kind that has these fields, and return it."""
        found: list[Message] = []

        def is_there() -> bool:
            found[:] = [u for u in self.updates(kind) if fields.items() <= u.items()]
            return bool(found)

        await self.wire.until(is_there)
        return found[0]

    # what an agent asks

    async def session_update(self, **_: Any) -> None:
        """Nothing: the wire has recorded it."""

    async def request_permission(
        self, session_id: str, title: str, options: list[Any], **fields: Any
    ) -> Message:
        """Answer as the script says."""
        request = next(m for m in reversed(self.wire.received) if "method" in m and "id" in m)
        self.asked.append(request["params"])
        said = self.permission
        if callable(said):
            said = said(request["params"])
        chosen: Any = await said if isawaitable(said) else said
        if isinstance(chosen, RequestError):
            raise chosen
        if chosen == "cancelled":
            return {"outcome": {"outcome": "cancelled"}}
        offered = request["params"]["options"]
        ids = [o["optionId"] for o in offered if chosen in (o["kind"], o["optionId"])]
        return {"outcome": {"outcome": "selected", "optionId": ids[0]}}

    async def create_elicitation(self, message: str, **fields: Any) -> Message:
        """Fill in the form."""
        self.asked.append({"message": message, **fields})
        is_whole = isinstance(self.answer, dict)
        content = self.answer if is_whole else {"answer": self.answer}
        return {"action": "accept", "content": content}

    async def complete_elicitation(self, **_: Any) -> None:
        """Nothing: the wire has recorded it."""


def decoded(data: str) -> str:
    return base64.b64decode(data).decode()


@pytest.fixture
def draft() -> Callable[..., Draft]:
    """Makes clients of version 2."""
    return Draft
