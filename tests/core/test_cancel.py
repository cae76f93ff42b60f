"""Cancelling: from anywhere, within a second, with nothing left unanswered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from crow.core.agent import Agent
from crow.core.events import TextDelta, ToolEnded
from crow.core.hooks.contexts import ToolContext
from crow.core.tools import Call
from crow.core.verdicts import Ask
from crow.testing import ScriptedModel, call, delay


class Slow:
    """A model that says something and then nothing more."""

    model = "slow"
    context_window = None

    def __init__(self) -> None:
        self.said = asyncio.Event()
        self.closed = asyncio.Event()

    async def stream(self, request: Any) -> AsyncGenerator[Any, None]:
        try:
            yield TextDelta("half a sen")
            self.said.set()
            await asyncio.Event().wait()
        finally:
            self.closed.set()


async def test_cancel_in_the_middle_of_a_text_keeps_what_was_said(whole):
    model = Slow()
    agent = Agent(model, tools=())
    session = await agent.new_session()
    running = asyncio.create_task(agent.prompt(session, "go"))
    await model.said.wait()
    agent.cancel(session)
    agent.cancel(session)
    reply = await running

    assert (reply.stop_reason, reply.text) == ("cancelled", "half a sen")
    assert model.closed.is_set()
    assert [m["content"] for m in session.messages] == ["go", "half a sen"]
    whole(session.messages)


async def test_cancel_while_tools_run_answers_every_call_in_order(echo, make_echo, watcher, whole):
    slow = make_echo("slow", wait=asyncio.Event())
    script = [call("echo", text="a"), call("slow", text="b"), call("nope"), call("slow", text="c")]
    agent = Agent(ScriptedModel(script, "next"), tools=[echo, slow])
    ended: list[tuple[str, str]] = []
    agent.hooks.register("after_tool", lambda call, outcome: ended.append((call.id, outcome)))
    session = await agent.new_session(client=watcher)
    running = asyncio.create_task(agent.prompt(session, "go"))
    await slow.started.wait()
    agent.cancel(session)
    reply = await running

    assert reply.stop_reason == "cancelled"
    whole(session.messages)
    outcomes = dict(ended)
    assert len(ended) == len(outcomes) == 4
    ids = [c["id"] for c in session.messages[1]["tool_calls"]]
    assert [outcomes[i] for i in ids] == ["ok", "cancelled", "error", "cancelled"]
    assert [m["tool_call_id"] for m in session.messages[2:]] == ids
    assert len([e for e in watcher.events if isinstance(e, ToolEnded)]) == 4
    assert (await agent.prompt(session, "again")).text == "next"


async def test_cancel_while_the_user_is_asked(echo, watcher, whole):
    asked = asyncio.Event()

    async def never(session_id: str, request: Any) -> None:
        asked.set()
        await asyncio.Event().wait()

    watcher.permission = never
    agent = Agent(
        ScriptedModel([call("echo", text="a"), call("echo", text="b")], "next"), tools=[echo]
    )
    agent.hooks.register("before_tool", lambda ctx: Ask("sure?"))
    session = await agent.new_session(client=watcher)
    running = asyncio.create_task(agent.prompt(session, "go"))
    await asked.wait()
    agent.cancel(session)
    reply = await running

    assert reply.stop_reason == "cancelled"
    assert not echo.ran
    whole(session.messages)


async def swallow(ctx: Any) -> None:
    """Wait for ever, and take no notice of the first cancellation."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await asyncio.Event().wait()


