"""``/permissions``: the rules, what was asked and answered, and taking an approval back."""

from __future__ import annotations

import json
from pathlib import Path

from tests.app.conftest import Room, write

from crow.core.ports.client import PermissionRequest
from crow.testing import call


async def say(room: Room, line: str) -> str:
    """What a command answers."""
    assert room.session is not None
    return (await room.agents[-1].prompt(room.session, line)).text


async def test_it_shows_the_rules_and_what_was_asked(room: Room, home: Path) -> None:
    write(home / ".claude/settings.json", {"permissions": {"deny": ["Bash(rm *)"]}})
    await room.open()
    await room.do(
        call("Bash", command="touch a"), call("Bash", command="rm a"), call("LS", path=".")
    )
    shown = await say(room, "/permissions")
    assert "Mode: default" in shown
    assert f"deny   Bash(rm *)  ({home}/.claude/settings.json)" in shown
    assert "So far: 1 ran unasked, 1 refused by a rule, 1 asked about." in shown
    assert "refused: Bash(touch a)" in shown


async def test_an_approval_is_taken_back_in_the_session_and_in_the_file(
    room: Room, project: Path
) -> None:
    async def always(session_id: str, request: PermissionRequest) -> str:
        room.person.asked.append(request)
        return "allow_always"

    room.person.permission = always
    await room.open()
    for _ in range(2):
        await room.do(call("Bash", command="make x"))
    assert len(room.person.asked) == 1
    kept = project / ".claude/settings.local.json"
    assert json.loads(kept.read_text())["permissions"]["allow"] == ["Bash(make x *)"]
    assert "always allowed: Bash(make x)" in await say(room, "/permissions")
    assert "is taken back, in the project's settings too" in await say(
        room, "/permissions revoke Bash(make x *)"
    )
    assert "permissions" not in json.loads(kept.read_text())
    await room.do(call("Bash", command="make x"))
    assert len(room.person.asked) == 2
    assert await say(room, "/permissions revoke Bash(cat *)") == "There is no rule Bash(cat *)."
    assert await say(room, "/permissions revoke") == "Which rule? /permissions lists them."
