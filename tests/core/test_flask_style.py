"""Extensions that bring themselves, as those of Flask do: whole, however they were begun."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from crow import Agent, Answer, Command, Deny, tool
from crow.testing import ScriptedModel, call


class Weather:
    """What a user of Flask writes; what ``init_agent`` does to be known is in a subclass."""

    def __init__(self, agent: Agent | None = None) -> None:
        self.seen: list[str] = []
        if agent is not None:
            self.init_agent(agent)

    def init_agent(self, agent: Agent) -> None:
        raise NotImplementedError

    async def lifespan(self, agent: Agent) -> AsyncGenerator[None]:
        self.seen.append("opened")
        yield
        self.seen.append("closed")

    def before_run(self, prompt: str) -> None:
        self.seen.append(prompt)

    def before_tool(self) -> Deny:
        return Deny("it rains")

    def forecast(self) -> str:
        """Say how the weather is."""
        return "rain"

    def show(self) -> Answer:
        return Answer("rain")


class Referenced(Weather):
    def init_agent(self, agent: Agent) -> None:
        agent.extensions["weather"] = self


class Registered(Weather):
    name = "weather"

    def init_agent(self, agent: Agent) -> None:
        agent.hooks.register("before_run", self.before_run, timeout=3)


class WithATool(Weather):
    name = "weather"

    def init_agent(self, agent: Agent) -> None:
        agent.add_tool(tool(self.forecast))


class WithACommand(Weather):
    name = "weather"

    def init_agent(self, agent: Agent) -> None:
        agent.add_command(Command("weather", "Show the weather", lambda ctx: self.show()))
        agent.add_command(Command("forecast", "Show the weather", self.told))

    def told(self, ctx: object) -> Answer:
        return self.show()


class Used(Weather):
    name = "weather"

    def init_agent(self, agent: Agent) -> None:
        agent.use(self)


def by_itself(cls: type[Weather], agent: Agent) -> Weather:
    return cls(agent)


def by_hand(cls: type[Weather], agent: Agent) -> Weather:
    weather = cls()
    weather.init_agent(agent)
    return weather


def used(cls: type[Weather], agent: Agent) -> Weather:
    return agent.use(cls)


@pytest.mark.parametrize("cls", [Referenced, Registered, WithATool, WithACommand, Used])
@pytest.mark.parametrize("begin", [by_itself, by_hand, used])
async def test_all_of_it_hangs_once_and_goes_again(
    cls: type[Weather], begin: Callable[[type[Weather], Agent], Weather]
):
    model = ScriptedModel(call("Read", file_path="a"), "Sorry.", "Hello.")
    async with Agent(model) as agent:
        before = [len(each) for each in agent.catalogs]
        weather = begin(cls, agent)
        reply = await agent.run("Hi")
        assert weather.seen == ["opened", "Hi"]
        assert reply.session.messages[2]["content"] == "it rains"
        assert agent.extensions == {"weather": weather}
        timeouts = {hook.timeout for hook in agent.hooks.before_run.entries}
        assert timeouts == {3 if cls is Registered else 60}
        assert {hook.owner.name for hook in agent.hooks} == {"weather"}
        agent.remove("weather")
        await agent.stop("weather")
        await agent.run("And now?")
        assert weather.seen == ["opened", "Hi", "closed"]
        assert list(agent.hooks) == []
        if cls is not WithACommand:  # whose lambda is nobody's
            assert [len(each) for each in agent.catalogs] == before


async def test_what_comes_while_a_session_is_open_counts_from_the_next_prompt():
    async with Agent(ScriptedModel("Hello.", "Hello.")) as agent:
        session = await agent.new_session()
        await agent.run("Hi", session=session)
        weather = Referenced(agent)
        await agent.run("Again", session=session)
        assert weather.seen == ["opened", "Again"]


async def test_an_object_that_is_no_extension_hangs_with_what_was_registered_alone():
    class Plain:
        def before_run(self) -> str:
            return "from before_run"

        def before_tool(self) -> Deny:
            return Deny("never asked for")

    plain: Any = Plain()
    async with Agent(ScriptedModel("Hello.")) as agent:
        agent.hooks.register("before_run", plain.before_run)
        await agent.run("Hi")
        assert [hook.name for hook in agent.hooks] == ["before_run"]
        assert agent.extensions == {}
