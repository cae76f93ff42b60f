"""Crow in front of an agent that was written for these tests, and a client of the official library."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from crow.testing import FakeEditor

CROW = str(Path(sys.executable).with_name("crow"))
AGENT = Path(__file__).with_name("agent.py")


class Front:
    """A project with settings, and Crow in front of the agent in it."""

    def __init__(self, project: Path, log: Path) -> None:
        self.project = project
        self.log = log
        self.command = [sys.executable, str(AGENT), str(log)]

    def settings(self, **table: Any) -> None:
        """What the user's settings say."""
        folder = Path.home() / ".claude"
        folder.mkdir(exist_ok=True)
        (folder / "settings.json").write_text(json.dumps(table), "utf-8")

    def hook(self, event: str, script: str, matcher: str = "") -> None:
        """A hook of Claude Code's in the user's settings: a script for ``sh``."""
        path = Path.home() / f"{event}.sh"
        path.write_text(script, "utf-8")
        handler = {"type": "command", "command": f"sh {path}", "timeout": 5}
        self.settings(hooks={event: [{"matcher": matcher, "hooks": [handler]}]})

    def proxied(self, editor: FakeEditor, *options: str) -> AbstractAsyncContextManager[None]:
        """The editor as a client of the agent behind Crow."""
        command = (CROW, "acp", "--proxy", *options, "--", *self.command)
        return editor.spawned(*command, cwd=self.project)

    @property
    def received(self) -> list[dict[str, Any]]:
        """What has reached the agent."""
        said = self.log.read_text("utf-8") if self.log.exists() else ""
        return [json.loads(line) for line in said.splitlines()]

    def reached(self, method: str) -> list[dict[str, Any]]:
        """The parameters of the messages of one method that have reached the agent."""
        return [each["params"] for each in self.received if each.get("method") == method]


@pytest.fixture
def front(tmp_path: Path) -> Front:
    project = tmp_path / "project"
    project.mkdir()
    return Front(project, tmp_path / "log")


Played = Callable[..., Any]


@pytest.fixture
def play(front: Front) -> Played:
    """Prompts, one after another, and how each has ended."""

    async def play(editor: FakeEditor, *prompts: str, options: tuple[str, ...] = ()) -> list[str]:
        async with front.proxied(editor, *options):
            session = await editor.new_session(front.project)
            return [(await editor.prompt(session, each)).stop_reason for each in prompts]

    return play
