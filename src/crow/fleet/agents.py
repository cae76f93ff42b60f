"""The agents that a worker's sessions run in: the whole agent, with the shared store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from crow.fleet.task import Task

if TYPE_CHECKING:
    from crow.core.agent import Agent
    from crow.extensions.persistence import PersistenceHook
    from crow.fleet.running import Build, Running

ALONE: dict[str, Any] = {"extensions": {"disable": ["presence"]}}
"""Settings of a session that no person sits at: it is not among those of this machine."""


def builder(store: PersistenceHook, model: str | None) -> Build:
    """Makes the agent of a task; ``model`` is for tasks that name none."""

    async def build_one(task: Task, folder: Path, running: Running) -> Agent:
        from crow.app import build

        return build(
            {**ALONE, **task.settings},
            cwd=folder,
            model=task.model or model,
            allow=task.allow,
            deny=task.deny,
            hooks=[store, running],
        )

    return build_one
