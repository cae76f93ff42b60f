"""Other models: when they are asked, for how long, and what is shown meanwhile."""

from __future__ import annotations

import pytest
from tests.watching import Watching

from crow import Agent
from crow.core.events import TextDelta
from crow.errors import ModelError
from crow.extensions import FallbackHook, SubagentsHook
from crow.extensions.fallback import ABSENT
from crow.testing import ScriptedModel, call


def down(kind: str = "overloaded") -> ModelError:
    return ModelError(f"it is {kind}", kind=kind)


@pytest.mark.parametrize("kind", sorted(ABSENT))
async def test_the_next_model_answers_where_one_cannot_be_had(kind: str):
    model, client = ScriptedModel(down(kind), down(kind), "Hello."), Watching()
    async with Agent(model, hooks=[FallbackHook(["b", "c"])]) as agent:
        session = await agent.new_session(client=client)
        reply = await agent.run("Hi", session=session)
    assert (reply.text, [each.text for each in client.of(TextDelta)]) == ("Hello.", ["Hello."])
    assert [each["model"] for each in model.asked] == [None, "b", "c"]
    assert client.notices == [
        f"it is {kind}; {name} answers until the next prompt" for name in ("b", "c")
    ]


@pytest.mark.parametrize(
    "kind",
    ["authentication", "billing", "context_length", "invalid_request", "unconfigured", "protocol"],
)
async def test_what_another_model_would_not_mend_is_said_at_once(kind: str):
    model = ScriptedModel(down(kind))
    async with Agent(model, hooks=[FallbackHook(["b"])]) as agent:
        with pytest.raises(ModelError, match=kind):
            await agent.run("Hi")
    assert len(model.asked) == 1


async def test_a_model_that_answered_goes_on_until_the_next_prompt():
    model = ScriptedModel(down(), call("LS", path="."), "Done.", "Again.")
    async with Agent(model, hooks=[FallbackHook(["b"])]) as agent:
        session = (await agent.run("Go")).session
        await agent.run("And?", session=session)
    assert [each["model"] for each in model.asked] == [None, "b", "b", None]


async def test_the_last_error_is_told_where_nobody_answers():
    model = ScriptedModel(down(), down("network"))
    async with Agent(model, hooks=[FallbackHook(["b"])]) as agent:
        with pytest.raises(ModelError, match="it is network"):
            await agent.run("Hi")


async def test_sub_agents_are_answered_by_the_next_model_too():
    task = call("Agent", description="look", prompt="Look", subagent_type="general-purpose")
    model = ScriptedModel(task, down(), "Seen.", "Done.")
    async with Agent(model, hooks=[FallbackHook(["b"]), SubagentsHook([])]) as agent:
        await agent.run("Go")
    assert [each["model"] for each in model.asked] == [None, None, "b", None]
