"""What is a draft in version 1, behind the capability that asks for it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError
from tests.acp.conftest import stored

from crow import Agent, Ask
from crow.core.events import PlanChanged, PlanEntry
from crow.extensions import SubagentsHook, SystemPromptHook
from crow.testing import FakeEditor, ScriptedModel, call, text

UPDATE = "session/update"


async def ids(editor: FakeEditor, **params: Any) -> list[tuple[str, bool]]:
    """The sessions that are listed, and whether they were put away."""
    answer = await editor.wire.request("session/list", params)
    return [(info["sessionId"], info["archived"]) for info in answer["result"]["sessions"]]


# archived sessions


async def test_a_session_is_put_away_and_taken_back(tmp_path: Path) -> None:
    editor = FakeEditor()
    async with editor.connected(stored(tmp_path, ScriptedModel("ok", "again"))):
        kept, away = [await editor.new_session(tmp_path) for _ in range(2)]
        await editor.prompt(away, "Hello")
        for _ in range(2):
            answer = await editor.wire.request("session/archive", {"sessionId": away})
            assert answer["result"] == {}
        assert await ids(editor) == [(kept, False)]
        assert await ids(editor, archived="exclude") == [(kept, False)]
        assert await ids(editor, archived="only") == [(away, True)]
        assert await ids(editor, archived="include") == [(away, True), (kept, False)]
        await editor.connection.load_session(str(tmp_path), away)
        assert await ids(editor, archived="only") == [(away, True)]
        for _ in range(2):
            await editor.wire.request("session/unarchive", {"sessionId": away})
        assert await ids(editor) == [(away, False), (kept, False)]


async def test_archiving_ends_what_the_session_does(tmp_path: Path) -> None:
    editor = FakeEditor()
    async with editor.connected(stored(tmp_path, ScriptedModel(call("Bash", command="sleep 60")))):
        session = await editor.new_session(tmp_path)
        said = {"sessionId": session, "prompt": [{"type": "text", "text": "Wait"}]}
        await editor.wire.send(
            {"jsonrpc": "2.0", "id": "p", "method": "session/prompt", "params": said}
        )
        await editor.saw("tool_call_update", status="in_progress")
        await editor.wire.request("session/archive", {"sessionId": session})
        await editor.wire.until(lambda: any(m.get("id") == "p" for m in editor.wire.received))
        (answer,) = [m for m in editor.wire.received if m.get("id") == "p"]
        status = await editor.wire.request("session/status", {"sessionId": session})
        with pytest.raises(RequestError):
            await editor.prompt(session, "Still there?")
    assert answer["result"]["stopReason"] == "cancelled"
    assert status["result"] == {"status": "saved"}


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("session/archive", {"sessionId": "gone"}, -32002),
        ("session/unarchive", {"sessionId": "gone"}, -32002),
        ("session/archive", {}, -32602),
        ("session/list", {"archived": "_some"}, -32602),
    ],
)
async def test_what_cannot_be_archived_is_refused(
    tmp_path: Path, method: str, params: Any, code: int
) -> None:
    editor = FakeEditor()
    async with editor.connected(stored(tmp_path, ScriptedModel())):
        refused = await editor.wire.request(method, params)
    assert refused["error"]["code"] == code


async def test_an_agent_that_stores_nothing_archives_nothing_and_says_so(tmp_path: Path) -> None:
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel())):
        session = await editor.new_session(tmp_path)
        refused = await editor.wire.request("session/archive", {"sessionId": session})
        await editor.cancel(session)
        offered = editor.wire.received[0]["result"]["agentCapabilities"]["sessionCapabilities"]
        assert session in editor.wire.received[1]["result"]["sessionId"]
    assert refused["error"]["code"] == -32601
    assert "archive" not in offered


# the client's system prompt


def prompts(model: ScriptedModel) -> list[str]:
    """The system messages of all requests."""
    return [str(asked["messages"][0]["content"]) for asked in model.asked]


def added(mode: str, *texts: str) -> dict[str, Any]:
    """A client's system prompt."""
    return {"mode": mode, "content": [{"type": "text", "text": text} for text in texts]}


async def test_a_client_adds_to_the_system_message_or_takes_its_place(tmp_path: Path) -> None:
    model = ScriptedModel("one", "two", "three")
    editor = FakeEditor()
    agent = stored(tmp_path, model, SystemPromptHook("You are Crow."))
    async with editor.connected(agent):
        place = {"cwd": str(tmp_path), "mcpServers": []}
        for given in (
            added("append", "Rhyme.", "Always."),
            added("override", "You are Ada."),
            None,
        ):
            params = {**place, "systemPrompt": given}
            session = (await editor.wire.request("session/new", params))["result"]["sessionId"]
            await editor.prompt(session, "Hello")
        offered = editor.wire.received[0]["result"]["agentCapabilities"]["sessionCapabilities"]
    appended, overridden, plain = prompts(model)
    assert appended.startswith("You are Crow.\n\nRhyme.\n\nAlways.\n\n# Environment")
    assert overridden.startswith("You are Ada.\n\n# Environment")
    assert plain.startswith("You are Crow.\n\n# Environment")
    assert offered["systemPrompt"] == {"mode": {"override": {}}}