@pytest.mark.parametrize(
    "point",
    [
        "before_run",
        "before_llm_request",
        "around_llm_request",
        "after_llm_response",
        "before_tool",
        "around_tool",
        "after_tool",
        "after_turn",
        "on_stop",
        "around_run",
        "on_message",
        "on_update",
    ],
)
async def test_cancel_passes_through_any_hook(echo, point, whole):
    reached = asyncio.Event()
    agent = Agent(
        ScriptedModel(call("echo", text="a"), "done", "next", leftover="allow"), tools=[echo]
    )

    async def hook(ctx: Any) -> None:
        reached.set()
        await swallow(ctx)

    async def wrap(ctx: Any, call_next: Any) -> None:
        reached.set()
        await swallow(ctx)

    dispose = agent.hooks.register(point, wrap if point.startswith("around") else hook)
    session = await agent.new_session()
    running = asyncio.create_task(agent.prompt(session, "go"))
    await reached.wait()
    agent.cancel(session)
    async with asyncio.timeout(30):
        reply = await running

    assert reply.stop_reason == "cancelled"
    whole(session.messages)
    dispose()
    async with asyncio.timeout(30):
        assert (await agent.prompt(session, "again")).stop_reason == "end_turn"
    whole(session.messages)


async def test_a_hook_that_swallows_the_cancellation_and_returns_cannot_go_on(echo):
    agent = Agent(ScriptedModel(call("echo", text="a"), leftover="allow"), tools=[echo])

    async def hook(ctx: ToolContext) -> None:
        agent.cancel(ctx.session)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return

    agent.hooks.register("before_tool", hook)
    reply = await agent.run("go")

    assert reply.stop_reason == "cancelled"
    assert not echo.ran


async def test_a_prompt_that_waits_for_its_turn_can_be_cancelled(make_echo):
    slow = make_echo(wait=asyncio.Event())
    agent = Agent(ScriptedModel(call("echo", text="a"), "next"), tools=[slow])
    session = await agent.new_session()
    first = asyncio.create_task(agent.prompt(session, "one"))
    second = asyncio.create_task(agent.prompt(session, "two"))
    await slow.started.wait()
    agent.cancel(session)

    assert [(await first).stop_reason, (await second).stop_reason] == ["cancelled", "cancelled"]
    assert session.latest_prompt() == "one"
    assert (await agent.prompt(session, "three")).text == "next"


async def test_cancel_right_after_the_prompt_is_not_lost():
    agent = Agent(ScriptedModel(leftover="allow"), tools=())
    session = await agent.new_session()
    running = asyncio.create_task(agent.prompt(session, "go"))
    await asyncio.sleep(0)
    agent.cancel(session)

    assert (await running).stop_reason == "cancelled"


async def test_cancelling_the_caller_ends_the_run_and_fires_after_run(make_echo, whole):
    slow = make_echo(wait=asyncio.Event())
    ended: list[str] = []
    agent = Agent(ScriptedModel(call("echo", text="a")), tools=[slow])
    agent.hooks.register("after_run", lambda stop_reason: ended.append(stop_reason))
    session = await agent.new_session()
    running = asyncio.create_task(agent.prompt(session, "go"))
    await slow.started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.wait(session.tasks)

    assert ended == ["cancelled"]
    whole(session.messages)


async def test_cancelling_an_idle_session_does_nothing():
    agent = Agent(ScriptedModel("one"), tools=())
    session = await agent.new_session()
    agent.cancel(session)
    assert (await agent.prompt(session, "go")).text == "one"
    agent.cancel(session)


@pytest.mark.parametrize(
    "fail, told",
    [
        (asyncio.CancelledError(), "the tool was cancelled by its own code"),
        (SystemExit(3), "the tool wanted to end the program: exit 3"),
        (pytest.fail.Exception("no"), "Failed: no"),
    ],
)
async def test_a_tool_that_cancels_or_exits_only_fails(make_echo, fail, told):
    odd = make_echo(fail=fail)
    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[odd])
    reply = await agent.run("go")

    assert reply.text == "done"
    assert reply.session.messages[2]["content"] == f"RuntimeError: {told}"


