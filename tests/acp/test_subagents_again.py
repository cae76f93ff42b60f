"""Sub-agents as sessions of their own, for a client that comes later: as one saw them who was there."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from crow import Agent, Ask
from crow.extensions import PersistenceHook, SubagentsHook
from crow.testing import FakeEditor, ScriptedModel, call, delay, text

TASK = call("Agent", description="Count lines", prompt="Count the lines of a.py")
DEEPER = call("Agent", description="Ask another", prompt="Ask another")


def before_tool(ctx: Any) -> Any:
    """Ask before each command."""
    return Ask("a command") if ctx.call.name == "Bash" else None


def agent(folder: Path, *script: Any, depth: int = 1) -> Agent:
    """An agent that hands on tasks and stores all."""
    hooks = [PersistenceHook(folder / "crow.db"), SubagentsHook((), depth=depth)]
    return Agent(llm=ScriptedModel(*script), hooks=[*hooks, before_tool])


def showing() -> FakeEditor:
    """A client that shows sub-agents."""
    return FakeEditor(drafts={"subagents": {}})


async def shown_again(folder: Path, session: str) -> FakeEditor:
    """Another client, on another day, that loads the session."""
    later = showing()
    async with later.connected(agent(folder)):
        await later.connection.load_session(str(folder), session)
    return later


def seen(editor: FakeEditor, session: str) -> dict[str, Any]:
    """What a client has seen of a session, pieces joined."""
    cards = [(card["toolCallId"], card["title"], card["status"]) for card in editor.cards(session)]
    orders = editor.updates("session_message", session)
    return {"said": editor.text(session), "cards": cards, "orders": orders}


def told_of(editor: FakeEditor, session: str) -> dict[str, Any]:
    """What a client knows in the end of the sub-agents of a session, by their ids."""
    known: dict[str, Any] = {}
    for update in editor.updates("subagent_update", session):
        known[update["sessionId"]] = {**known.get(update["sessionId"], {}), **update}
    return known


async def test_what_a_sub_agent_said_and_did_is_told_again_under_its_own_id(tmp_path: Path) -> None:
    first = showing()
    script = [text("I look."), call("Bash", command="echo 7")], "Seven.", "It has seven lines."
    async with first.connected(agent(tmp_path, TASK, *script)):
        session = await first.new_session(tmp_path)
        await first.prompt(session, "How long is a.py?")
    later = await shown_again(tmp_path, session)
    ((child, known),) = told_of(first, session).items()
    assert told_of(later, session) == {child: known}
    assert len(later.updates("subagent_update")) == 1
    assert seen(first, child)["cards"], seen(first, child)["orders"]
    assert seen(later, child) == seen(first, child)
    assert seen(later, session) == seen(first, session)
    ids = [m["params"]["sessionId"] for m in later.wire.received if "update" in m.get("params", ())]
    names = [m["params"]["update"]["sessionUpdate"] for m in later.wire.received if "method" in m]
    assert names.index("subagent_update") < ids.index(child)


async def test_a_sub_agent_that_was_cancelled_is_told_of_as_such_again(tmp_path: Path) -> None:
    first = showing()
    script = TASK, call("Bash", command="echo hi"), [delay(3600), "never"]
    async with first.connected(agent(tmp_path, *script)):
        session = await first.new_session(tmp_path)
        turn = asyncio.create_task(first.prompt(session, "Go"))
        await first.saw("tool_call_update", status="completed")
        await first.cancel(session)
        assert (await turn).stop_reason == "cancelled"
    later = await shown_again(tmp_path, session)
    assert told_of(later, session) == told_of(first, session)
    (child,) = told_of(later, session)
    assert seen(later, child) == seen(first, child)


async def test_the_sub_agent_of_a_sub_agent_is_told_to_its_own_caller_again(tmp_path: Path) -> None:
    first = showing()
    async with first.connected(
        agent(tmp_path, TASK, DEEPER, "Down here.", "I asked.", "Done.", depth=2)
    ):
        session = await first.new_session(tmp_path)
        await first.prompt(session, "Go")
    later = await shown_again(tmp_path, session)
    (child,) = told_of(first, session)
    ((grandchild, known),) = told_of(first, child).items()
    (caller,) = first.cards(child)
    assert known["_meta"]["claudeCode"]["parentToolUseId"] == caller["toolCallId"]
    for each in (session, child):
        assert told_of(later, each) == told_of(first, each)
    for each in (session, child, grandchild):
        assert seen(later, each) == seen(first, each)