async def test_a_session_that_is_opened_again_has_the_prompt_that_was_given_last(
    tmp_path: Path,
) -> None:
    model = ScriptedModel("one", "two", "three")
    editor = FakeEditor()
    agent = stored(tmp_path, model, SystemPromptHook("You are Crow."))
    async with editor.connected(agent):
        session = await editor.new_session(tmp_path)
        await editor.prompt(session, "Hello")
        place = {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []}
        for given in ({"systemPrompt": added("append", "Rhyme.")}, {}):
            await editor.wire.request("session/resume", {**place, **given})
            await editor.prompt(session, "Hello")
    before, between, after = prompts(model)
    assert ["Rhyme." in each for each in (before, between, after)] == [False, True, False]
    assert before == after


@pytest.mark.parametrize(
    "given",
    [
        added("_mine", "x"),
        added("append"),
        {"mode": "append", "content": [{"type": "image", "data": "", "mimeType": "image/png"}]},
        {"mode": "append", "content": [{"type": "text"}]},
        {"content": [{"type": "text", "text": "x"}]},
        "x",
    ],
)
async def test_a_system_prompt_that_makes_no_sense_opens_nothing(
    tmp_path: Path, given: Any
) -> None:
    editor = FakeEditor()
    agent = stored(tmp_path, ScriptedModel(), SystemPromptHook("You are Crow."))
    async with editor.connected(agent):
        params = {"cwd": str(tmp_path), "mcpServers": [], "systemPrompt": given}
        refused = await editor.wire.request("session/new", params)
        session = await editor.new_session(tmp_path)
        params = {**params, "sessionId": session}
        forked = await editor.wire.request("session/fork", params)
        listed = await ids(editor)
    assert refused["error"]["code"] == forked["error"]["code"] == -32602
    assert [each for each, _ in listed] == [session]


async def test_an_agent_without_a_system_prompt_refuses_a_clients(tmp_path: Path) -> None:
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel())):
        params = {"cwd": str(tmp_path), "mcpServers": [], "systemPrompt": added("append", "x")}
        refused = await editor.wire.request("session/new", params)
        offered = editor.wire.received[0]["result"]["agentCapabilities"]["sessionCapabilities"]
    assert refused["error"]["code"] == -32602
    assert "systemPrompt" not in offered


# plans


class Planner:
    """Makes a plan before each run."""

    async def before_run(self, ctx: Any) -> None:
        await ctx.emit(PlanChanged((PlanEntry("Look", "pending", "high"),)))


@pytest.mark.parametrize("announced", [True, False])
async def test_a_plan_has_an_id_where_the_client_knows_such_plans(
    tmp_path: Path, *, announced: bool
) -> None:
    editor = FakeEditor(drafts={"plan": {}} if announced else {})
    async with editor.connected(stored(tmp_path, ScriptedModel("ok"), Planner())):
        session = await editor.new_session(tmp_path)
        await editor.prompt(session, "Hello")
        plans = [u for u in editor.updates() if u["sessionUpdate"].startswith("plan")]
        await editor.connection.load_session(str(tmp_path), session)
        again = [u for u in editor.updates() if u["sessionUpdate"].startswith("plan")]
    entries = [{"content": "Look", "priority": "high", "status": "pending"}]
    items = {"type": "items", "planId": "plan", "entries": entries}
    shown = {"sessionUpdate": "plan_update", "plan": items}
    assert plans == [shown if announced else {"sessionUpdate": "plan", "entries": entries}]
    assert again == plans * 2


# what came before


async def test_older_ways_to_choose_a_model_and_to_name_a_session_still_work(
    tmp_path: Path,
) -> None:
    editor = FakeEditor()
    async with editor.connected(stored(tmp_path, ScriptedModel())):
        session = await editor.new_session(tmp_path)
        for name, code in (("scripted", None), ("no such", -32602)):
            params = {"sessionId": session, "modelId": name}
            answer = await editor.wire.request("session/set_model", params)
            assert answer.get("error", {}).get("code") == code
        params = {"sessionId": session, "title": "Mine"}
        renamed = await editor.wire.request("_session/rename", params)
    assert renamed["result"] == {"title": "Mine"}


