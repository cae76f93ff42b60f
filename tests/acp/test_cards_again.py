"""Calls in a conversation that is shown again: one update each, its state, and whose it is."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.acp.conftest import stored

from crow import Agent, Ask, tool
from crow.core.ports.client import Option
from crow.extensions import SubagentsHook
from crow.testing import FakeEditor, ScriptedModel, call, delay

CARDS = ("tool_call", "tool_call_update")
YES, NO = Option("y", "Yes", "allow_once"), Option("n", "No", "reject_once")


def told(editor: FakeEditor) -> list[Any]:
    return [update for update in editor.updates() if update["sessionUpdate"] in CARDS]


def before_tool(ctx: Any) -> Ask | None:
    return Ask("May it?", options=(YES, NO)) if ctx.call.name in ("Bash", "Write") else None


@pytest.mark.rule("the whole history after a reload")
async def test_a_loaded_session_tells_of_each_call_once_with_how_it_ended(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    script = [
        [call("Read", file_path="a.txt"), call("Glob", pattern="*"), call("Gone")],
        [call("Bash", command="echo hi"), call("Bash", command="exit 3")],
        call("Write", file_path="b.txt", content="two"),
        "Done.",
    ]
    first = FakeEditor(permissions=["allow_once", "allow_once", "reject_once"])
    later = FakeEditor()
    async with first.connected(stored(tmp_path, ScriptedModel(*script), before_tool)):
        session = await first.new_session(tmp_path)
        await first.prompt(session, "Go")
    async with later.connected(stored(tmp_path, ScriptedModel())):
        await later.connection.load_session(str(tmp_path), session)
        cards = told(later)
    assert {card["sessionUpdate"] for card in cards} == {"tool_call"}
    assert [card["status"] for card in first.cards()] == [
        *("completed", "completed", "failed", "completed", "failed", "failed")
    ]
    again = {card["toolCallId"]: card for card in cards}
    assert len(again) == len(cards) == len(first.cards())
    for before in first.cards():
        card = again[before["toolCallId"]]
        for name in ("status", "title", "kind", "rawInput", "rawOutput", "content", "locations"):
            assert card.get(name) == before.get(name), name


async def test_a_call_that_runs_while_its_session_is_loaded_is_shown_as_running(
    tmp_path: Path,
) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        begun.set()
        await go.wait()
        return "waited"

    # The model uses one id for two calls, as some do.
    script = [call("Gone", call_id="x"), call("wait", call_id="x"), "Done."]
    editor = FakeEditor()
    async with editor.connected(stored(tmp_path, ScriptedModel(*script), tools=[wait])):
        session = await editor.new_session(tmp_path)
        turn = asyncio.create_task(editor.prompt(session, "Go"))
        await begun.wait()
        await editor.saw("tool_call_update", status="in_progress")
        before = len(editor.updates())
        await editor.connection.load_session(str(tmp_path), session)
        shown = [u for u in editor.updates()[before:] if u["sessionUpdate"] in CARDS]
        assert [(u["sessionUpdate"], u["status"]) for u in shown] == [
            ("tool_call", "failed"),
            ("tool_call", "in_progress"),
        ]
        go.set()
        await turn
        await editor.saw("tool_call_update", status="completed")
        since = [u for u in editor.updates()[before:] if u["sessionUpdate"] in CARDS][2:]
    assert [(u["toolCallId"], u["status"]) for u in since] == [
        (shown[1]["toolCallId"], "completed")
    ]
    assert shown[0]["toolCallId"] != shown[1]["toolCallId"]


def child_of(update: Any) -> str | None:
    return update.get("_meta", {}).get("claudeCode", {}).get("parentToolUseId")


async def test_the_calls_of_a_sub_agent_say_whose_they_are_live_and_shown_again(
    tmp_path: Path,
) -> None:
    task = call("Agent", description="Look", prompt="Look around")
    script = [
        task,
        [call("Glob", pattern="*"), call("Bash", command="echo hi")],
        call("Bash", command="exit 3"),
        "Seen.",
        "Done.",
    ]
    first, later = FakeEditor(permissions=["allow_once", "reject_once"]), FakeEditor()
    agent = stored(tmp_path, ScriptedModel(*script), SubagentsHook([]), before_tool)
    async with first.connected(agent):
        session = await first.new_session(tmp_path)
        await first.prompt(session, "Go")
    parent, *below = first.cards()
    assert [card["title"] for card in below] == ["echo hi", "exit 3"]
    assert child_of(parent) is None
    links = {child_of(u) for u in told(first) if u["toolCallId"] != parent["toolCallId"]}
    assert links == {parent["toolCallId"]}

    async with later.connected(stored(tmp_path, ScriptedModel())):
        await later.connection.load_session(str(tmp_path), session)
        again, *below_again = told(later)
    assert again["toolCallId"] == parent["toolCallId"]
    assert [child_of(card) for card in below_again] == [parent["toolCallId"]] * 2
    assert [(c["toolCallId"], c["title"], c["status"]) for c in below_again] == [
        (c["toolCallId"], c["title"], c["status"]) for c in below
    ]


async def test_the_calls_of_a_sub_agent_that_was_cancelled_are_shown_again(tmp_path: Path) -> None:
    task = call("Agent", description="Look", prompt="Look around")
    script = [task, call("Bash", command="echo hi"), [delay(3600), "never"]]
    first, later = FakeEditor(permissions=["allow_once"]), FakeEditor()
    async with first.connected(
        stored(tmp_path, ScriptedModel(*script, leftover="allow"), SubagentsHook([]), before_tool)
    ):
        session = await first.new_session(tmp_path)
        turn = asyncio.create_task(first.prompt(session, "Go"))
        await first.saw("tool_call_update", status="completed")
        await first.connection.cancel(session)
        assert (await turn).stop_reason == "cancelled"
    parent, below = first.cards()
    assert (parent["status"], below["status"]) == ("failed", "completed")

    async with later.connected(stored(tmp_path, ScriptedModel())):
        await later.connection.load_session(str(tmp_path), session)
        again, below_again = told(later)
    assert (again["toolCallId"], again["status"]) == (parent["toolCallId"], "failed")
    assert (below_again["toolCallId"], child_of(below_again)) == (
        below["toolCallId"],
        parent["toolCallId"],
    )


async def test_the_calls_of_a_sub_agents_sub_agent_belong_to_the_call_that_is_seen(
    tmp_path: Path,
) -> None:
    task = call("Agent", description="Look", prompt="Look around")
    script = [task, task, call("Bash", command="echo hi"), "Seen.", "Seen.", "Done."]
    editor = FakeEditor(permissions=["allow_once"])
    agent = Agent(llm=ScriptedModel(*script), hooks=[SubagentsHook([], depth=2), before_tool])
    async with editor.connected(agent):
        await editor.prompt(await editor.new_session(tmp_path), "Go")
    parent, below = editor.cards()
    assert child_of(below) == parent["toolCallId"]
