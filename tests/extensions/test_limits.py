"""Limits: a run ends before the request that would be one too many, and says which limit it was."""

from __future__ import annotations

from typing import Any

import pytest

from crow import Agent, tool
from crow.core.ports.llm import Completion
from crow.extensions import LimitsHook
from crow.extensions.limits import NUDGE
from crow.testing import ScriptedModel, call, text
from crow.testing.plugin import AgentOf


@tool
def step(number: int = 0) -> str:
    """Take a step."""
    return f"step {number}"


def asked(agent: Agent) -> int:
    assert isinstance(agent.llm, ScriptedModel)
    return len(agent.llm.asked)


def forever(**options: Any) -> ScriptedModel:
    return ScriptedModel(*[call("step", number=n, **options) for n in range(210)], leftover="allow")


async def test_a_run_ends_after_its_requests():
    agent = Agent(llm=forever(), hooks=[LimitsHook(turns=3)], tools=[step])
    reply = await agent.run("Go")
    assert asked(agent) == 3
    assert reply.stop_reason == "max_turn_requests"
    assert reply.detail == "stopped by limits: the limit of 3 requests in one run is reached"
    assert [message["role"] for message in reply.session.messages[-2:]] == ["assistant", "tool"]


async def test_the_usual_limit_is_two_hundred_requests():
    agent = Agent(llm=forever(), hooks=[LimitsHook()], tools=[step])
    await agent.run("Go")
    assert asked(agent) == 200


async def test_a_run_that_needs_just_its_limit_ends_by_itself(agent_of: AgentOf):
    agent = agent_of(call("step"), "Done.", hooks=[LimitsHook(turns=2)], tools=[step])
    reply = await agent.run("Go")
    assert (reply.stop_reason, reply.text) == ("end_turn", "Done.")


async def test_each_run_counts_anew_and_the_session_counts_on(agent_of: AgentOf):
    agent = agent_of("1", "2", "3", hooks=[LimitsHook(turns=1, session_turns=3)], tools=[])
    reply = await agent.run("Go")
    for expected in ("end_turn", "end_turn", "max_turn_requests"):
        reply = await agent.run("On", session=reply.session)
        assert reply.stop_reason == expected
    assert "3 requests in one session" in reply.detail
    assert reply.session.state == {"limits": {"turns": 3}}


async def test_two_sessions_do_not_share_their_limits(agent_of: AgentOf):
    agent = agent_of("1", "2", hooks=[LimitsHook(session_turns=1)], tools=[])
    assert (await agent.run("Go")).stop_reason == "end_turn"
    assert (await agent.run("Go")).stop_reason == "end_turn"


async def test_tokens_end_a_run_and_a_session():
    agent = Agent(
        llm=forever(usage={"total_tokens": 400}), hooks=[LimitsHook(tokens=1000)], tools=[step]
    )
    reply = await agent.run("Go")
    assert asked(agent) == 3
    assert reply.stop_reason == "max_tokens"
    assert reply.detail.endswith("the limit of 1000 tokens in one run is reached (1200 used)")

    agent = Agent(
        llm=forever(usage={"total_tokens": 400}),
        hooks=[LimitsHook(session_tokens=400)],
        tools=[step],
    )
    reply = await agent.run("Go")
    assert (asked(agent), reply.stop_reason) == (1, "max_tokens")


async def test_time_ends_a_run():
    agent = Agent(llm=forever(), hooks=[LimitsHook(seconds=0)], tools=[step])
    reply = await agent.run("Go")
    assert (asked(agent), reply.stop_reason) == (0, "max_turn_requests")
    assert "0 seconds" in reply.detail


async def test_without_limits_nothing_ends():
    options: Any = dict.fromkeys(("turns", "faults"))
    agent = Agent(llm=forever(), hooks=[LimitsHook(**options)], tools=[])
    with pytest.raises(AssertionError, match="210 lines"):
        await agent.run("Go")


async def test_three_replies_in_a_row_that_cannot_run_end_the_run():
    agent = Agent(
        llm=ScriptedModel(
            call("step", fault="the arguments are no JSON: {"),
            call("step", number="one"),
            call("stroll"),
            "never said",
            leftover="allow",
        ),
        hooks=[LimitsHook()],
        tools=[step],
    )
    reply = await agent.run("Go")
    assert asked(agent) == 3
    assert reply.stop_reason == "max_turn_requests"
    assert reply.detail == (
        "stopped by limits: 3 tool calls in a row could not run, the last one: "
        "there is no tool 'stroll'; there are: step"
    )


async def test_a_call_that_runs_forgives_the_faults_before(agent_of: AgentOf):
    fault = call("step", fault="no JSON")
    script = [fault, fault, call("step"), fault, [fault, call("step")], fault, fault, "Done."]
    reply = await agent_of(*script, hooks=[LimitsHook()], tools=[step]).run("Go")
    assert reply.stop_reason == "end_turn"


async def test_a_tool_that_fails_is_no_fault(agent_of: AgentOf):
    @tool
    def fail() -> str:
        """Fail."""
        raise OSError("no")

    script = [call("fail")] * 4
    reply = await agent_of(*script, "Done.", hooks=[LimitsHook()], tools=[fail]).run("Go")
    assert reply.stop_reason == "end_turn"


async def test_an_empty_answer_is_asked_about_once(agent_of: AgentOf):
    agent = agent_of("", "Here it is.", hooks=[LimitsHook()], tools=[])
    reply = await agent.run("Go")
    assert reply.text == "Here it is."
    assert isinstance(agent.llm, ScriptedModel)
    assert NUDGE in str(agent.llm.asked[1]["messages"][-1].get("content"))
    assert all(message.get("content") for message in reply.session.messages)


async def test_a_second_empty_answer_ends_the_run(agent_of: AgentOf):
    reply = await agent_of("", text("  \n"), hooks=[LimitsHook()], tools=[]).run("Go")
    assert (reply.text.strip(), reply.stop_reason) == ("", "end_turn")


@pytest.mark.parametrize(
    ("line", "options", "expected"),
    [
        (Completion(finish="content_filter"), {}, "refusal"),
        (Completion(finish="length"), {}, "max_tokens"),
        ("", {"nudge": False}, "end_turn"),
    ],
)
async def test_there_is_nothing_to_ask_where_it_was_refused_cut_off_or_not_wanted(
    agent_of: AgentOf, line: Any, options: dict[str, Any], expected: str
):
    reply = await agent_of(line, hooks=[LimitsHook(**options)], tools=[]).run("Go")
    assert reply.stop_reason == expected
