"""The settings' ``statusLine``: a command whose output stands in the place of the last line.

It is given JSON as Claude Code gives it, with what is known here. Whether a project's may run is a
question of trust, which the settings have answered before.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from crow.core.events import (
    CallDelta,
    Event,
    TextDelta,
    ThoughtDelta,
    ToolEnded,
    ToolProgress,
    UsageReported,
)
from crow.keys import OUTPUT_STYLE
from crow.text import clean

if TYPE_CHECKING:
    from crow.core.agent import Agent
    from crow.core.session import Session
    from crow.terminal.tab import Tab

REST = 0.3
"""Seconds between two runs, at least."""
LONGEST = 5.0
"""Seconds that a run may take."""
LINES = 3
LARGEST = 65_536
LOOKS = re.compile(r"(\x1b\[[0-9;:]*m)")
LARGE = 200_000
"""Tokens from which on Claude Code calls a context large."""


class StatusLine:
    """Runs the command when something has happened, and shows what it prints."""

    def __init__(self, wanted: Mapping[str, Any], agent: Agent, session: Session, tab: Tab) -> None:
        self._wanted = wanted
        self._agent = agent
        self._session = session
        self._tab = tab
        self._began = time.monotonic()
        self._usage: UsageReported | None = None
        self._plus = self._minus = 0
        self._news = asyncio.Event()

    def start(self) -> None:
        """Show it as long as the session is open."""
        self._tab.watch = self._hear
        self._tab.status.script = []
        self._news.set()
        self._session.spawn(self._run())

    def _hear(self, event: Event) -> None:
        """Something has happened."""
        match event:
            case TextDelta() | ThoughtDelta() | CallDelta() | ToolProgress():
                return
            case UsageReported():
                self._usage = event
            case ToolEnded(result=result):
                from crow.terminal.diff import counts

                for diff in result.diffs:
                    plus, minus = counts(diff)
                    self._plus, self._minus = self._plus + plus, self._minus + minus
            case _:
                pass
        self._news.set()

    async def _run(self) -> None:
        interval = self._wanted.get("refreshInterval")
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), interval)
            self._news.clear()
            self._tab.status.script = await self._printed()
            self._tab.refresh()
            await asyncio.sleep(REST)

    async def _printed(self) -> list[str]:
        """What the command prints; nothing where it fails."""
        from crow.process import run

        session = self._session
        try:
            done = await run(
                ["sh", "-c", self._wanted["command"]],
                cwd=session.cwd,
                env={**self._agent.environment(), "CLAUDE_PROJECT_DIR": session.cwd},
                stdin=json.dumps(self._told(), default=str).encode(),
                timeout=LONGEST,
            )
        except (TimeoutError, OSError):
            return []
        text = "" if done.code else done.out[:LARGEST].decode(errors="replace")
        blanks = " " * self._wanted.get("padding", 0)
        return [f"{blanks}{painted(line)}" for line in text.rstrip().split("\n")[:LINES] if line]

    def _told(self) -> dict[str, Any]:
        """What the command reads."""
        from crow._version import __version__
        from crow.cli.session_control import model_of

        session, usage = self._session, self._usage
        model = model_of(self._agent, session)
        cost = usage.total.get("cost", 0) if usage else 0
        return {
            "hook_event_name": "Status",
            "session_id": session.id,
            "session_name": session.title,
            "transcript_path": "",
            "cwd": session.cwd,
            "model": {"id": model, "display_name": model},
            "workspace": {
                "current_dir": session.cwd,
                "project_dir": session.cwd,
                "added_dirs": list(session.directories),
            },
            "version": __version__,
            "output_style": {"name": OUTPUT_STYLE.get(session) or "default"},
            "cost": {
                "total_cost_usd": cost,
                "total_duration_ms": round((time.monotonic() - self._began) * 1000),
                "total_lines_added": self._plus,
                "total_lines_removed": self._minus,
            },
            "context_window": window_of(usage),
            "exceeds_200k_tokens": bool(usage and usage.context_tokens > LARGE),
            "permission_mode": session.mode,
        }


def window_of(usage: UsageReported | None) -> dict[str, Any]:
    """How full the model's window is."""
    if usage is None:
        return {"current_usage": None, "used_percentage": 0, "remaining_percentage": 100}
    share = 0.0
    if usage.context_window:
        share = 100 * usage.context_tokens / usage.context_window
    cached = usage.last.get("cached_tokens", 0)
    return {
        "total_input_tokens": usage.total.get("input_tokens", 0),
        "total_output_tokens": usage.total.get("output_tokens", 0),
        "context_window_size": usage.context_window,
        "current_usage": {
            "input_tokens": usage.last.get("input_tokens", 0) - cached,
            "output_tokens": usage.last.get("output_tokens", 0),
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": cached,
        },
        "used_percentage": round(share, 1),
        "remaining_percentage": round(100 - share, 1),
    }


def painted(line: str) -> str:
    """A line with its looks, and without anything else that a terminal would obey."""
    parts = LOOKS.split(line)
    return "".join(part if LOOKS.fullmatch(part) else clean(part) for part in parts)
