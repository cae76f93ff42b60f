"""The question whether a project is trusted, in the draft: nothing runs while it is asked."""

from __future__ import annotations

import json
from pathlib import Path

from tests.acp.v2.conftest import Draft

from crow.app import build
from crow.app.live_settings import TRUST
from crow.project.trust import is_trusted
from crow.testing import ScriptedModel


async def test_a_project_is_trusted_while_no_work_is_on(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    table = {"permissions": {"allow": ["Bash(make)"]}}
    (tmp_path / ".claude/settings.json").write_text(json.dumps(table), "utf-8")
    agent = build(cwd=tmp_path, env={})
    agent.llm = ScriptedModel("hello")
    client = Draft(answer=TRUST)
    async with client.connected(agent):
        session = await client.new_session(tmp_path)
        await client.saw("config_option_update")
        assert client.states() == []
        await client.turn(session, "Hi")
    assert is_trusted(tmp_path)
    (asked,) = client.asked
    assert "allows without a question: Bash(make)" in asked["message"]
    assert client.states() == ["running", "idle"]
