"""The order in which the points fire: this snapshot is the lifecycle's documentation."""

from __future__ import annotations

from typing import Any

import pytest
from inline_snapshot import snapshot

from crow.core.agent import Agent
from crow.core.catalog import Command
from crow.core.errors import ModelError
from crow.core.hooks.contexts import WorktreeContext
from crow.core.verdicts import Ask, Deny
from crow.testing import ScriptedModel, call

DECISIONS = {"around_llm_request", "around_tool", "around_run"}


def listen(agent: Agent, heard: list[str], skip: tuple[str, ...] = ("on_update",)) -> None:
    """Hang one hook at every point that says that it fired."""
    for name in agent.hooks.points:
        if name in skip:
            continue
        if name in DECISIONS:

            async def around(call_next: Any, name: str = name) -> Any:
                heard.append(f"{name} >")
                try:
                    return await call_next()
                finally:
                    heard.append(f"< {name}")

            agent.hooks.register(name, around)
        else:
            agent.hooks.register(name, lambda ctx, name=name: heard.append(name))


async def test_the_points_of_a_prompt_with_one_tool_call_fire_in_this_order(echo):
    heard: list[str] = []
    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])
    listen(agent, heard)

    async with agent:
        await agent.run("hello")

    assert heard == snapshot(
        [
            "on_session_start",
            "before_run",
            "on_message",
            "around_run >",
            "before_llm_request",
            "around_llm_request >",
            "on_llm_request",
            "< around_llm_request",
            "after_llm_response",
            "on_message",
            "before_tool",
            "around_tool >",
            "< around_tool",
            "after_tool",
            "on_message",
            "after_turn",
            "before_llm_request",
            "around_llm_request >",
            "on_llm_request",
            "< around_llm_request",
            "after_llm_response",
            "on_message",
            "after_turn",
            "on_stop",
            "< around_run",
            "after_loop",
            "after_run",
            "on_session_end",
        ]
    )


async def test_the_points_of_a_denied_and_of_an_asked_call(echo, watcher):
    heard: list[str] = []
    agent = Agent(
        ScriptedModel([call("echo", text="a"), call("echo", text="b")], "done"), tools=[echo]
    )
    agent.hooks.register(
        "before_tool", lambda args: Deny("no") if args["text"] == "a" else Ask("sure?")
    )
    listen(agent, heard, ("on_update", "on_message", "on_session_start", "on_session_end"))
    watcher.answer = "allow_once"

    async with agent:
        await agent.run("hello", client=watcher)

    assert heard == snapshot(
        [
            "before_run",
            "around_run >",
            "before_llm_request",
            "around_llm_request >",
            "on_llm_request",
            "< around_llm_request",
            "after_llm_response",
            "before_tool",
            "after_tool",
            "before_tool",
            "on_permission",
            "on_notification",
            "around_tool >",
            "< around_tool",
            "after_tool",
            "after_turn",
            "before_llm_request",
            "around_llm_request >",
            "on_llm_request",
            "< around_llm_request",
            "after_llm_response",
            "after_turn",
            "on_stop",
            "< around_run",
            "after_loop",
            "after_run",
        ]
    )
    assert echo.ran == [{"text": "b"}]


async def test_a_cancelled_run_ends_with_the_same_points(echo):
    heard: list[str] = []
    agent = Agent(ScriptedModel(call("echo", text="a"), leftover="allow"), tools=[echo])
    listen(agent, heard, ("on_update", "on_message"))
    agent.hooks.register("before_tool", lambda ctx: agent.cancel(ctx.session))

    async with agent:
        reply = await agent.run("hello")

    assert reply.stop_reason == "cancelled"
    assert heard == snapshot(
        [
            "on_session_start",
            "before_run",
            "around_run >",
            "before_llm_request",
            "around_llm_request >",
            "on_llm_request",
            "< around_llm_request",
            "after_llm_response",
            "before_tool",
            "after_tool",
            "< around_run",
            "after_loop",
            "after_run",
            "on_session_end",
        ]
    )


async def test_a_failing_model_ends_the_run_with_the_same_points():
    heard: list[str] = []
    agent = Agent(ScriptedModel(ModelError("overloaded", kind="overloaded")), tools=())
    listen(agent, heard, ("on_update", "on_message"))

    async with agent:
        with pytest.raises(ModelError, match="overloaded"):
            await agent.run("hello")

    assert heard == snapshot(
        [
            "on_session_start",
            "before_run",
            "around_run >",
            "before_llm_request",
            "around_llm_request >",
            "on_llm_request",
            "< around_llm_request",
            "< around_run",
            "on_error",
            "after_loop",
            "after_run",
            "on_session_end",
        ]
    )


async def test_every_declared_event_fires(echo, watcher, all_events):
    heard: list[str] = []
    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])
    agent.hooks.register("before_tool", lambda ctx: Ask("sure?"))

    async def shout(ctx: Any) -> str:
        return ctx.args.upper()

    agent.add_command(Command("shout", "Say it loud.", shout))
    listen(agent, heard, ())
    watcher.answer = "allow_once"
    async with agent:
        session = await agent.new_session(client=watcher)
        agent.hooks.register("after_turn", lambda ctx: ctx.compact(ctx.messages[-1:], "so far"))
        agent.hooks.register("after_run", lambda ctx: ctx.change_directory("/"))
        await agent.prompt(session, "/shout hello")
        await agent.configure(session, mode="plan")
        tree = WorktreeContext(agent, session, "tree")
        await agent.hooks.on_worktree_create.fire(tree)
        await agent.hooks.on_worktree_remove.fire(tree)
    agent = Agent(ScriptedModel(ModelError("gone")), tools=())
    listen(agent, heard, ())
    async with agent:
        with pytest.raises(ModelError):
            await agent.run("hello")

    fired = {name.strip("<> ") for name in heard}
    assert fired == set(all_events)
