"""A model that repeats the ids of its calls: each has one card, under the id that it has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crow import Agent
from crow.testing import FakeEditor, ScriptedModel, call


def repeating() -> ScriptedModel:
    again = [call("Glob", pattern="*", call_id="call_0"), call("Gone", call_id="call_0")]
    return ScriptedModel(again, again, "Done.")


def ids_of(model: ScriptedModel) -> list[str]:
    """The ids that the model was told of."""
    messages = model.asked[-1]["messages"]
    return [each["id"] for message in messages for each in message.get("tool_calls", ())]


def hold(cards: list[Any], model: ScriptedModel) -> None:
    """Raise where a card is not that of a call, to its end."""
    shown = [card["toolCallId"] for card in cards]
    assert shown == ids_of(model)
    assert len(set(shown)) == 4
    assert [card["status"] for card in cards] == ["completed", "failed"] * 2


async def test_each_call_has_a_card_of_its_id_in_version_1(tmp_path: Path) -> None:
    editor, model = FakeEditor(), repeating()
    async with editor.connected(Agent(llm=model)):
        await editor.prompt(await editor.new_session(tmp_path), "Go")
        hold(editor.cards(), model)


async def test_each_call_has_a_card_of_its_id_in_version_2(tmp_path: Path, draft: Any) -> None:
    client, model = draft(), repeating()
    async with client.connected(Agent(llm=model)):
        await client.turn(await client.new_session(tmp_path), "Go")
        hold(client.cards(), model)
