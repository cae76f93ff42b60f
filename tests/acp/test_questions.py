"""What the user is asked through the editor: permission, forms, and what if nobody answers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError

from crow import Agent, Ask
from crow.core.hooks.contexts import SessionContext, ToolContext
from crow.core.ports.client import Option
from crow.testing import FakeEditor, ScriptedModel, call

ALWAYS = Option("always", "Always", "allow_always")
NEVER = Option("never", "Never", "reject_always")
ONCE = Option("once", "Once", "allow_once")


def careful(call: Any) -> Ask:
    return Ask("it touches files", options=(ONCE, ALWAYS, NEVER))


careful.__name__ = "before_tool"
UNKNOWN = RequestError.method_not_found("session/request_permission")


@pytest.mark.parametrize(
    ("answer", "status"), [("once", "completed"), ("always", "completed"), ("never", "failed")]
)
@pytest.mark.rule("permission is heard", "the flow of permission")
async def test_the_option_that_the_user_chose_decides(
    tmp_path: Path, answer: str, status: str
) -> None:
    agent = Agent(llm=ScriptedModel(call("Glob", pattern="*"), "done"), hooks=[careful])
    editor = FakeEditor(permissions=[answer])
    async with editor.connected(agent):
        await editor.prompt(await editor.new_session(tmp_path), "Look")
        (card,) = editor.cards()
    assert card["status"] == status
    (request,) = editor.asked
    assert request["toolCall"]["toolCallId"] == card["toolCallId"]
    assert request["toolCall"]["title"] == card["title"]
    assert request["toolCall"]["content"][0]["content"]["text"] == "it touches files"
    kinds = [(option["optionId"], option["kind"]) for option in request["options"]]
    assert kinds == [("once", "allow_once"), ("always", "allow_always"), ("never", "reject_always")]


@pytest.mark.parametrize("answers", [None, ["never"]])
async def test_the_model_does_not_hear_of_a_question_that_the_end_of_input_ended(
    tmp_path: Path, answers: list[str] | None
) -> None:
    wonder = asking("confirm", {"text": "Really?", "default": True}, [])
    hook = careful if answers is None else wonder
    model = ScriptedModel(call("Glob", pattern="*"), "never")
    methods = ["session/request_permission", "elicitation/create"]
    editor = FakeEditor(silent=methods, answers=answers)
    async with editor.connected(Agent(llm=model, hooks=[hook])):
        session = await editor.new_session(tmp_path)
        turn = asyncio.create_task(editor.prompt(session, "Look"))
        await editor.wire.until(
            lambda: any(message.get("method") in methods for message in editor.wire.received)
        )
    turn.cancel()
    await asyncio.wait([turn])
    assert len(model.asked) == 1


async def test_a_change_is_shown_when_it_is_to_be_permitted(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    writing = call("Write", file_path=str(file), content="new\n")
    editor = FakeEditor(permissions=["never"])
    async with editor.connected(Agent(llm=ScriptedModel(writing, "ok"), hooks=[careful])):
        await editor.prompt(await editor.new_session(tmp_path), "Write")
    shown, reason = editor.asked[0]["toolCall"]["content"]
    assert reason["content"]["text"] == "it touches files"
    assert shown == {"type": "diff", "path": str(file), "oldText": None, "newText": "new\n"} or (
        shown == {"type": "diff", "path": str(file), "newText": "new\n"}
    )
    assert not file.exists()


@pytest.mark.parametrize("answers", [None, ["cancelled"]], ids=["permission", "question"])
@pytest.mark.rule("permission is heard")
async def test_a_cancelled_question_ends_the_turn_and_settles_the_call(
    tmp_path: Path, answers: Any
) -> None:
    async def after_tool(ctx: ToolContext) -> None:
        await asyncio.sleep(0)

    hook = asking("confirm", {"text": "Sure?"}, []) if answers else careful
    model = ScriptedModel(call("Glob", pattern="*"), "again")
    editor = FakeEditor(permissions=["cancelled"])
    async with editor.connected(Agent(llm=model, hooks=[hook, after_tool])):
        session = await editor.new_session(tmp_path)
        reply = await editor.prompt(session, "Look")
        card = editor.cards()[0]
        again = await editor.prompt(session, "Well?")
    assert reply.stop_reason == "cancelled"
    assert again.stop_reason == "end_turn"
    assert card["status"] == "failed"


@pytest.mark.rule("permission is heard", "a client that cannot ask")
async def test_a_client_that_cannot_ask_is_asked_once(tmp_path: Path) -> None:
    looks = [call("Glob", pattern="*")] * 2
    editor = FakeEditor(permissions=[UNKNOWN])
    async with editor.connected(Agent(llm=ScriptedModel(*looks, "done"), hooks=[careful])):
        await editor.prompt(await editor.new_session(tmp_path), "Look")
        cards = editor.cards()
        assert "cannot ask for permission" in editor.text()
    assert [card["status"] for card in cards] == ["failed", "failed"]
    assert "nobody can be asked" in cards[1]["content"][0]["content"]["text"]
    assert len(editor.asked) == 1


@pytest.mark.rule("permission is heard", "a client that cannot ask")
async def test_an_error_of_the_clients_is_no_permission_and_no_crash(tmp_path: Path) -> None:
    looks = [call("Glob", pattern="*")] * 2
    broken = RequestError.internal_error({"details": "popup crashed"})
    editor = FakeEditor(permissions=[broken, "once"])
    async with editor.connected(Agent(llm=ScriptedModel(*looks, "done"), hooks=[careful])):
        await editor.prompt(await editor.new_session(tmp_path), "Look")
        assert [card["status"] for card in editor.cards()] == ["failed", "completed"]


@pytest.mark.parametrize(
    "outcome",
    ["not-on-offer", {}, {"outcome": 7}, {"outcome": {"outcome": "selected"}}],
)
async def test_an_answer_without_sense_is_no_permission(tmp_path: Path, outcome: Any) -> None:
    agent = Agent(llm=ScriptedModel(call("Glob", pattern="*"), "done"), hooks=[careful])
    editor = FakeEditor(permissions=[outcome])
    async with editor.connected(agent):
        await editor.prompt(await editor.new_session(tmp_path), "Look")
        (card,) = editor.cards()
    assert card["status"] == "failed"


async def test_cancelling_while_a_question_is_open_ends_the_turn(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def wait(request: dict[str, Any]) -> str:
        asked.set()
        await asyncio.Event().wait()
        return ""

    agent = Agent(llm=ScriptedModel(call("Glob", pattern="*"), "again"), hooks=[careful])
    editor = FakeEditor(permissions=[wait])
    async with editor.connected(agent):
        session = await editor.new_session(tmp_path)
        turn = asyncio.create_task(editor.prompt(session, "Look"))
        await asked.wait()
        await editor.cancel(session)
        reply = await turn
        assert (await editor.prompt(session, "Well?")).stop_reason == "end_turn"
        methods = [message.get("method") for message in editor.wire.received]
    assert reply.stop_reason == "cancelled"
    assert "$/cancel_request" in methods


QUESTIONS = [
    ("confirm", {"text": "Sure?"}, True, "yes", True),
    ("confirm", {"text": "Sure?"}, False, "no", False),
    ("select", {"text": "Which?", "choices": ["a", "b"], "default": "a"}, "b", "choice-1", "b"),
    ("ask", {"text": "Name?", "default": "nobody"}, "Ada", "ignored", "Ada"),
]


def asking(method: str, options: dict[str, Any], heard: list[Any]) -> Any:
    async def before_tool(ctx: ToolContext) -> None:
        heard.append(await getattr(ctx.ui, method)(**options))

    return before_tool


@pytest.mark.parametrize(("method", "options", "typed", "chosen", "meant"), QUESTIONS)
async def test_hooks_ask_with_a_form_where_the_client_has_them(
    tmp_path: Path, method: str, options: Any, typed: Any, chosen: str, meant: Any
) -> None:
    heard: list[Any] = []
    hook = asking(method, options, heard)
    editor = FakeEditor(answers=[typed])
    async with editor.connected(
        Agent(llm=ScriptedModel(call("Glob", pattern="*"), "done"), hooks=[hook])
    ):
        await editor.prompt(await editor.new_session(tmp_path), "Look")
    assert heard == [meant]
    assert editor.asked[0]["message"] == options["text"]


@pytest.mark.parametrize(("method", "options", "typed", "chosen", "meant"), QUESTIONS)
async def test_hooks_ask_by_options_where_it_has_none(
    tmp_path: Path, method: str, options: Any, typed: Any, chosen: str, meant: Any
) -> None:
    heard: list[Any] = []
    hook = asking(method, options, heard)
    editor = FakeEditor(permissions=[chosen])
    async with editor.connected(
        Agent(llm=ScriptedModel(call("Glob", pattern="*"), "done"), hooks=[hook])
    ):
        await editor.prompt(await editor.new_session(tmp_path), "Look")
        cards = editor.cards()
    assert heard == [options.get("default") if method == "ask" else meant]
    assert all(card["status"] == "completed" for card in cards)
    assert len(editor.asked) == (0 if method == "ask" else 1)


@pytest.mark.parametrize("answer", [None, 7])
async def test_a_declined_or_senseless_form_means_the_default(tmp_path: Path, answer: Any) -> None:
    heard: list[Any] = []
    hook = asking("select", {"text": "Which?", "choices": ["a", "b"], "default": "a"}, heard)
    editor = FakeEditor(answers=[answer])
    async with editor.connected(
        Agent(llm=ScriptedModel(call("Glob", pattern="*"), "done"), hooks=[hook])
    ):
        await editor.prompt(await editor.new_session(tmp_path), "Look")
    assert heard == ["a"]


async def test_a_question_to_a_client_that_cannot_ask_means_the_default(tmp_path: Path) -> None:
    heard: list[Any] = []
    hook = asking("confirm", {"text": "Sure?", "default": True}, heard)
    looks = [call("Glob", pattern="*")] * 2
    editor = FakeEditor(permissions=[UNKNOWN])
    async with editor.connected(Agent(llm=ScriptedModel(*looks, "done"), hooks=[hook])):
        await editor.prompt(await editor.new_session(tmp_path), "Look")
    assert heard == [True, True]
    assert len(editor.asked) == 1


@pytest.mark.parametrize("forms", [True, False])
async def test_a_question_is_asked_beside_the_turns_with_its_detail_and_what_answers_permit(
    tmp_path: Path, forms: bool
) -> None:
    heard: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    async def on_session_start(ctx: SessionContext) -> None:
        async def ask() -> None:
            await ctx.client.ready()  # type: ignore[attr-defined]
            kinds = ("allow_always", "reject_once")
            detail = "runs: one\nruns: two"
            chosen = await ctx.ui.select("Trust?", ["Yes", "No"], kinds=kinds, detail=detail)
            heard.set_result(chosen)

        ctx.session.spawn(ask())

    editor = FakeEditor(permissions=["allow_always"], answers=["Yes"] if forms else None)
    async with editor.connected(Agent(llm=ScriptedModel("hello"), hooks=[on_session_start])):
        await editor.new_session(tmp_path)
        assert await heard == "Yes"
    (asked,) = editor.asked
    if forms:
        assert asked["message"] == "Trust?\n\nruns: one\nruns: two"
    else:
        assert asked["toolCall"]["content"][0]["content"]["text"] == "runs: one\nruns: two"
        assert [option["kind"] for option in asked["options"]] == ["allow_always", "reject_once"]