async def test_closing_a_session_ends_what_runs_in_it():
    agent = Agent(ScriptedModel(delay(10), leftover="allow"), tools=())
    session = await agent.new_session()
    running = asyncio.create_task(agent.prompt(session, "go"))
    await asyncio.sleep(0.01)
    await agent.close()

    assert (await running).stop_reason == "cancelled"
    assert not agent.sessions


@pytest.mark.parametrize("inside", [True, False], ids=["by the hook", "by somebody else"])
async def test_a_cancellation_while_a_call_is_settled_still_ends_its_card(
    echo, watcher, whole, inside
):
    heard: list[str] = []
    reached, forever = asyncio.Event(), asyncio.Event()
    agent = Agent(ScriptedModel(call("echo", text="a"), "next", leftover="allow"), tools=[echo])

    async def after_tool(ctx: Any) -> None:
        heard.append(ctx.outcome)
        if inside:
            ctx.agent.cancel(ctx.session)
        reached.set()
        await forever.wait()

    agent.hooks.register("after_tool", after_tool)
    session = await agent.new_session(client=watcher)
    running = asyncio.create_task(agent.prompt(session, "go"))
    await reached.wait()
    agent.cancel(session)
    reply = await running

    assert reply.stop_reason == "cancelled"
    assert heard == ["ok"]
    assert watcher.names().count("ToolEnded") == 1
    whole(session.messages)


@pytest.mark.parametrize("background", [False, True])
async def test_what_comes_after_a_cancelled_run_is_cancelled_by_none_of_its_hooks(
    echo, background: bool
):
    heard: list[str] = []
    agent = Agent(ScriptedModel(delay(10), leftover="allow"), tools=[echo])

    def last() -> None:
        heard.append("last")

    async def calls_tools(ctx: Any) -> None:
        heard.append("first")
        await ctx.agent.call_tools(ctx.run, [Call("own", "echo", {"text": "a"})])

    agent.hooks.register("after_run", last)
    agent.hooks.register("after_run", calls_tools, background=background)
    session = await agent.new_session()
    running = asyncio.create_task(agent.prompt(session, "go"))
    await asyncio.sleep(0.01)
    agent.cancel(session)
    assert (await running).stop_reason == "cancelled"
    await asyncio.gather(*session.tasks)
    await asyncio.gather(*session.tasks)
    assert sorted(heard) == ["first", "last"]
    (failed,) = [record for record in session.trace if record.error]
    assert failed.hook == "calls_tools"
    assert "CancelledError" in str(failed.error)


async def test_cancelling_withdraws_a_question_that_is_asked_after_the_run(watcher):
    asked, heard = asyncio.Event(), list[Any]()

    async def ask(session_id: str, question: Any) -> Any:
        asked.set()
        await asyncio.Event().wait()

    async def asks(ctx: Any) -> None:
        heard.append(await ctx.ui.select("Which?", ["a", "b"], default="b"))

    watcher.ask = ask
    agent = Agent(ScriptedModel("one", "two"), tools=())
    agent.hooks.register("after_run", lambda: heard.append("next"))
    off = agent.hooks.register("after_run", asks)
    session = await agent.new_session(client=watcher)
    async with asyncio.timeout(30):
        await agent.prompt(session, "go")
        await asked.wait()
        agent.cancel(session)
        off()
        assert (await agent.prompt(session, "again")).text == "two"
        await asyncio.gather(*session.tasks)
    assert heard == ["b", "next", "next"]


