"""Forms and pages: a server's question, and the model's, as one request of the client's own kind."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.extensions.mcp.conftest import FULL, SERVERS

from crow import Agent, ToolContext
from crow.events import Filled, Form
from crow.extensions import McpHook, SubagentsHook
from crow.messages import text_of
from crow.testing import FakeEditor, ScriptedModel, call

ORDER = {
    "type": "object",
    "title": "An order",
    "properties": {
        "name": {"type": "string", "title": "Na\x1bme", "minLength": 2, "pattern": "^[A-Z]"},
        "mail": {"type": "string", "format": "email"},
        "guests": {"type": "integer", "minimum": 1, "maximum": 9, "default": 2},
        "price": {"type": "number", "maximum": 10.5, "description": "At most"},
        "smoking": {"type": "boolean", "default": False},
        "size": {"type": "string", "enum": ["s", "l"], "enumNames": ["Small", "Large"]},
        "colour": {"type": "string", "oneOf": [{"const": "#f00", "title": "Red"}]},
        "menu": {
            "type": "array",
            "minItems": 1,
            "maxItems": 2,
            "items": {"type": "string", "enum": ["soup", "fish", "cake"]},
            "default": ["soup"],
        },
        "extras": {"type": "array", "items": {"anyOf": [{"const": "e", "title": "Egg"}]}},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
    },
    "required": ["name", "guests"],
}
SHOWN = {
    **{key: value for key, value in ORDER.items() if key != "properties"},
    "properties": {
        **ORDER["properties"],
        "name": {**ORDER["properties"]["name"], "title": "Name"},
        "size": {
            "type": "string",
            "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}],
        },
        "note": {"type": "string"},
    },
}
FILLED = {"name": "Ann", "mail": "a@b.org", "guests": 3, "price": 9.5, "menu": ["fish", "cake"]}


class Waiter:
    """An agent whose model calls a server's tool, and what the server heard of the question."""

    def __init__(self, cwd: Path) -> None:
        self.cwd = cwd
        self.agent = Agent(llm=ScriptedModel())

    def serve(self, schema: Any = ORDER, **ask: Any) -> Agent:
        """An agent with a server that asks this."""
        asked = {"mode": "form", "message": "Which table?", "requestedSchema": schema, **ask}
        spec = {"call": "ask", "ask": asked, "complete": asked.get("elicitationId")}
        args = ["-SE", str(SERVERS / "raw.py"), json.dumps(spec)]
        return self.started(sys.executable, args, call("mcp__s__echo"))

    def started(self, command: str, args: list[str], *calls: Any) -> Agent:
        env = {"TRACE": str(self.cwd / "trace"), "ERA": "old"}
        server = {"command": command, "args": args, "env": env}
        hook = McpHook({"s": server}, connect_timeout=50.0, wait=50.0)
        self.agent = Agent(llm=ScriptedModel(*calls, "Done."), hooks=[hook])
        return self.agent

    @property
    def heard(self) -> list[str]:
        """The results of the calls, without what is said around them."""
        (session,) = self.agent.sessions.values()
        told = [text_of(m.get("content")) for m in session.messages if m["role"] == "tool"]
        return [text.splitlines()[1] for text in told]

    async def ask(self, editor: FakeEditor) -> Any:
        """One prompt; what the server has heard."""
        async with editor.connected(self.agent):
            await editor.prompt(await editor.new_session(self.cwd), "Go")
            return json.loads(self.heard[0])


@pytest.fixture
def waiter(tmp_path: Path) -> Waiter:
    return Waiter(tmp_path)


async def test_a_servers_form_is_one_request_with_all_of_its_fields(waiter: Waiter) -> None:
    waiter.serve()
    editor = FakeEditor(answers=[FILLED])
    assert await waiter.ask(editor) == {"action": "accept", "content": FILLED}
    (asked,) = editor.asked
    assert asked["message"] == 'The MCP server "s" asks: Which table?'
    assert asked["schema"] == SHOWN
    (card,) = editor.cards()
    assert asked["toolCallId"] == card["toolCallId"]


@pytest.mark.parametrize("action", ["decline", "cancel", "_later"])
async def test_what_is_not_accepted_is_not(waiter: Waiter, action: str) -> None:
    waiter.serve()
    expected = {"action": action if action == "decline" else "cancel"}
    assert await waiter.ask(FakeEditor(answers=[{"action": action}])) == expected


