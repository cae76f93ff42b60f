"""What the model is told of a tool whose wrap gave it up, or whose run failed behind it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from crow.core.agent import Agent
from crow.core.events import ToolEnded
from crow.testing import ScriptedModel, call


async def limits_its_time(ctx: Any, call_next: Any) -> Any:
    async with asyncio.timeout(0.01):
        return await call_next()


async def cancels_it(ctx: Any, call_next: Any) -> Any:
    task = asyncio.create_task(call_next())
    await asyncio.sleep(0.01)
    task.cancel()
    return await task


async def raises_behind_it(ctx: Any, call_next: Any) -> Any:
    await call_next()
    raise ValueError("no")


async def raises_before_it(ctx: Any, call_next: Any) -> Any:
    raise ValueError("no")


async def forgets_it(ctx: Any, call_next: Any) -> Any:
    return None


@pytest.mark.parametrize(
    ("wrap", "told", "waits"),
    [
        (limits_its_time, "the tool had begun, and was cut off", True),
        (cancels_it, "the tool had begun, and was cut off", True),
        (raises_behind_it, "the tool itself had run", False),
        (raises_before_it, "the tool itself did not run", False),
        (forgets_it, "the tool itself did not run", False),
    ],
)
async def test_the_model_is_told_how_far_the_tool_came(make_echo, whole, wrap, told, waits):
    echo = make_echo("echo", wait=asyncio.Event() if waits else None)
    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])
    agent.hooks.register("around_tool", wrap)
    reply = await agent.run("go")
    said = str(reply.session.messages[2]["content"])
    assert told in said
    assert wrap.__name__ in said
    assert not said.startswith("not run")
    whole(reply.session.messages)


async def test_a_hook_that_answered_in_its_place_is_no_tool_that_had_run(echo):
    async def answers(ctx: Any, call_next: Any) -> str:
        return "instead"

    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])
    agent.hooks.register("around_tool", raises_behind_it)
    agent.hooks.register("around_tool", answers)
    reply = await agent.run("go")
    assert "the tool itself did not run" in str(reply.session.messages[2]["content"])


async def test_a_wrap_that_stops_the_run_before_its_tool_leaves_it_not_run(echo):
    async def stops(ctx: Any, call_next: Any) -> Any:
        ctx.stop("enough")
        return await call_next()

    agent = Agent(ScriptedModel(call("echo", text="a"), "done", leftover="allow"), tools=[echo])
    agent.hooks.register("around_tool", stops)
    reply = await agent.run("go")
    assert reply.session.messages[2]["content"] == "not run: the run was stopped before"
    assert not echo.ran


async def test_a_result_is_not_lost_where_the_client_fails_behind_the_tool(echo, watcher, whole):
    update = watcher.update

    async def fails_at_the_end(session_id: str, event: Any) -> None:
        await update(session_id, event)
        if isinstance(event, ToolEnded):
            raise ConnectionError("the client is gone")

    watcher.update = fails_at_the_end
    agent = Agent(ScriptedModel(call("echo", text="a"), "done", leftover="allow"), tools=[echo])
    session = await agent.new_session(client=watcher)
    reply = await agent.prompt(session, "go")
    assert reply.stop_reason == "error"
    assert session.messages[2]["content"] == "echo a"
    whole(session.messages)