@pytest.mark.parametrize("first", [True, False], ids=["of a run", "of one that has ended"])
async def test_a_caller_that_is_cancelled_again_and_again_leaves_a_run_that_is_concluded(
    make_echo, watcher, whole, *, first: bool
):
    reached, slow = asyncio.Event(), make_echo(wait=asyncio.Event())
    script = [call("echo", text="a")] if first else ["one"]
    agent = Agent(ScriptedModel(*script, "two", leftover="allow"), tools=[slow])
    ended: list[str] = []

    async def after_loop(ctx: Any) -> None:
        reached.set()
        try:
            await asyncio.sleep(0.05)
        finally:
            ended.append(ctx.reply.stop_reason)

    off = agent.hooks.register("after_loop", after_loop)
    agent.hooks.register("after_run", lambda stop_reason: ended.append(stop_reason))
    session = await agent.new_session(client=watcher)
    running = asyncio.create_task(agent.prompt(session, "go"))
    if first:
        await slow.started.wait()
        running.cancel()
    await reached.wait()
    for _ in range(3):
        running.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.wait(session.tasks)
    off()

    how = "cancelled" if first else "end_turn"
    assert ended == [how, how]
    assert watcher.names().count("RunEnded") == 1
    whole(session.messages)
    assert (await agent.prompt(session, "again")).text == "two"


async def test_who_is_cut_off_when_a_concluding_run_is_cancelled_is_not_blamed(watcher):
    told: list[Any] = []
    concluding = asyncio.Event()
    agent = Agent(ScriptedModel("said", "here"), tools=())

    async def innocent(ctx: Any) -> None:
        concluding.set()
        await asyncio.sleep(5)

    off = agent.hooks.register("after_loop", innocent)
    agent.hooks.register("after_run", lambda: told.append("after_run"))
    agent.hooks.register("on_error", lambda ctx: told.append(ctx.error))
    session = await agent.new_session(client=watcher)
    running = asyncio.create_task(agent.prompt(session, "go"))
    await concluding.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.gather(*session.tasks)
    off()

    assert told == ["after_run"]
    assert [record.error for record in session.trace if record.error] == []
    assert watcher.names().count("RunEnded") == 1
    assert (await agent.prompt(session, "again")).text == "here"


@pytest.mark.parametrize("point", ["after_tool", "on_message", "on_update", "after_loop"])
async def test_a_run_is_concluded_whichever_task_somebody_cancels(make_echo, watcher, whole, point):
    slow = make_echo(wait=asyncio.Event())
    told: list[str] = []
    agent = Agent(ScriptedModel(call("echo", text="a"), "here"), tools=[slow])
    testing = asyncio.current_task()

    def culprit(ctx: Any) -> None:
        if slow.started.is_set() and "after_run" not in told:
            for task in asyncio.all_tasks() - {testing}:
                asyncio.get_running_loop().call_soon(task.cancel)

    async def waits(ctx: Any) -> None:
        if slow.started.is_set():
            await asyncio.sleep(0)

    agent.hooks.register(point, culprit)
    agent.hooks.register(point, waits)
    agent.hooks.register("after_tool", lambda: told.append("after_tool"))
    agent.hooks.register("after_run", lambda: told.append("after_run"))
    session = await agent.new_session(client=watcher)
    running = asyncio.create_task(agent.prompt(session, "go"))
    await slow.started.wait()
    agent.cancel(session)
    await asyncio.wait([running])
    await asyncio.gather(*session.tasks, return_exceptions=True)

    assert told == ["after_tool", "after_run"]
    whole(session.messages)
    assert (await agent.prompt(session, "again")).text == "here"


@pytest.mark.parametrize("point", ["after_run", "on_session_end"])
async def test_whoever_asks_while_a_session_is_closed_has_the_default_at_once(watcher, point):
    async def ask(*_: Any) -> Any:
        await asyncio.Event().wait()

    async def asks(ctx: Any) -> None:
        heard.append(await ctx.ui.select("Which?", ["a", "b"], default="b"))

    heard: list[Any] = []
    watcher.ask = ask
    agent = Agent(ScriptedModel("one"), tools=())
    agent.hooks.register(point, asks)
    agent.hooks.register(point, lambda: heard.append("next"))
    session = await agent.new_session(client=watcher)
    async with asyncio.timeout(30):
        await agent.prompt(session, "go")
        await agent.close_session(session)
    assert sorted(heard) == ["b", "next"]
