"""Questions of servers: who answers, what the hooks may do, and what nobody accepts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.extensions.mcp.conftest import Open, Table, Watcher
from tests.extensions.mcp.test_faults import until_traced

from crow.core.verdicts import Answer, Deny
from crow.testing import call

Raw = Callable[..., Table]
FORM = {
    "mode": "form",
    "message": "Which \x1b[1mone\x1b[0m?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "size": {"type": "string", "enum": ["s", "l"], "enumNames": ["Small", "Large"]},
            "spicy": {"type": "boolean", "title": "Spicy?"},
            "colour": {"type": "string", "oneOf": [{"const": "#f00", "title": "Red"}]},
            "extras": {"type": "array", "items": {"type": "string", "enum": ["egg", "ham"]}},
            "price": {"type": "number", "description": "At most", "maximum": 10},
            "note": {"type": "string", "default": "none"},
        },
        "required": ["size", "spicy", "extras", "price"],
    },
}
ANSWERS = ["Answer", "Large", "Yes", "Leave it out", "egg", "ham", "9.5", ""]
CONTENT = {"size": "l", "spicy": True, "extras": ["egg", "ham"], "price": 9.5, "note": "none"}


class Asked:
    """Runs one call of a server that asks, and says what the server heard."""

    def __init__(self, opened: Open, raw: Raw) -> None:
        self.opened = opened
        self.raw = raw
        self.client = Watcher()

    async def __call__(self, *answers: Any, form: Any = FORM, **hooks: Any) -> Any:
        self.client = Watcher(*answers)
        server = self.raw(call="ask", ask=form)
        async with self.opened(
            {"s": server}, call("mcp__s__echo"), "Done.", client=self.client
        ) as it:
            for event, hook in hooks.items():
                it.agent.hooks.register(event, hook)
            await it.prompt()
            return json.loads(it.results[0].splitlines()[1])


@pytest.fixture
def asked(opened: Open, raw: Raw) -> Asked:
    return Asked(opened, raw)


async def test_a_form_is_asked_field_by_field_once_the_user_agrees(asked: Asked):
    assert await asked(*ANSWERS) == {"action": "accept", "content": CONTENT}
    first, *fields = asked.client.questions
    assert (first.text, first.choices) == (
        'The MCP server "s" asks: Which one?',
        ("Answer", "Decline"),
    )
    assert [(field.text, field.choices) for field in fields] == [
        ("size", ("Small", "Large")),
        ("Spicy?", ("Yes", "No")),
        ("colour", ("Red", "Leave it out")),
        ("extras", ("egg", "ham", "That is all")),
        ("extras (so far: egg)", ("ham", "That is all")),
        ("price: At most (at most 10)", ()),
        ("note (default: none)", ()),
    ]


@pytest.mark.parametrize(
    "answers, action",
    [
        ([], "cancel"),
        (["Decline"], "decline"),
        (["Answer"], "cancel"),
        (["Answer", "Large", "Yes", "Red", "That is all", "11", "eleven", ""], "cancel"),
        (["Answer", "Large", "Yes", "Red", "egg", None], "cancel"),
    ],
)
async def test_nothing_is_accepted_that_nobody_has_accepted(
    asked: Asked, answers: list[str], action: str
):
    assert await asked(*answers) == {"action": action}


async def test_a_field_is_asked_again_with_what_is_wrong_with_its_answer(asked: Asked):
    said = ["Answer", "Large", "Yes", "Red", "That is all", "11", "eleven", "9", ""]
    heard = await asked(*said)
    assert heard["content"] == {**CONTENT, "colour": "#f00", "extras": [], "price": 9.0}
    price = "price: At most (at most 10)"
    assert [each.text for each in asked.client.questions if each.text.startswith(price)] == [
        price,
        f"{price}: 11.0 is greater than the maximum of 10",
        f'{price}: "eleven" is not of type "number"',
    ]


async def test_what_several_can_be_said_of_without_choices_is_typed(asked: Asked):
    fields = {"tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2}}
    schema = {"type": "object", "properties": fields, "required": ["tags"]}
    form = {"mode": "form", "message": "Which?", "requestedSchema": schema}
    assert await asked("Answer", "a,b,c", "a, b", form=form) == {
        "action": "accept",
        "content": {"tags": ["a", "b"]},
    }
    text = "tags (several, separated by commas, at most 2 of them)"
    assert asked.client.questions[1].text == text


async def test_a_question_without_fields_is_a_yes_or_no(asked: Asked):
    form = {
        "mode": "form",
        "message": "Go?",
        "requestedSchema": {"type": "object", "properties": {}},
    }
    assert await asked("Accept", form=form) == {"action": "accept", "content": {}}
    assert await asked("Decline", form=form) == {"action": "decline"}


async def test_a_form_that_is_too_long_is_not_put_to_anybody(asked: Asked):
    fields = {f"field{number}": {"type": "string"} for number in range(21)}
    schema = {"type": "object", "properties": fields}
    form = {"mode": "form", "message": "All?", "requestedSchema": schema}
    assert await asked("Answer", form=form) == {"action": "cancel"}
    assert asked.client.questions == []


async def test_a_hook_answers_for_the_user(asked: Asked):
    seen: list[Any] = []

    def answer(mcp_server_name: str, message: str, mode: str, requested_schema: Any) -> Answer:
        seen.extend([mcp_server_name, message, mode, list(requested_schema["properties"])])
        return Answer({"action": "accept", "content": {"size": "s"}})

    heard = await asked(Elicitation=answer)
    assert heard == {"action": "accept", "content": {"size": "s"}}
    assert seen == ["s", "Which one?", "form", list(FORM["requestedSchema"]["properties"])]
    assert asked.client.questions == []


@pytest.mark.parametrize("answer", [Deny("no"), "no", Answer("nonsense"), Answer({"action": "x"})])
async def test_a_hook_declines_for_the_user(asked: Asked, answer: Any):
    assert await asked(*ANSWERS, Elicitation=lambda ctx: answer) == {"action": "decline"}
    assert asked.client.questions == []


async def test_a_hook_that_fails_declines(asked: Asked):
    def fail(ctx: Any) -> None:
        raise ValueError("broken")

    assert await asked(*ANSWERS, Elicitation=fail) == {"action": "decline"}


async def test_a_hook_changes_or_refuses_what_the_user_answered(asked: Asked):
    seen: list[Any] = []

    def change(ctx: Any) -> None:
        seen.append((ctx.mcp_server_name, ctx.action, ctx.content))
        ctx.content = {**ctx.content, "note": "changed"}

    heard = await asked(*ANSWERS, ElicitationResult=change)
    assert heard == {"action": "accept", "content": {**CONTENT, "note": "changed"}}
    assert seen == [("s", "accept", CONTENT)]
    heard = await asked(*ANSWERS, ElicitationResult=lambda ctx: Deny("too spicy"))
    assert heard == {"action": "decline"}


async def test_a_call_does_not_time_out_while_the_user_thinks(opened: Open, raw: Raw):
    thinking: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(1.2, thinking.set_result, "Decline")
    server = raw(call="ask", ask=FORM)
    script = [call("mcp__s__echo"), "Done."]
    client = Watcher(thinking)
    async with opened({"s": server}, *script, client=client, call_timeout=1.0) as it:
        await it.prompt()
        assert '{"action": "decline"}' in it.results[0]


async def test_a_question_ends_with_the_run_that_led_to_it(opened: Open, raw: Raw, trace: Path):
    waiting: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    client = Watcher(waiting)
    server = raw(call="ask", ask=FORM)
    async with opened({"s": server}, call("mcp__s__echo"), client=client) as it:
        running = asyncio.create_task(it.agent.prompt(it.session, "Go on."))
        await client.until(lambda: bool(client.questions))
        it.agent.cancel(it.session)
        assert (await running).stop_reason == "cancelled"
        await until_traced(trace, 'heard {"action": "cancel"}')
        assert waiting.cancelled()


async def test_the_user_is_told_that_somebody_waits(asked: Asked):
    told: list[tuple[str, str]] = []

    def notified(kind: str, message: str) -> None:
        told.append((kind, message))

    await asked(*ANSWERS, Notification=notified)
    assert told == [("elicitation_dialog", "Which one?")]


@pytest.mark.parametrize(
    "field, value",
    [
        ("action", "maybe"),
        ("action", None),
        ("content", "text"),
        ("content", {"note": object()}),
        ("content", {1: "x"}),
    ],
)
async def test_an_answer_of_the_wrong_shape_is_that_hooks_error_and_declines(
    asked: Asked, field: str, value: Any
):
    def change(ctx: Any) -> None:
        setattr(ctx, field, value)

    assert await asked(*ANSWERS, ElicitationResult=change) == {"action": "decline"}


async def test_a_hook_that_fails_has_changed_nothing_of_the_answer(asked: Asked):
    def change(ctx: Any) -> None:
        ctx.content["note"] = object()

    assert await asked(*ANSWERS, ElicitationResult=change) == {"action": "decline"}


PAGE = {"mode": "url", "url": "https://example.org/a", "elicitationId": "1", "message": "Sign in"}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Accept", "; the user was shown which: call again once they are done there"),
        ("Decline", ": the user did not"),
    ],
)
async def test_pages_that_a_server_wants_visited_first_are_put_to_the_user(
    opened: Open, raw: Raw, said: str, told: str
):
    client = Watcher(said, said)
    server = raw(call="pages", pages=[PAGE, PAGE])
    async with opened({"s": server}, call("mcp__s__echo"), "Done.", client=client) as it:
        await it.prompt()
        assert f"the MCP server 's' wants a page visited first{told}" in it.results[0]
    text = 'The MCP server "s" asks: Sign in\nVisit https://example.org/a and say when it is done.'
    assert [each.text for each in client.questions] == [text] * (2 if said == "Accept" else 1)


@pytest.mark.parametrize("pages", [None, [], [{"mode": "url"}], ["page"]])
async def test_pages_that_make_no_sense_are_a_refusal(opened: Open, raw: Raw, pages: Any):
    server = raw(call="pages", pages=pages)
    async with opened({"s": server}, call("mcp__s__echo"), "Done.", client=Watcher()) as it:
        await it.prompt()
        assert "refused: sign in first (error -32042)" in it.results[0]
