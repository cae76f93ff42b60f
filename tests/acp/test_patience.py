"""Questions that nobody answers: how long they wait, what is decided then, and who is told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from acp.exceptions import RequestError

from crow import Agent, Ask
from crow.core.ports.client import ALLOW_ONCE
from crow.testing import FakeEditor, ScriptedModel, call

CROW = str(Path(sys.executable).with_name("crow"))
LOOK = call("Glob", pattern="*")
QUICK = {"crow": {"questionTimeoutMs": 20}}


class Careful:
    """Asks before every call."""

    def before_tool(self, ctx: Any) -> Ask:
        return Ask("careful", options=(ALLOW_ONCE,))


def careful(*script: Any) -> Agent:
    return Agent(llm=ScriptedModel(*script), hooks=[Careful()])


async def test_who_falls_silent_is_not_asked_again_until_the_next_prompt(tmp_path: Path) -> None:
    patience = {"crow": {"questionTimeoutMs": 1000}}  # enough for who answers
    editor = FakeEditor(meta=patience, silent=["session/request_permission"])
    async with editor.connected(careful(LOOK, LOOK, "Well.", LOOK, "Done.")):
        session = await editor.new_session(tmp_path)
        await editor.prompt(session, "Look")
        asked = [m for m in editor.wire.received if m.get("method") == "session/request_permission"]
        assert len(asked) == 1
        assert editor.text().count("nobody answered in time") == 1
        editor.wire.silent = frozenset()
        await editor.prompt(session, "I am back")
        assert [card["status"] for card in editor.cards()] == ["failed", "failed", "completed"]


async def test_a_client_that_fails_to_ask_is_told_so_once(tmp_path: Path) -> None:
    broken = RequestError.internal_error({"details": "popup crashed"})
    editor = FakeEditor(permissions=[broken])
    async with editor.connected(careful(LOOK, LOOK, "Well.")):
        await editor.prompt(await editor.new_session(tmp_path), "Look")
        assert editor.text().count("failed to ask for permission") == 1
        assert len(editor.asked) == 2


async def test_a_hooks_question_that_nobody_answers_gets_its_default(tmp_path: Path) -> None:
    class Curious:
        async def before_run(self, ctx: Any) -> None:
            ctx.prompt = f"{await ctx.ui.confirm('Really?')}"

    editor = FakeEditor(meta=QUICK, answers=[True], silent=["elicitation/create"])
    model = ScriptedModel("Well.")
    async with editor.connected(Agent(llm=model, hooks=[Curious()])):
        await editor.prompt(await editor.new_session(tmp_path), "Go")
    assert model.asked[0]["messages"][-1]["content"] == "False"


@pytest.mark.slow
async def test_the_command_takes_the_time_on_its_command_line(tmp_path: Path) -> None:
    editor = FakeEditor(silent=["session/request_permission"])
    async with editor.spawned(CROW, "acp", "--ask-timeout", "0.02", cwd=tmp_path):
        session = await editor.new_session(tmp_path)
        await editor.prompt(session, "Create a file called test.txt")
        assert "nobody answered in time" in editor.text()
        assert not (tmp_path / "test.txt").exists()


@pytest.mark.parametrize("text", ["0", "soon"])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    ended = subprocess.run(
        [CROW, "acp", "--ask-timeout", text],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert "is no number of seconds" in ended.stderr
