"""Switching the model of a session also switches the endpoint and the window."""

from __future__ import annotations

import pytest

from crow.core.agent import Agent
from crow.core.errors import ModelError
from crow.core.ports.llm import LLM
from crow.llm.routing import Routed
from crow.testing import ScriptedModel


def routed(first: ScriptedModel, **models: ScriptedModel) -> Routed:
    def find(name: str | None) -> LLM:
        if name is None:
            return first
        if name not in models:
            raise ModelError(f"there is no model {name!r}", kind="unconfigured")
        return models[name]

    return Routed(find)


async def test_a_session_that_switches_its_model_is_answered_by_that_model_from_then_on():
    first = ScriptedModel("from the first", "first again", model="first", context_window=100)
    small = ScriptedModel("from the small one", model="small", context_window=10)
    agent = Agent(routed(first, small=small), tools=())
    session = await agent.new_session()

    assert (await agent.prompt(session, "a")).text == "from the first"
    assert await agent.configure(session, model="small") is None
    assert (await agent.prompt(session, "b")).text == "from the small one"
    assert agent.context_window(session) == 10
    assert await agent.configure(session, model="first") is None
    assert (await agent.prompt(session, "c")).text == "first again"
    assert agent.context_window(session) == 100
    assert [asked["model"] for asked in (*first.asked, *small.asked)] == [None] * 3


class Log(list[str]):
    """What is done beside a model, as it is begun and left."""

    def begin(self) -> None:
        self.append("begin")

    def pause(self) -> None:
        self.append("pause")


async def test_what_is_done_beside_a_model_is_left_when_the_model_begins_to_answer():
    log = Log()
    model = ScriptedModel("One.", "Two.")
    agent = Agent(Routed(lambda _: model, beside=log), tools=())
    agent.hooks.register("MessageDisplay", lambda: log.append("text"))
    for _ in range(2):
        await agent.run("a")
    assert log == ["begin", "pause", "text"] * 2


async def test_a_model_that_does_not_exist_is_refused_when_it_is_chosen_and_nothing_changes():
    agent = Agent(routed(ScriptedModel("hi")), tools=())
    session = await agent.new_session()

    assert await agent.configure(session, model="other") == "there is no model 'other'"
    assert session.model is None
    assert (await agent.prompt(session, "a")).text == "hi"


async def test_a_hook_may_send_one_request_to_another_model():
    small = ScriptedModel("small talk", model="small")
    agent = Agent(routed(ScriptedModel(), small=small), tools=())

    def before_llm_request(ctx):
        ctx.model = "small"

    agent.use(before_llm_request)
    assert (await agent.run("a")).text == "small talk"


async def test_closing_closes_every_model_that_was_made():
    closed: list[str] = []

    class Closing(ScriptedModel):
        async def aclose(self) -> None:
            closed.append(self.model)

    models = routed(Closing(model="a"), b=Closing(model="b"), c=ScriptedModel(model="c"))
    assert models.model == "a"
    for name in ("b", "b", "c", "a"):
        assert models.named(name).model == name
    await models.aclose()
    assert closed == ["a", "b"]
    with pytest.raises(ModelError):
        models.named("d")
