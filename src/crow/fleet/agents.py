"""The agents that a worker's sessions run in: the whole agent, with the shared store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from crow.fleet.task import Task

if TYPE_CHECKING:
    from crow.core.agent import Agent
    from crow.extensions.persistence import PersistenceHook
    from crow.fleet.job_run import Build, JobRun

ALONE = ("persistence", "presence")
"""Extensions that a session does not need which no person sits at, and which has its store."""


def builder(store: PersistenceHook, model: str | None) -> Build:
    """Makes the agent of a task; ``model`` is for tasks that name none."""

    async def build_one(task: Task, folder: Path, running: JobRun) -> Agent:
        from crow.app import build

        container = running.place.hook
        return build(
            settings_of(task, *["sandbox"] * (container is not None)),
            cwd=folder,
            model=task.model or model,
            allow=task.allow,
            deny=task.deny,
            hooks=[store, running, *filter(None, [container])],
        )

    return build_one


def settings_of(task: Task, *without: str) -> dict[str, Any]:
    """A task's settings, without what the fleet has its own of, and some extensions more."""
    extensions: dict[str, Any] = task.settings.get("extensions") or {}
    disabled = [*extensions.get("disable", ()), *ALONE, *without]
    return {**task.settings, "extensions": {**extensions, "disable": disabled}}
