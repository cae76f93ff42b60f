"""A stage for settings hooks: real scripts, the real loop, and what everybody was told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from crow import Agent
from crow.core.events import Event, Notice
from crow.core.ports.client import Files, PermissionRequest, Question, Terminals
from crow.core.session import Session
from crow.core.trace import Record
from crow.extensions import ShellHooks
from crow.extensions.permissions.condition import applies
from crow.project import HookFile
from crow.testing import ScriptedModel
from crow.testing.model import Line


class Person:
    """A client that keeps what it is shown and answers as it is told to."""

    files: Files | None = None
    terminals: Terminals | None = None

    def __init__(self) -> None:
        self.answer: str | None = None
        self.agrees = False
        self.events: list[Event] = []
        self.asked: list[PermissionRequest] = []
        self.questions: list[Question] = []

    async def update(self, session_id: str, event: Event) -> None:
        self.events.append(event)

    async def permission(self, session_id: str, request: PermissionRequest) -> str | None:
        self.asked.append(request)
        return self.answer

    async def ask(self, session_id: str, question: Question) -> Any:
        self.questions.append(question)
        return self.agrees

    @property
    def notices(self) -> str:
        return "\n".join(event.text for event in self.events if isinstance(event, Notice))


class Stage:
    """Hooks that are scripts, and an agent that they hang on."""

    def __init__(self, top: Path) -> None:
        self.cwd = top / "work"
        self.cwd.mkdir()
        self.scripts = top / "scripts"
        self.scripts.mkdir()
        self.state = top / "state"
        self.person = Person()
        self.tables: dict[bool, dict[str, Any]] = {False: {}, True: {}}
        self.model = ScriptedModel()
        self.count = 0

    def on(
        self,
        event: str,
        script: str = "",
        *,
        says: Any = None,
        stderr: str = "",
        code: int = 0,
        matcher: str | None = None,
        own: bool = False,
        **handler: Any,
    ) -> Path:
        """Hang a script; what it is given is kept in the file that is returned."""
        self.count += 1
        given = self.scripts / f"{self.count}.in"
        lines = ["#!/bin/sh", f'cat >> "{given}"', script]
        if says is not None:
            said = self.scripts / f"{self.count}.out"
            said.write_text(says if isinstance(says, str) else json.dumps(says))
            lines.append(f'cat "{said}"')
        if stderr:
            error = self.scripts / f"{self.count}.err"
            error.write_text(stderr)
            lines.append(f'cat "{error}" >&2')
        path = self.scripts / f"{self.count}.sh"
        path.write_text("\n".join([*lines, f"exit {code}", ""]))
        path.chmod(0o755)
        self.handle(event, {"type": "command", "command": str(path), **handler}, matcher, own)
        return given

    def handle(
        self, event: str, handler: Any, matcher: str | None = None, own: bool = False
    ) -> None:
        """Hang a handler as it would be written."""
        group: dict[str, Any] = {"hooks": [handler]}
        if matcher is not None:
            group["matcher"] = matcher
        self.tables[own].setdefault(event, []).append(group)

    def hooks(self, **options: Any) -> ShellHooks:
        names = {False: ".claude/settings.json", True: ".crow/settings.json"}
        files = [HookFile(names[own], table, own) for own, table in self.tables.items() if table]
        options = {"applies": applies, "directory": self.state, "project": str(self.cwd)} | options
        return ShellHooks(files, **options)

    def agent(self, *script: Line, hooks: Iterable[Any] = (), tools: Any = None) -> Agent:
        self.model = ScriptedModel(*script)
        return Agent(llm=self.model, hooks=[*hooks, self.hooks()], tools=tools)

    async def run(self, *script: Line, prompt: str = "Go", **options: Any) -> Any:
        """One prompt from its arrival to the end of its session."""
        async with self.agent(*script, **options) as agent:
            reply = await agent.run(prompt, cwd=self.cwd, client=self.person)
        self.model.verify()
        return reply

    def told(self, request: int = -1) -> str:
        """All that a request told the model, after the prompt."""
        messages = self.model.asked[request]["messages"][1:]
        return "\n".join(str(message.get("content")) for message in messages)


def given(path: Path) -> list[dict[str, Any]]:
    """What a script was given, run by run."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


async def runs_of(seen: Path, count: int) -> list[dict[str, Any]]:
    """What a script was given, once it ran so often."""
    async with asyncio.timeout(30):
        while len(found := given(seen)) < count:  # noqa: ASYNC110 - another process writes the file
            await asyncio.sleep(0.02)
    return found


def specific(event: str, **fields: Any) -> dict[str, Any]:
    """An output with ``hookSpecificOutput``."""
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


def verdict(permission: str, reason: str = "", **fields: Any) -> dict[str, Any]:
    """A PreToolUse output."""
    more = {"permissionDecisionReason": reason} if reason else {}
    return specific("PreToolUse", permissionDecision=permission, **more, **fields)


def records(session: Session, event: str) -> list[Record]:
    """What the trace has of the handlers of an event."""
    return [r for r in session.trace if r.event == event and r.hook != event]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)
