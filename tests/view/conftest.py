"""Sessions to look at, and a browser to look with."""

from __future__ import annotations

import json
import shutil
import subprocess
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.extensions.tools import shout
from tests.postgres import Server, postgres

from crow.core.agent import Agent
from crow.core.hooks.contexts import ToolContext
from crow.core.verdicts import Allow, Deny, Verdict
from crow.extensions import PersistenceHook, SystemPromptHook
from crow.extensions.prompt_cache import PromptCacheHook
from crow.testing import ScriptedModel, call, text

__all__ = ["postgres"]

USAGE: Any = {"input_tokens": 90, "output_tokens": 10, "total_tokens": 100, "cached_tokens": 40}
EVIL = "<img src=x onerror=\"document.title='evil'\"><script>document.title='evil'</script> [go](javascript:alert(1))"


def judge(ctx: ToolContext) -> Verdict:
    """Allow words that are no secret."""
    return Deny("that is nobody's business") if ctx.args["word"] == "secret" else Allow("a word")


def polite(ctx: ToolContext) -> None:
    """Say it politely."""
    if ctx.args["word"] == "hi":
        ctx.args = {"word": "hello"}


@pytest.fixture
async def lines(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """What a store exports of a session with calls, hooks, a denial and hostile text."""
    where: Path | str = tmp_path / "crow.db"
    if getattr(request, "param", "") == "postgres":
        server: Server = request.getfixturevalue("postgres")
        where = server.database()
    hook = PersistenceHook(where)
    script = [
        [text(f"On it. {EVIL}", usage=USAGE, reasoning="Shall I?"), call("shout", word="hi")],
        call("shout", word="secret"),
        text("**Done**, see `a.txt`.", usage=USAGE),
    ]
    agent = Agent(ScriptedModel(*script), hooks=[hook], tools=[shout])
    agent.hooks.register("before_tool", polite)
    agent.hooks.register("before_tool", judge)
    async with agent:
        session = (await agent.run(f"Shout, please {EVIL}")).session
    return await hook.store.export(session.id)


@pytest.fixture
async def broken(tmp_path: Path) -> str:
    """What a store exports of a session in which a hook breaks the cache's prefix."""
    hook, turns = PersistenceHook(tmp_path / "broken.db"), count(1)

    def tail(ctx: Any) -> list[Any]:
        ctx.params = {"reasoning_effort": "low"}
        return [*ctx.messages, {"role": "user", "content": f"It is turn {next(turns)}."}]

    script = [[text("On it.", usage=USAGE), call("shout", word="hi")], text("Done.", usage=USAGE)]
    hooks = [hook, SystemPromptHook("You are Crow."), PromptCacheHook()]
    agent = Agent(ScriptedModel(*script), hooks=hooks, tools=[shout])
    agent.hooks.register("before_llm_request", tail)
    async with agent:
        session = (await agent.run("Shout, please")).session
    return await hook.store.export(session.id)


def browser() -> str:
    """Chromium's command; skips where there is none."""
    found = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if found is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    return found


def dom(address: str, folder: Path) -> str:
    """The page as it is after a while."""
    done = subprocess.run(
        [
            *(browser(), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"),
            *(f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=8000", address),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=90,
    )
    return done.stdout


def session_of(turns: int) -> str:
    """The export of a session of so many turns, as a store would write it."""
    head = {
        "kind": "session",
        "id": "long",
        "cwd": "/",
        "title": "Long",
        "created": "2026-01-01T00:00:00Z",
    }
    rows: list[dict[str, Any]] = []

    def add(sort: str, **data: Any) -> None:
        rows.append(
            {"seq": len(rows), "segment": 0, "kind": sort, "at": float(len(rows)), "data": data}
        )

    for turn in range(turns):
        function = {"name": "Bash", "arguments": json.dumps({"command": f"make {turn}"})}
        add("message", role="user", content=f"prompt {turn}")
        add(
            "message",
            role="assistant",
            content="",
            tool_calls=[{"id": f"c{turn}", "type": "function", "function": function}],
        )
        hook = {
            "event": "before_tool",
            "owner": "permissions",
            "hook": "judge",
            "call_id": f"c{turn}",
            "ms": 2.0,
        }
        add("hooks", records=[hook])
        add(
            "started",
            call_id=f"c{turn}",
            args={"command": f"make {turn}"},
            title=f"make {turn}",
            kind="execute",
            locations=[],
        )
        add(
            "result",
            call_id=f"c{turn}",
            name="Bash",
            args={},
            title=f"make {turn}",
            kind="execute",
            outcome="ok",
            duration=0.5,
            content="built\n" * 50,
            diffs=[],
        )
        add("message", role="tool", tool_call_id=f"c{turn}", content="built")
        add("message", role="assistant", content=f"answer {turn}")
    return "\n".join(json.dumps(row) for row in [head, *rows])