@pytest.mark.parametrize(
    ("field", "value", "wrong"),
    [
        ("guests", 11, "guests: 11 is greater than the maximum of 9"),
        ("guests", "3", 'guests: "3" is not of type "integer"'),
        ("mail", "nobody", 'mail: "nobody" is not a "email"'),
        ("size", "Large", 'size: "Large" is not one of "s" or "l"'),
        ("menu", ["bread"], 'menu.0: "bread" is not one of "soup", "fish" or "cake"'),
    ],
)
async def test_an_answer_that_does_not_fit_is_asked_for_again_with_the_reason(
    waiter: Waiter, field: str, value: Any, wrong: str
) -> None:
    waiter.serve()
    editor = FakeEditor(answers=[{**FILLED, field: value}, FILLED])
    assert await waiter.ask(editor) == {"action": "accept", "content": FILLED}
    first, second = editor.asked
    assert second["message"] == f"{first['message']}\n\nThat did not fit: {wrong}"


async def test_an_answer_that_never_fits_is_given_up(waiter: Waiter) -> None:
    waiter.serve()
    editor = FakeEditor(answers=[{"name": "Ann", "guests": 11}], notices=True)
    assert await waiter.ask(editor) == {"action": "cancel"}
    assert len(editor.asked) == 3
    (notice,) = editor.updates("notice")
    assert "What was answered 's' did not fit: guests: 11 is" in notice["title"]


async def test_what_is_left_empty_is_left_out_and_what_is_needed_has_its_default(
    waiter: Waiter,
) -> None:
    waiter.serve()
    said = {"name": "Ann", "mail": "", "price": None, "note": "", "unknown": 1}
    expected = {"name": "Ann", "guests": 2, "note": ""}
    editor = FakeEditor(answers=[said])
    assert await waiter.ask(editor) == {"action": "accept", "content": expected}


async def test_a_question_without_fields_is_a_form_without_fields(waiter: Waiter) -> None:
    waiter.serve({"type": "object", "properties": {}})
    editor = FakeEditor(answers=[{}])
    assert await waiter.ask(editor) == {"action": "accept", "content": {}}
    assert [each["schema"] for each in editor.asked] == [{"type": "object", "properties": {}}]


@pytest.mark.parametrize(
    "field",
    [
        {"type": "object", "properties": {"x": {"type": "string"}}},
        {"type": "array", "items": {"type": "string"}},
        {"type": "integer", "enum": [1, 2]},
        {"enum": [1, 2]},
        {"type": "string", "enum": []},
        {"type": "string", "oneOf": [{"const": 1}]},
    ],
)
async def test_what_the_protocol_has_no_words_for_is_asked_field_by_field(
    waiter: Waiter, field: Any
) -> None:
    waiter.serve({"type": "object", "properties": {"it": field}})
    editor = FakeEditor(answers=["Answer", None])
    assert await waiter.ask(editor) == {"action": "accept", "content": {}}
    assert [list(each["schema"]["properties"]) for each in editor.asked] == [["answer"]] * 2


async def test_a_schema_that_is_none_is_not_put_to_anybody(waiter: Waiter) -> None:
    waiter.serve({"type": "object", "properties": {"it": {"type": "string", "minLength": "x"}}})
    editor = FakeEditor(answers=[None], notices=True)
    assert await waiter.ask(editor) == {"action": "cancel"}
    assert editor.asked == []
    assert "schema" in editor.updates("notice")[0]["title"]


async def test_without_forms_each_field_is_asked_with_its_choices_and_several_can_be_chosen(
    waiter: Waiter,
) -> None:
    fields = {name: ORDER["properties"][name] for name in ("menu", "smoking")}
    waiter.serve({"type": "object", "properties": fields, "required": ["smoking"]})
    names = ["Answer", "fish", "soup", "No"]

    def choose(request: Any) -> str:
        name = names.pop(0)
        return next(o["optionId"] for o in request["options"] if o["name"] == name)

    editor = FakeEditor(permissions=[choose])
    said = {"menu": ["fish", "soup"], "smoking": False}
    assert await waiter.ask(editor) == {"action": "accept", "content": said}
    asked = [
        (each["toolCall"]["title"], [option["name"] for option in each["options"]])
        for each in editor.asked[1:]
    ]
    about = "menu (at least 1 of them, at most 2 of them, default: soup)"
    assert asked == [
        (about, ["soup", "fish", "cake", "Leave it out"]),
        (f"{about} (so far: fish)", ["soup", "cake", "That is all"]),
        ("smoking (default: No)", ["Yes", "No", "Leave it out"]),
    ]


PAGE = {"mode": "url", "url": "https://example.org/pay", "elicitationId": "E1", "message": "Pay"}


