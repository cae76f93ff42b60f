"""The sub-agent poet, whose file tests write, and the agent that calls it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crow import Agent
from crow.app import build
from crow.testing import ScriptedModel, call
from crow.testing.model import Line

TASK = call("Agent", subagent_type="poet", description="Rhyme", prompt="Go")


def define(home: Path, *lines: str) -> None:
    """Let the poet be one of the user's, with more lines of front matter."""
    path = home / ".claude/agents/poet.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    head = "\n".join(["name: poet", "description: Rhymes.", *lines])
    path.write_text(f"---\n{head}\n---\nYou rhyme.\n")


def built(project: Path, *script: Line, **settings: Any) -> tuple[Agent, ScriptedModel]:
    """The whole agent with these settings, and its model."""
    llm = ScriptedModel(*script)
    return build({"model": "x", **settings}, cwd=project, model=llm), llm
