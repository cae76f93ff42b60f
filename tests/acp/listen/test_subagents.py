"""Sub-agents as sessions of their own, for who comes while they work, or when they have ended."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from crow.testing import FakeEditor


def task(prompt: str) -> str:
    """A prompt that hands a task to a sub-agent."""
    return f"Call Agent {json.dumps({'description': 'Look', 'prompt': prompt})}"


def told(editor: FakeEditor, session: str) -> dict[str, Any]:
    """What a client knows in the end of the sub-agents of a session, and has seen of each."""
    known: dict[str, Any] = {}
    for update in editor.updates("subagent_update", session):
        child = update["sessionId"]
        cards = [(each["toolCallId"], each["title"]) for each in editor.cards(child)]
        orders = editor.updates("session_message", child)
        about = {**known.get(child, {}), **update, "cards": cards, "orders": orders}
        known[child] = {**about, "said": editor.text(child)}
    return known


def is_running(editor: FakeEditor) -> bool:
    """True where the client sees the command that waits."""
    return ("sh wait.sh", "in_progress") in [(c["title"], c["status"]) for c in editor.cards()]


@pytest.mark.parametrize("scheme", ["ws", "http"])
@pytest.mark.parametrize("is_at_work", [False, True], ids=["ended", "at work"])
async def test_who_comes_in_a_turn_sees_its_sub_agents_as_who_was_there(
    server: Any, tmp_path: Path, waiting: str, scheme: str, is_at_work: bool
) -> None:
    prompt = task(waiting) if is_at_work else f"{task('Run `echo hi`')} then {waiting}"
    first, later = (FakeEditor(drafts={"subagents": {}}) for _ in range(2))
    async with first.dialed(server.url(scheme)), later.dialed(server.url(scheme)):
        session = await first.new_session(tmp_path)
        turn = asyncio.create_task(first.prompt(session, prompt))
        await first.wire.until(lambda: is_running(first))
        await later.connection.load_session(str(tmp_path), session)
        await later.wire.until(lambda: is_running(later))
        (tmp_path / "go").touch()
        assert (await turn).stop_reason == "end_turn"
        await later.saw("session_info_update", _meta={"crow": {"running": False}})
    assert told(first, session)
    assert told(later, session) == told(first, session)
    assert {card["toolCallId"] for card in later.cards(session)} == {
        card["toolCallId"] for card in first.cards(session)
    }
