"""What the core's tests share: a tool that is awaited, a client that keeps what it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from crow.core.agent import Agent
from crow.core.events import Event
from crow.core.ports import Files, PermissionRequest, Question, Terminals, ToolEnvironment
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


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def watcher() -> Watcher:
    return Watcher()


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
