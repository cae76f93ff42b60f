"""Sub-agents: named agents that work on a task by themselves and give back its result."""

from __future__ import annotations

from crow.extensions.subagents.definition import Definition
from crow.extensions.subagents.hook import SubagentsHook

__all__ = ["Definition", "SubagentsHook"]
