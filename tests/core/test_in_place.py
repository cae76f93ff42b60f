"""An extension in the place of another: where that stood, or nothing has happened."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from crow import Agent, tool
from crow.core.catalog import Command, PromptSection
from crow.core.errors import ExtensionError
from crow.testing import ScriptedModel


class Part:
    """Hangs a bit of everything, and says what becomes of it."""

    def __init__(self, name: str, said: list[str], fails: str = "") -> None:
        self.name, self.said, self.fails = name, said, fails

    def init_agent(self, agent: Any) -> None:
        label = self.name

        @tool(name=f"tool_{label[0]}")
        def thing() -> str:
            """Do it."""
            return label

        async def run(ctx: Any) -> None: ...

        agent.add_tool(thing)
        agent.add_command(Command(f"command_{label[0]}", "Do it", run))
        agent.add_section(PromptSection(f"section_{label[0]}", f"I am {label}."))
        agent.hooks.before_run(lambda: self.said.append(f"{label} begins"))
        if self.fails == "init":
            raise ValueError("not today")

    def after_run(self) -> None:
        """Name itself."""
        self.said.append(f"{self.name} ends")

    async def lifespan(self, agent: Any) -> AsyncIterator[None]:
        """Be alive."""
        if self.fails == "lifespan":
            raise ValueError("not today")
        self.said.append(f"{self.name} lives")
        yield
        self.said.append(f"{self.name} dies")


def state(agent: Agent) -> tuple[list[str], ...]:
    """Everything that hangs there, in its order."""
    owners = [owner.name for owner in agent.hooks.owners]
    hooks = [hook.owner.name for point in ("before_run", "after_run")
             for hook in agent.hooks[point].entries]  # fmt: skip
    return owners, hooks, [*agent.tools], [*agent.commands], [*agent.sections], [*agent.extensions]


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
async def agent(said: list[str]) -> AsyncIterator[Agent]:
    agent = Agent(ScriptedModel(leftover="allow"), tools=())
    for name in ("a1", "b1", "c1"):
        agent.use(Part(name, said), name=name[0])
    await agent.start()
    yield agent
    await agent.close()


async def test_it_stands_where_the_other_stood(agent: Agent, said: list[str]):
    before = state(agent)
    said.clear()
    async with agent.scope.in_place_of(["b"]):
        agent.use(Part("b2", said), name="b")
    assert state(agent) == before
    assert said == ["b2 lives", "b1 dies"]
    said.clear()
    session = await agent.new_session()
    await agent.prompt(session, "go")
    await agent.close_session(session)
    assert [line for line in said if line[0] == "b"] == ["b2 begins", "b2 ends"]


async def test_what_comes_later_still_comes_behind(agent: Agent, said: list[str]):
    async with agent.scope.in_place_of(["b"]):
        agent.use(Part("b2", said), name="b")
    agent.use(Part("d1", said), name="d")
    async with agent.scope.in_place_of(["a"]):
        agent.use(Part("a2", said), name="a")
    assert [owner.name for owner in agent.hooks.owners] == ["a", "b", "c", "d"]
    assert [*agent.tools] == ["tool_a", "tool_b", "tool_c", "tool_d"]
    assert agent.sections["section_a"].text == "I am a2."


@pytest.mark.parametrize("fails", ["init", "lifespan", "with"])
async def test_what_fails_leaves_everything_as_it_was(agent: Agent, said: list[str], fails: str):
    before, old = state(agent), agent.extensions["b"]
    said.clear()

    async def put() -> None:
        async with agent.scope.in_place_of(["b"]):
            agent.use(Part("b2", said, fails), name="b")
            if fails == "with":
                raise ExtensionError("the second thing of the file is broken")

    with pytest.raises(ExtensionError):
        await put()
    assert state(agent) == before
    assert agent.extensions["b"] is old
    assert said == []
    session = await agent.new_session()
    await agent.prompt(session, "go")
    await agent.close_session(session)
    assert [line for line in said if line[0] == "b"] == ["b1 begins", "b1 ends"]
    await agent.close()
    assert said[-3:] == ["c1 dies", "b1 dies", "a1 dies"]


async def test_one_becomes_several_and_several_none(agent: Agent, said: list[str]):
    async with agent.scope.in_place_of(["b"]):
        agent.use(Part("b2", said), name="b")
        agent.use(Part("e2", said), name="e")
    assert [owner.name for owner in agent.hooks.owners] == ["a", "b", "e", "c"]
    async with agent.scope.in_place_of(["b", "e"]):
        pass
    assert [owner.name for owner in agent.hooks.owners] == ["a", "c"]
    assert [*agent.tools] == ["tool_a", "tool_c"]
    assert said[-2:] == ["b2 dies", "e2 dies"]