async def test_a_page_is_shown_as_one_and_its_end_is_told(waiter: Waiter) -> None:
    waiter.serve(**PAGE)
    editor = FakeEditor(answers=[{}], pages=True)
    async with editor.connected(waiter.agent):
        await editor.prompt(await editor.new_session(waiter.cwd), "Go")
        (asked,) = editor.asked
        await editor.wire.until(lambda: bool(ended(editor)))
        assert json.loads(waiter.heard[0]) == {"action": "accept"}
    assert asked["url"] == PAGE["url"]
    assert asked["message"] == 'The MCP server "s" asks: Pay'
    assert asked["toolCallId"] == editor.cards()[0]["toolCallId"]
    assert ended(editor) == [{"elicitationId": asked["elicitationId"]}]


async def test_a_form_and_a_page_of_the_official_library_are_passed_on(waiter: Waiter) -> None:
    visits = [call("mcp__s__order"), call("mcp__s__visit")]
    waiter.started(sys.executable, [FULL, "stdio"], *visits)
    said = {"dish": "soup", "plates": 2, "name": "Ann"}
    editor = FakeEditor(answers=[said, {}], pages=True)
    async with editor.connected(waiter.agent):
        await editor.prompt(await editor.new_session(waiter.cwd), "Go")
        await editor.wire.until(lambda: bool(ended(editor)))
        assert waiter.heard == [f"accept: {said}", "accept"]
    form, page = editor.asked
    assert form["schema"]["properties"]["plates"]["minimum"] == 1
    assert ended(editor) == [{"elicitationId": page["elicitationId"]}]


@pytest.mark.parametrize("apart", [True, False], ids=["of its own", "in its caller's"])
async def test_a_form_at_a_sub_agents_call_names_the_call_that_the_client_knows(
    tmp_path: Path, apart: bool
) -> None:
    heard: list[Any] = []

    async def before_tool(ctx: ToolContext) -> None:
        if ctx.call.name == "Glob":
            heard.append(await ctx.ui.fill_in(Form("Which?", SHOWN)))
            await ctx.ui.complete("no page")

    looks = [call("Agent", description="Look", prompt="Look"), call("Glob", pattern="*"), "Saw."]
    agent = Agent(llm=ScriptedModel(*looks, "Done."), hooks=[before_tool, SubagentsHook(())])
    editor = FakeEditor(answers=[FILLED], drafts={"subagents": {}} if apart else None)
    async with editor.connected(agent):
        session = await editor.new_session(tmp_path)
        await editor.prompt(session, "Go")
        (asked,) = editor.asked
        cards = {card["name"]: card["toolCallId"] for card in editor.cards(asked["sessionId"])}
    assert asked["toolCallId"] == cards["Glob" if apart else "Agent"]
    assert (asked["sessionId"] == session) is not apart
    assert heard == [Filled("accept", FILLED)]
    assert ended(editor) == []


def ended(editor: FakeEditor) -> list[Any]:
    return [m["params"] for m in editor.wire.received if m.get("method") == "elicitation/complete"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["http old", "http new", "stdio new", "stdio old"])
async def test_a_form_names_its_call_among_several_where_the_connection_says_so(
    waiter: Waiter, kind: str
) -> None:
    transport, _, era = kind.partition(" ")
    env = {**os.environ, "PYTHONWARNINGS": "ignore", "ERA": era}
    command = [sys.executable, FULL, transport]
    server: dict[str, Any] = {"command": command[0], "args": command[1:], "env": {"ERA": era}}
    process = None
    if transport == "http":
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, stdout=pipe, env=env)
        assert process.stdout is not None
        port = (await process.stdout.readline()).decode().strip()
        server = {"type": "http", "url": f"http://127.0.0.1:{port}/mcp"}
    hook = McpHook({"s": server}, connect_timeout=50.0, wait=50.0)
    calls = [call("mcp__s__order"), call("mcp__s__order")]
    agent = Agent(llm=ScriptedModel(calls, "Done."), hooks=[hook])
    said = {"dish": "soup", "plates": 2, "name": "Ann"}

    async def answer(_: Any) -> Any:
        await editor.wire.until(lambda: len(editor.asked) == 2)
        return said

    editor = FakeEditor(answers=[answer])
    try:
        async with editor.connected(agent):
            await editor.prompt(await editor.new_session(waiter.cwd), "Go")
    finally:
        if process is not None:
            process.kill()
            await process.wait()
    cards = {card["toolCallId"] for card in editor.cards()}
    named = {asked.get("toolCallId") for asked in editor.asked}
    assert named == ({None} if kind == "stdio old" else cards)
