"""What hooks of settings files say to the user, as an editor shows it: once, in one clear line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crow import Agent
from crow.extensions import ShellHooks
from crow.project import HookFile
from crow.testing import FakeEditor, ScriptedModel, call

SAID = "PostToolUse hook: mind the gap"
FAILED = "PostToolUse hook [echo broken >&2; exit 1] failed: exit status 1: broken"


def hooks(tmp_path: Path) -> ShellHooks:
    says = r"""echo '{"systemMessage": "mind the gap", "terminalSequence": "\u0007"}'"""
    commands = [says, "echo broken >&2; exit 1"]
    handlers: list[Any] = [{"type": "command", "command": command} for command in commands]
    table = {"PostToolUse": [{"hooks": handlers}]}
    return ShellHooks([HookFile("settings.json", table)], directory=tmp_path / "state")


async def test_an_editor_without_notices_shows_them_as_text(tmp_path: Path):
    agent = Agent(ScriptedModel(call("Bash", command="true"), "Done."), hooks=[hooks(tmp_path)])
    editor = FakeEditor()
    async with editor.connected(agent):
        session_id = await editor.new_session(tmp_path)
        await editor.prompt(session_id, "Go")
        text = editor.text()
    for line in (SAID, FAILED):
        assert text.count(f"*Warning: {line}*") == 1
    assert "\a" not in str(editor.updates())


async def test_an_editor_with_notices_shows_them_as_such(tmp_path: Path):
    agent = Agent(ScriptedModel(call("Bash", command="true"), "Done."), hooks=[hooks(tmp_path)])
    editor = FakeEditor(notices=True)
    async with editor.connected(agent):
        session_id = await editor.new_session(tmp_path)
        await editor.prompt(session_id, "Go")
        notices = editor.updates("notice")
    assert sorted(notice["title"] for notice in notices) == sorted([SAID, FAILED])
