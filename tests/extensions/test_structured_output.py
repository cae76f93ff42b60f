"""Structured output: what counts as an answer, and what becomes of one that does not fit."""

from __future__ import annotations

from typing import Any

import pytest

from crow import Agent
from crow.errors import ExtensionError
from crow.extensions import LimitsHook, StructuredOutputHook
from crow.keys import STRUCTURED_OUTPUT
from crow.testing import ScriptedModel, call

SCHEMA = {
    "type": "object",
    "properties": {"count": {"type": "integer"}, "names": {"type": "array"}},
    "required": ["count"],
    "additionalProperties": False,
}
TOOL = "StructuredOutput"


async def test_a_run_ends_with_the_first_answer_that_fits():
    model = ScriptedModel(call(TOOL, count="x", names=1), call(TOOL, count=3))
    async with Agent(model, hooks=[StructuredOutputHook(SCHEMA)]) as agent:
        reply = await agent.run("How many?")
    assert (reply.text, reply.stop_reason) == ('{"count": 3}', "end_turn")
    assert STRUCTURED_OUTPUT.get(reply.session) == {"count": 3}
    told = str(model.asked[1]["messages"][-1]["content"])
    assert 'count: "x" is not of type "integer"' in told
    assert 'names: 1 is not of type "array"' in told


async def test_words_are_no_answer_and_it_is_asked_for():
    model = ScriptedModel("Three.", call(TOOL, count=3))
    async with Agent(model, hooks=[StructuredOutputHook(SCHEMA)]) as agent:
        assert (await agent.run("How many?")).text == '{"count": 3}'
    assert TOOL in str(model.asked[1]["messages"][-1]["content"])


@pytest.mark.parametrize("said", ["Three.", call(TOOL, count="x")])
async def test_it_is_asked_for_so_many_times_and_no_more(said: Any):
    model = ScriptedModel(*[said] * 5)
    async with Agent(model, hooks=[LimitsHook(), StructuredOutputHook(SCHEMA)]) as agent:
        reply = await agent.run("How many?")
    assert reply.stop_reason == "max_turn_requests"
    assert "no answer fitted the schema" in reply.detail
    assert STRUCTURED_OUTPUT.get(reply.session) is None


async def test_each_run_has_an_answer_of_its_own():
    model = ScriptedModel(call(TOOL, count=1), *["No."] * 2)
    async with Agent(model, hooks=[StructuredOutputHook(SCHEMA, tries=2)]) as agent:
        session = (await agent.run("How many?")).session
        await agent.run("And now?", session=session)
    assert STRUCTURED_OUTPUT.get(session) is None


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "array"}, "needs the type object"),
        ({"type": "object", "properties": {"a": {"type": "nope"}}}, '"nope" is not valid'),
        ({"type": "object", "$ref": "http://x.invalid/y"}, "x.invalid/y"),
    ],
)
def test_what_is_no_schema_is_said_in_a_line(schema: dict[str, Any], why: str):
    with pytest.raises(ExtensionError, match=why) as error:
        Agent(ScriptedModel(), hooks=[StructuredOutputHook(schema)])
    assert "\n" not in str(error.value)
