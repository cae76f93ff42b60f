"""The answer is JSON of a schema, or the run has failed."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from crow import Agent, ExtensionError
from crow.core.session import Reply
from crow.extensions.structured_output import StructuredOutputHook
from crow.keys import STRUCTURED_OUTPUT
from crow.testing import ScriptedModel, call

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name"],
    "additionalProperties": False,
}


async def answered(schema: dict[str, Any], *script: Any) -> tuple[Reply, Any, ScriptedModel]:
    model = ScriptedModel(*script)
    async with Agent(model, hooks=[StructuredOutputHook(schema)], tools=[]) as agent:
        session = await agent.new_session()
        reply = await agent.prompt(session, "Who?")
        return reply, STRUCTURED_OUTPUT.get(session), model


async def test_the_answer_is_what_the_tool_was_given_and_ends_the_run() -> None:
    reply, answer, model = await answered(SCHEMA, call("StructuredOutput", name="Ada", age=36))
    assert (reply.stop_reason, answer) == ("end_turn", ({"name": "Ada", "age": 36},))
    assert json.loads(reply.text) == {"name": "Ada", "age": 36}
    assert len(model.asked) == 1


async def test_what_does_not_fit_is_told_to_the_model_and_text_is_no_answer() -> None:
    script = ("Ada.", call("StructuredOutput", age="old"), call("StructuredOutput", name="Ada"))
    _, answer, model = await answered(SCHEMA, *script)
    assert answer == ({"name": "Ada"},)
    assert "Call StructuredOutput now" in str(model.asked[1]["messages"])
    assert "name" in str(model.asked[2]["messages"][-1]["content"])


async def test_an_answer_that_is_no_object_is_taken_as_value() -> None:
    schema = {
        "type": "array",
        "items": {"$ref": "#/$defs/word"},
        "$defs": {"word": {"type": "string"}},
    }
    _, answer, _ = await answered(schema, call("StructuredOutput", value=["a", "b"]))
    assert answer == (["a", "b"],)


async def test_a_model_that_never_gives_one_has_failed() -> None:
    reply, answer, _ = await answered(SCHEMA, "a", "b", "c", "d")
    assert (reply.stop_reason, answer) == ("error", None)
    assert "no answer of the schema" in reply.detail


async def test_the_next_prompt_has_an_answer_of_its_own() -> None:
    model = ScriptedModel(
        call("StructuredOutput", name="Ada"), call("StructuredOutput", name="Bob")
    )
    async with Agent(model, hooks=[StructuredOutputHook(SCHEMA)], tools=[]) as agent:
        session = await agent.new_session()
        for name in ("Ada", "Bob"):
            await agent.prompt(session, "Who?")
            assert STRUCTURED_OUTPUT.get(session) == ({"name": name},)


def test_what_is_no_schema_is_said_before_anything_is_asked() -> None:
    with pytest.raises(ExtensionError, match="this is no JSON schema"):
        StructuredOutputHook({"type": "nothing"})
    for given, said in [
        ("{", "this is no JSON"),
        ('{"type": 3}', "no JSON schema"),
        ("[]", "needs an object"),
        ("@no", "No such file"),
    ]:
        command = [sys.executable, "-m", "crow", "run", "--json-schema", given, "hi"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
