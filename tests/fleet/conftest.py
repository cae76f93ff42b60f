"""A fleet on a database of its own, whose sessions ask a scripted model."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.postgres import Server, postgres

from crow.core.agent import Agent
from crow.core.hooks.contexts import ToolContext
from crow.core.verdicts import Ask, Verdict
from crow.extensions import PersistenceHook
from crow.fleet.board import Board
from crow.fleet.job_run import JobRun
from crow.fleet.task import Task
from crow.fleet.worker import Worker
from crow.testing import ScriptedModel
from crow.tools import builtin

__all__ = ["postgres"]


@pytest.fixture
def address(postgres: Server) -> str:
    """A database that holds nothing yet."""
    return postgres.database()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit of one file."""
    folder = tmp_path / "origin"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("one\n")
    git(folder, "add", ".")
    git(folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "begin")
    return folder


def git(folder: Path, *args: str) -> str:
    done = subprocess.run(["git", *args], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


Script = Callable[[Task], list[Any]]


class Machine:
    """A worker with a folder of its own, as on a machine of its own. ``left`` is what came of jobs."""

    def __init__(self, board: Board, folder: Path, script: Script, **options: Any) -> None:
        self.left: list[str] = []
        self.asks = False
        self.hooks: list[Any] = []
        self._script = script
        self._store = PersistenceHook(board.address, required=True)
        self.worker = Worker(
            board,
            self._build,
            folder,
            ended=lambda _, left: self.left.append("lost" if left is None else left.state),
            **{"until_empty": True, **options},
        )

    async def run(self) -> list[str]:
        await self.worker.run()
        return self.left

    async def _build(self, task: Task, folder: Path, running: JobRun) -> Agent:
        def before_tool(ctx: ToolContext) -> Verdict | None:
            return Ask("may it?") if self.asks and ctx.call.name == "Bash" else None

        model = ScriptedModel(*self._script(task))
        return Agent(model, hooks=[self._store, running, before_tool, *self.hooks], tools=builtin())
