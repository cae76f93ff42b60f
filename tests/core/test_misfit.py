"""Hooks that fail at arguments which no tool takes: the model hears of the arguments."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from crow import Agent, Context, Deny, Stop, ToolContext
from crow.testing import ScriptedModel, call
from crow.testing.plugin import AgentOf


class Reads:
    """What everybody writes."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def before_tool(self, ctx: ToolContext) -> None:
        assert ctx.args["command"]

    def after_tool(self, ctx: ToolContext) -> None:
        assert ctx.args["command"]

    def on_error(self, ctx: Context) -> None:
        self.errors.append(str(ctx.error))  # type: ignore[attr-defined]


@pytest.mark.parametrize("wrong", [call("Bash"), call("NoSuchTool", of="no kind")])
async def test_who_fails_at_arguments_that_do_not_fit_is_not_blamed(
    agent_of: AgentOf, wrong: object, caplog: pytest.LogCaptureFixture
) -> None:
    reads = Reads()
    script = [wrong, wrong, wrong, wrong, call("Bash", command="true"), "Done."]
    agent = agent_of(*script, hooks=[reads])  # type: ignore[arg-type]
    with caplog.at_level(logging.WARNING, "crow"):
        reply = await agent.run("Go")
    results = [
        str(each.get("content")) for each in reply.session.messages if each["role"] == "tool"
    ]
    assert all("command" in each or "no tool" in each for each in results[:4])
    assert (reads.errors, caplog.messages) == ([], [])
    failed = [each for each in reply.session.trace if each.error]
    assert {each.event for each in failed} <= {"before_tool", "after_tool"}
    assert failed


async def test_who_fails_at_arguments_that_fit_is(
    agent_of: AgentOf, caplog: pytest.LogCaptureFixture
) -> None:
    def before_tool(ctx: ToolContext) -> None:
        raise KeyError("comand")

    agent = agent_of(call("Bash", command="true"), "Done.", hooks=[before_tool])
    with caplog.at_level(logging.WARNING, "crow"):
        await agent.run("Go")
    assert "KeyError: 'comand'" in caplog.text


async def test_arguments_that_a_hook_mends_are_judged(agent_of: AgentOf) -> None:
    def before_tool(ctx: ToolContext) -> None:
        ctx.args = {"command": ctx.args["cmd"]}

    agent = agent_of(call("Bash", cmd="echo mended"), "Done.", hooks=[before_tool])
    reply = await agent.run("Go")
    assert "mended" in str(reply.session.messages[2]["content"])


@pytest.mark.parametrize("verdict", [Deny("not here"), Stop("not here")])
async def test_who_refuses_a_call_whose_arguments_do_not_fit_is_heard(
    agent_of: AgentOf, verdict: Deny | Stop
) -> None:
    def before_tool(ctx: ToolContext) -> Deny | Stop:
        return verdict

    outcomes: list[object] = []

    def after_tool(outcome: str) -> None:
        outcomes.append(outcome)

    script = [call("Bash")] if isinstance(verdict, Stop) else [call("Bash"), "Done."]
    agent = agent_of(*script, hooks=[Reads(), before_tool, after_tool])
    reply = await agent.run("Go")
    assert reply.session.messages[2].get("content") == "not here"
    assert outcomes == ["denied"]


async def test_a_hook_that_makes_arguments_which_do_not_fit_is_named_to_the_model(
    echo: Any, caplog: pytest.LogCaptureFixture
):
    def shortens(ctx: Any) -> None:
        ctx.args = {"text": 5}

    model = ScriptedModel(call("echo", text="a"), "done")
    async with Agent(model, tools=[echo]) as agent:
        agent.hooks.register("before_tool", shortens)
        reply = await agent.run("go")
    told = str(reply.session.messages[2]["content"])
    assert told.startswith("the hook shortens has changed the arguments, and they do not fit: ")
    assert "shortens made arguments that echo does not take" in caplog.text
