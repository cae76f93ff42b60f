"""What hooks did to a tool call stands on its card, in ``_meta``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crow import Agent, Allow, Ask, Deny
from crow.extensions import PersistenceHook, SubagentsHook
from crow.extensions.subagents import Definition
from crow.testing import FakeEditor, ScriptedModel, call


class Guard:
    """Denies one call, changes another, looks at all."""

    def before_tool(self, ctx: Any) -> Any:
        if ctx.args["pattern"] == "secret":
            return Deny("not that")
        if ctx.args["pattern"] == "old":
            ctx.args["pattern"] = "new"
        return Allow("fine")

    def after_tool(self, ctx: Any) -> None:
        return None


async def test_a_card_says_which_hook_decided_what(tmp_path: Path) -> None:
    def before_tool(call: Any) -> Ask:
        return Ask("sure?")

    script = [call("Glob", pattern="secret"), call("Glob", pattern="old")], "done"
    editor = FakeEditor()
    agent = Agent(llm=ScriptedModel(*script), hooks=[Guard(), before_tool])
    async with editor.connected(agent):
        await editor.prompt(await editor.new_session(tmp_path), "Look")
        denied, changed = (card["_meta"]["crow"]["hooks"] for card in editor.cards())
    assert denied[0] == {
        "event": "before_tool",
        "owner": "guard",
        "hook": denied[0]["hook"],
        "verdict": "deny",
        "reason": "not that",
    }
    assert [(deed["owner"], deed["verdict"]) for deed in changed] == [
        ("guard", "allow"),
        ("before_tool", "ask"),
    ]
    assert changed[0]["changed"] == ["args"]


async def test_a_hook_that_failed_is_named(tmp_path: Path) -> None:
    def after_tool(ctx: Any) -> None:
        raise RuntimeError("oops")

    editor = FakeEditor()
    agent = Agent(llm=ScriptedModel(call("Glob", pattern="*"), "done"), hooks=[after_tool])
    async with editor.connected(agent):
        await editor.prompt(await editor.new_session(tmp_path), "Look")
        (card,) = editor.cards()
    (deed,) = card["_meta"]["crow"]["hooks"]
    assert deed["event"] == "after_tool"
    assert "oops" in deed["error"]


async def test_a_call_that_no_hook_touched_has_no_such_mark(tmp_path: Path) -> None:
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel(call("Glob", pattern="*"), "done"))):
        await editor.prompt(await editor.new_session(tmp_path), "Look")
        (card,) = editor.cards()
    assert "_meta" not in card


async def test_a_call_of_a_sub_agents_that_is_shown_says_it_too(tmp_path: Path) -> None:
    def before_tool(call: Any) -> Ask | None:
        return Ask("sure?") if call.name == "Glob" else None

    task = call("Agent", description="Look", prompt="Look.", subagent_type="worker")
    works = ScriptedModel(call("Glob", pattern="*"), "Looked.")
    worker = Definition("worker", "Works.", "You work.", model="own")
    helpers = SubagentsHook([], agents=[worker], models={"own": works})
    editor = FakeEditor()
    agent = Agent(llm=ScriptedModel(task, "done"), hooks=[helpers, before_tool])
    async with editor.connected(agent):
        await editor.prompt(await editor.new_session(tmp_path), "Look")
        (card,) = (card for card in editor.cards() if card["name"] == "Glob")
    (deed,) = card["_meta"]["crow"]["hooks"]
    assert (deed["event"], deed["verdict"], deed["reason"]) == ("before_tool", "ask", "sure?")


@pytest.mark.rule("the whole history after a reload")
async def test_a_session_that_is_loaded_again_says_it_as_it_was_said(tmp_path: Path) -> None:
    def before_tool(call: Any) -> Ask:
        return Ask("sure?")

    def after_tool(ctx: Any) -> None:
        raise RuntimeError("oops")

    script = [call("Glob", pattern="secret"), call("Glob", pattern="old")], "done"
    hooks = [PersistenceHook(tmp_path / "db"), Guard(), before_tool, after_tool]
    first, later = FakeEditor(), FakeEditor()
    async with first.connected(Agent(llm=ScriptedModel(*script), hooks=hooks)):
        session = await first.new_session(tmp_path)
        await first.prompt(session, "Look")
    async with later.connected(Agent(llm=ScriptedModel(), hooks=hooks[:1])):
        await later.connection.load_session(str(tmp_path), session)
    assert [card["_meta"] for card in first.cards()] == [card["_meta"] for card in later.cards()]
    assert "oops" in str(later.cards()[1]["_meta"])
