"""A project, a person who works in it, and the agent that `crow.app.build` makes there."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from crow.app import build
from crow.core.agent import Agent
from crow.core.events import Event, Notice
from crow.core.hooks.run_context import Reply
from crow.core.ports.client import Files, PermissionRequest, Question, Terminals
from crow.core.session import Session
from crow.testing import ScriptedModel
from crow.testing.model import Line


def write(path: Path, content: Any) -> Path:
    """Write a file as editors do: beside it, and then over it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    fresh.replace(path)
    return path


class Person:
    """A client that keeps what it is told, and answers questions with the first fitting choice."""

    files: Files | None = None
    terminals: Terminals | None = None

    def __init__(self) -> None:
        self.notices: list[str] = []
        self.asked: list[PermissionRequest] = []
        self.questions: list[Question] = []
        self.says: str | None = None

    async def update(self, session_id: str, event: Event) -> None:
        if isinstance(event, Notice):
            self.notices.append(event.text)

    async def permission(self, session_id: str, request: PermissionRequest) -> str | None:
        self.asked.append(request)
        return "reject_once"

    async def ask(self, session_id: str, question: Question) -> Any:
        self.questions.append(question)
        return self.says

    @property
    def told(self) -> str:
        return "\n".join(self.notices)


class Room:
    """One agent in one project; ``await room("touch a")`` lets the model run a command."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.person = Person()
        self.agents: list[Agent] = []
        self.session: Session | None = None
        self.reply: Reply | None = None

    def agent(self, **options: Any) -> Agent:
        """Another agent as the command makes it."""
        self.agents.append(build(**{"cwd": self.project, "env": {}} | options))
        return self.agents[-1]

    async def open(self, **options: Any) -> Session:
        """Open a session in the project."""
        agent = self.agents[-1] if self.agents else self.agent()
        cwd = options.pop("cwd", self.project)
        self.session = await agent.new_session(cwd, client=self.person, **options)
        return self.session

    async def do(self, *lines: Line) -> list[str]:
        """Answer a prompt with these lines of the model's; the results of its calls."""
        session = self.session or await self.open()
        agent = self.agents[-1]
        agent.llm = ScriptedModel(*lines, "done")
        before = len(session.messages)
        self.reply = await agent.prompt(session, "Go on")
        results = [m for m in session.messages[before:] if m["role"] == "tool"]
        return [str(message.get("content")) for message in results]


@pytest.fixture
async def room(project: Path) -> AsyncIterator[Room]:
    """The project, and who works there."""
    room = Room(project)
    yield room
    for agent in room.agents:
        await agent.close()
