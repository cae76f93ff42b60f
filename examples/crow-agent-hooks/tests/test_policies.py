"""What policies decide, as somebody sees it who uses Crow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent_hooks import InterceptionEmitter, Verdict
from crow_agent_hooks import AgentHooks

from crow import Agent, NullClient, tool
from crow.events import Event, TextDelta
from crow.extensions import SubagentsHook
from crow.testing import ScriptedModel, call


class Policy:
    """Decides by a function; keeps what it was told of."""

    def __init__(self, decide: Callable[[str, dict[str, Any]], Any] = lambda point, _: None):
        self.decide = decide
        self.told: list[str] = []

    def intercept(self, context: dict[str, Any]) -> Any:
        point = context["interception_point"]
        self.told.append(point)
        return self.decide(point, context) or Verdict.allow()


class Onlooker(NullClient):
    shown = ""

    async def update(self, session_id: str, event: Event) -> None:
        if isinstance(event, TextDelta):
            self.shown += event.text


def hooks(*policies: Policy, **options: Any) -> AgentHooks:
    emitter = InterceptionEmitter()
    for policy in policies:
        emitter.register(policy)
    return AgentHooks(emitter=emitter, **options)


async def test_nothing_runs_without_a_policy():
    async with Agent(ScriptedModel(leftover="allow"), hooks=[AgentHooks()], tools=[]) as agent:
        reply = await agent.prompt(await agent.new_session(), "Hello")
    assert "host_error:no_interceptor" in reply.detail


def hide(point: str, context: dict[str, Any]) -> Any:
    """Change a secret in an answer before anybody sees it."""
    said = (context.get("response") or {}).get("content") or ""
    if "secret" not in said:
        return None
    path = "$target.content"
    return {
        "decision": "transform",
        "transform": {"path": path, "value": said.replace("secret", "***")},
    }


async def test_what_a_policy_changes_is_shown_and_stored():
    client = Onlooker()
    model = ScriptedModel(["One ", "secret", " thing, ", "and another."])
    async with Agent(model, hooks=[hooks(Policy(hide), segment=8)], tools=[]) as agent:
        session = await agent.new_session(client=client)
        reply = await agent.prompt(session, "go")
    assert reply.text == client.shown == "One *** thing, and another."
    assert session.messages[1]["content"] == reply.text


async def test_an_answer_that_is_denied_is_neither_shown_nor_stored():
    def decide(point: str, context: dict[str, Any]) -> Any:
        return Verdict.deny(reason="no output today") if point == "output" else None

    client = Onlooker()
    async with Agent(
        ScriptedModel(["Hel", "lo"]), hooks=[hooks(Policy(decide))], tools=[]
    ) as agent:
        session = await agent.new_session(client=client)
        reply = await agent.prompt(session, "go")
    assert (reply.stop_reason, client.shown) == ("hook_stopped", "")
    assert reply.detail.endswith("no output today")
    assert len(session.messages) == 1


async def test_what_becomes_of_a_tool_is_decided_before_and_behind_it():
    ran: list[str] = []

    @tool
    def look(place: str) -> str:
        """Look somewhere."""
        ran.append(place)
        return f"{place}: a secret"

    def decide(point: str, context: dict[str, Any]) -> Any:
        if point == "pre_tool_call":
            return {"decision": "transform", "transform": {"path": "$target.place", "value": "b"}}
        denied = Verdict.deny(reason="tainted")
        return denied if point == "post_tool_call" else None

    model = ScriptedModel(call("look", place="a"), "Done.")
    async with Agent(model, hooks=[hooks(Policy(decide))], tools=[look]) as agent:
        session = await agent.new_session()
        await agent.prompt(session, "go")
    assert ran == ["b"]
    assert session.messages[2]["content"] == "tainted"
    assert "secret" not in str(model.asked)


async def test_the_moments_of_a_session_come_in_order_and_prompts_share_it():
    policy = Policy()
    async with Agent(ScriptedModel("One.", "Two."), hooks=[hooks(policy)], tools=[]) as agent:
        session = await agent.new_session()
        for prompt in ("one", "two"):
            await agent.prompt(session, prompt)
    turn = ["input", "pre_model_call", "post_model_call", "output"]
    assert policy.told == ["agent_startup", *turn, *turn, "agent_shutdown"]


async def test_what_a_subagent_asks_and_does_is_told_as_a_part_of_its_callers_session():
    @tool
    def look(place: str) -> str:
        """Look somewhere."""
        return place

    policy = Policy()
    task = call("Agent", description="Look", prompt="Look around")
    model = ScriptedModel(task, call("look", place="here"), "Nothing there.", "Done.")
    async with Agent(model, hooks=[hooks(policy), SubagentsHook()], tools=[look]) as agent:
        await agent.run("go")
    asked = ["pre_model_call", "post_model_call"]
    within = ["input", *asked, "pre_tool_call", "post_tool_call", *asked, "output"]
    whole = ["pre_tool_call", *within, "post_tool_call"]
    assert policy.told[2:-1] == [*asked, *whole, *asked, "output"]
