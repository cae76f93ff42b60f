"""Servers as processes, and a client that remembers what it was shown and answers as told."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest

from crow.core.agent import Agent
from crow.core.events import Event, Notice, ToolProgress
from crow.core.messages import text_of
from crow.core.ports.client import NullClient, PermissionRequest, Question
from crow.core.session import Session
from crow.extensions import McpHook
from crow.testing import ScriptedModel
from crow.testing.plugin import AgentOf

SERVERS = Path(__file__).parent / "servers"
FULL = str(SERVERS / "full.py")
Table = dict[str, Any]


class Watcher(NullClient):
    """A client. ``answers`` are the user's, one a question; without any, nobody answers."""

    def __init__(self, *answers: Any, permission: str | None = None) -> None:
        self.events: list[Event] = []
        self.questions: list[Question] = []
        self.permissions: list[PermissionRequest] = []
        self.answers = list(answers)
        self.choice = permission
        self.news = asyncio.Event()

    async def update(self, session_id: str, event: Event) -> None:
        self.events.append(event)
        self.news.set()

    async def permission(self, session_id: str, request: PermissionRequest) -> str | None:
        self.permissions.append(request)
        return self.choice

    async def ask(self, session_id: str, question: Question) -> Any:
        self.questions.append(question)
        self.news.set()
        if not self.answers:
            return question.default
        answer = self.answers.pop(0)
        return await answer if asyncio.isfuture(answer) else answer

    @property
    def notices(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Notice)]

    @property
    def progress(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, ToolProgress)]

    async def until(self, is_there: Callable[[], bool]) -> None:
        async with asyncio.timeout(50):
            while not is_there():
                self.news.clear()
                await self.news.wait()


class Opened:
    """A session with servers, and what its model was told."""

    def __init__(self, agent: Agent, session: Session, client: Watcher) -> None:
        self.agent = agent
        self.session = session
        self.client = client

    @property
    def model(self) -> ScriptedModel:
        model = self.agent.llm
        assert isinstance(model, ScriptedModel)
        return model

    async def prompt(self, text: str = "Go on.") -> str:
        reply = await self.agent.prompt(self.session, text)
        assert reply.error is None, reply.error
        return reply.text

    @property
    def results(self) -> list[str]:
        """The answers to the tool calls so far."""
        told = [m for m in self.session.messages if m["role"] == "tool"]
        return [text_of(message.get("content")) for message in told]

    def tools(self, request: int = -1) -> list[str]:
        """The names of the tools that the model was told of."""
        return [spec["function"]["name"] for spec in self.model.asked[request]["tools"]]


class Open(Protocol):
    """Opens a session with these servers and an agent that plays the script."""

    def __call__(
        self,
        servers: Table,
        *script: Any,
        client: Watcher | None = None,
        hooks: list[Any] | None = None,
        **options: Any,
    ) -> Any: ...


@pytest.fixture
def opened(agent_of: AgentOf, tmp_path: Path) -> Open:
    @asynccontextmanager
    async def open_session(
        servers: Table,
        *script: Any,
        client: Watcher | None = None,
        hooks: list[Any] | None = None,
        **options: Any,
    ) -> AsyncGenerator[Opened]:
        client = client or Watcher()
        given = {"connect_timeout": 50.0, "wait": 50.0, **options}
        extensions = [McpHook(servers, **given), *(hooks or [])]
        async with agent_of(*script, hooks=extensions, tools=[]) as agent:
            session = await agent.new_session(tmp_path, client=client)
            yield Opened(agent, session, client)

    return open_session


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Where servers leave their traces."""
    return tmp_path / "trace"


@pytest.fixture
def raw(trace: Path) -> Callable[..., Table]:
    """Describes a server made by hand."""

    def describe(**spec: Any) -> Table:
        args = ["-SE", str(SERVERS / "raw.py"), json.dumps(spec)]
        return {"command": sys.executable, "args": args, "env": {"TRACE": str(trace)}}

    return describe


@pytest.fixture
def full(trace: Path) -> Table:
    """Describes the server with everything, as a process of the session's own."""
    env = {"TRACE": str(trace), "ERA": "old"}
    return {"command": sys.executable, "args": [FULL, "stdio"], "env": env}


def pids(trace: Path) -> list[int]:
    """The processes that were started."""
    lines = trace.read_text().splitlines() if trace.exists() else []
    return [int(line.split()[1]) for line in lines if line.startswith("started ")]