# sub-agents as sessions of their own


class Quiet:
    """Asks before each command."""

    def before_tool(self, call: Any) -> Any:
        return Ask("a command") if call.name == "Bash" else None


def tasks(*script: Any) -> Agent:
    """An agent that hands on a task."""
    task = call("Agent", description="Count lines", prompt="Count the lines of a.py")
    return Agent(llm=ScriptedModel(task, *script), hooks=[SubagentsHook(()), Quiet()])


async def test_a_sub_agent_is_a_session_of_its_own_where_the_client_shows_such(
    tmp_path: Path,
) -> None:
    editor = FakeEditor(drafts={"subagents": {}})
    agent = tasks(
        [text("I look."), call("Bash", command="echo 7")], "Seven.", "It has seven lines."
    )
    async with editor.connected(agent):
        session = await editor.new_session(tmp_path)
        await editor.prompt(session, "How long is a.py?")
        opened, closed = editor.updates("subagent_update", session)
        child = opened["sessionId"]
        (order,) = editor.updates("session_message", child)
        (caller,) = [card for card in editor.cards(session) if card["name"] == "Agent"]
        cards, said = editor.cards(child), editor.text(child)
        told = [m["params"] for m in editor.wire.received if m.get("method") == "session/update"]
    first = next(index for index, params in enumerate(told) if params["sessionId"] == child)
    assert told[first - 1]["update"] == opened
    assert (opened["title"], opened["state"]) == ("Count lines", {"state": "running"})
    assert opened["description"] == "general-purpose"
    assert opened["_meta"]["claudeCode"]["parentToolUseId"] == caller["toolCallId"]
    assert closed["state"]["state"] == "idle"
    assert closed["state"]["stopReason"] == "end_turn"
    assert (order["senderSessionId"], order["recipientSessionId"]) == (session, child)
    assert order["content"] == [{"type": "text", "text": "Count the lines of a.py"}]
    assert said == "I look.Seven."
    assert [(card["name"], card["status"]) for card in cards] == [("Bash", "completed")]
    assert [asked["sessionId"] for asked in editor.asked] == [child]
    assert editor.asked[0]["toolCall"]["toolCallId"] == cards[0]["toolCallId"]


def statuses(editor: FakeEditor) -> list[tuple[Any, Any]]:
    """All calls so far, and how each is."""
    return [(card["name"], card["status"]) for card in editor.cards()]


async def test_a_sub_agent_that_is_cancelled_is_told_of_as_such(tmp_path: Path) -> None:
    editor = FakeEditor(drafts={"subagents": {}})
    async with editor.connected(tasks(call("Bash", command="sleep 60"))):
        session = await editor.new_session(tmp_path)
        turn = asyncio.create_task(editor.prompt(session, "How long is a.py?"))
        await editor.wire.until(lambda: ("Bash", "in_progress") in statuses(editor))
        await editor.cancel(session)
        assert (await turn).stop_reason == "cancelled"
        states = [update["state"] for update in editor.updates("subagent_update")]
    assert [state["state"] for state in states] == ["running", "idle"]
    assert states[-1]["stopReason"] == "cancelled"


async def test_a_sub_agent_can_be_cancelled_by_itself_and_its_caller_goes_on(
    tmp_path: Path,
) -> None:
    editor = FakeEditor(drafts={"subagents": {}})
    async with editor.connected(tasks(call("Bash", command="sleep 60"), "I go on alone.")):
        session = await editor.new_session(tmp_path)
        turn = asyncio.create_task(editor.prompt(session, "How long is a.py?"))
        await editor.wire.until(lambda: ("Bash", "in_progress") in statuses(editor))
        opened = editor.updates("subagent_update", session)[0]
        assert opened["capabilities"] == {"cancel": {}}
        await editor.cancel(opened["sessionId"])
        assert (await turn).stop_reason == "end_turn"
        (_, closed) = editor.updates("subagent_update", session)
        assert editor.text(session) == "I go on alone."
    assert (closed["state"]["stopReason"], closed["capabilities"]) == ("cancelled", None)


async def test_without_that_a_sub_agents_calls_stand_beside_its_callers(tmp_path: Path) -> None:
    editor = FakeEditor()
    async with editor.connected(tasks(call("Bash", command="echo 7"), "Seven.", "Seven lines.")):
        session = await editor.new_session(tmp_path)
        await editor.prompt(session, "How long is a.py?")
        caller, nested = editor.cards(session)
        told = {m["params"]["sessionId"] for m in editor.wire.received if m.get("method") == UPDATE}
    assert told == {session}
    assert nested["_meta"]["claudeCode"]["parentToolUseId"] == caller["toolCallId"]
    assert not editor.updates("subagent_update")
