"""What the core's tests share: a tool that is awaited, a client that keeps what it is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from crow.core.agent import Agent
from crow.core.events import Event, TextDelta, ThoughtDelta
from crow.core.hooks.run_context import Reply
from crow.core.ports.client import Files, PermissionRequest, Question, Terminals
from crow.core.ports.llm import LLM, Completion, Request
from crow.core.ports.tool import ToolEnvironment
from crow.core.tools import ToolResult


@dataclass
class Echo:
    """A tool that says what it was given; ``wait`` holds it, ``fail`` makes it raise."""

    name: str = "echo"
    description: str = "Say it."
    kind: Any = "other"
    wait: asyncio.Event | None = None
    fail: BaseException | None = None
    ran: list[dict[str, Any]] = field(default_factory=list)
    started: asyncio.Event = field(default_factory=asyncio.Event)
    parameters: dict[str, Any] = field(
        default_factory=lambda: {
            "type": "object",
            "properties": {"text": {"type": "string"}, "times": {"type": "integer"}},
            "required": ["text"],
            "additionalProperties": False,
        }
    )

    async def run(self, args: dict[str, Any], ctx: ToolEnvironment) -> ToolResult | str:
        self.ran.append(args)
        self.started.set()
        if self.wait is not None:
            await self.wait.wait()
        if self.fail is not None:
            raise self.fail
        return f"echo {args['text']}"


@dataclass
class Watcher:
    """A client that keeps every event and answers as it is told to."""

    answer: str | None = None
    events: list[Event] = field(default_factory=list)
    asked: list[PermissionRequest] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    replies: list[Any] = field(default_factory=list)
    files: Files | None = None
    terminals: Terminals | None = None

    async def update(self, session_id: str, event: Event) -> None:
        self.events.append(event)

    async def permission(self, session_id: str, request: PermissionRequest) -> str | None:
        self.asked.append(request)
        return self.answer

    async def ask(self, session_id: str, question: Question) -> Any:
        self.questions.append(question)
        return self.replies.pop(0) if self.replies else question.default

    def names(self) -> list[str]:
        return [type(event).__name__ for event in self.events]

    @property
    def texts(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, TextDelta)]

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def thought(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, ThoughtDelta))


class Played:
    """A model that plays lists of pieces, one a request.

    An exception among them is raised there, an `asyncio.Event` is waited for; the reply says
    what the texts say. ``at`` is how far it came, ``closed`` how often
    it was done, ``waits`` and ``hung_up`` say so when it does.
    """

    model = "played"
    context_window = None

    def __init__(self, *attempts: list[Any]) -> None:
        self.attempts = list(attempts)
        self.asked: list[str | None] = []
        self.at = self.closed = 0
        self.waits, self.hung_up = asyncio.Event(), asyncio.Event()

    async def stream(self, request: Request) -> AsyncGenerator[Any, None]:
        self.asked.append(request.model)
        said = ""
        try:
            for piece in self.attempts.pop(0):
                self.at += 1
                match piece:
                    case str():
                        said += piece
                        yield TextDelta(piece, request.message_id)
                    case asyncio.Event():
                        self.waits.set()
                        await piece.wait()
                    case BaseException():
                        raise piece
                    case _:
                        yield piece
            yield Completion(said)
        finally:
            self.closed += 1
            self.hung_up.set()


async def prompt(model: LLM, *arounds: Any, tools: Any = ()) -> tuple[Reply, Watcher]:
    """The reply of an agent with hooks around its requests, and what its client saw."""
    client = Watcher()
    async with Agent(model, tools=tools) as agent:
        for each in arounds:
            agent.hooks.register("around_llm_request", each)
        session = await agent.new_session(client=client)
        return await agent.prompt(session, "go"), client


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def watcher() -> Watcher:
    return Watcher()


@pytest.fixture
def played() -> type[Played]:
    return Played


@pytest.fixture
def said() -> Callable[..., Awaitable[tuple[Reply, Watcher]]]:
    return prompt


@pytest.fixture
def make_echo() -> Callable[..., Echo]:
    return Echo


@pytest.fixture
def whole() -> Callable[[list[dict[str, Any]]], None]:
    """Asserts that a history is one that any endpoint takes."""
    return assert_whole


def assert_whole(messages: list[Any]) -> None:
    seen: set[str] = set()
    open_ids: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] in open_ids, "an answer to no call"
            open_ids.remove(message["tool_call_id"])
            continue
        assert not open_ids, f"{open_ids} unanswered before {message}"
        open_ids = [call["id"] for call in message.get("tool_calls", ())]
        assert not seen & set(open_ids), "an id twice"
        seen |= set(open_ids)
        assert message.get("content") or open_ids, "an empty message"
    assert not open_ids, f"{open_ids} unanswered at the end"
    spoken = [message for message in messages if message["role"] not in ("system", "developer")]
    assert not spoken or spoken[0]["role"] == "user"


@pytest.fixture
def all_events() -> tuple[str, ...]:
    """Every canonical event."""
    return tuple(Agent(tools=()).hooks.points)
