"""A hook that does not end in its own time: its answer counts for nothing, whatever it does."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import time
from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest

from crow import tool
from crow.core.agent import Agent
from crow.core.catalog import Command
from crow.core.errors import HookError
from crow.core.events import ToolProgress
from crow.core.hooks.contexts import ToolContext
from crow.core.hooks.points import POINTS
from crow.core.ports.llm import Completion, Delta, Request
from crow.core.support.clock import GARBAGE
from crow.core.support.tasks import Errand
from crow.core.tools import ToolResult
from crow.core.verdicts import Allow, Ask, Deny
from crow.testing import ScriptedModel, call

SOON = 0.02


class Stubborn:
    """Hooks that swallow the cancellation of their time-out, and what they do afterwards."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.over = asyncio.Event()
        self.raised: list[str] = []

    async def outlast(self) -> None:
        while not self.go.is_set():
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                self.raised.append("cancelled")

    async def allows(self, ctx: Any) -> Allow:
        await self.outlast()
        self.over.set()
        return Allow()

    async def raises(self, ctx: Any) -> None:
        await self.outlast()
        self.over.set()
        raise ValueError("belated")

    async def changes(self, ctx: Any) -> None:
        args = ctx.args
        await self.outlast()
        args["text"] = "belated"
        for late in (
            lambda: setattr(ctx, "args", {"text": "belated"}),
            lambda: ctx.stop("belated"),
        ):
            try:
                late()
            except (AttributeError, HookError) as error:
                self.raised.append(str(error))
        for action in (ctx.inject_context("belated"), ctx.emit(None), ctx.compact([], "belated")):
            try:
                await action
            except HookError as error:
                self.raised.append(str(error))
        self.over.set()


@pytest.mark.parametrize("way", ["allows", "raises", "changes"])
@pytest.mark.parametrize("judge", [False, True])
async def test_a_gate_that_swallows_its_time_out_denies_and_what_it_does_later_is_lost(
    echo, whole, way, judge
):
    stubborn = Stubborn()
    agent = Agent(ScriptedModel(call("echo", text="a"), "done", "again"), tools=[echo])
    agent.hooks.register("before_tool", getattr(stubborn, way), timeout=SOON, judge=judge)
    reply = await agent.run("go")

    said = str(reply.session.messages[2]["content"])
    assert "could not decide: TimeoutError: took longer than 0.02 s" in said
    assert reply.text == "done"
    stubborn.go.set()
    async with asyncio.timeout(30):
        await stubborn.over.wait()
        await asyncio.gather(*reply.session.tasks, return_exceptions=True)
    assert not echo.ran
    await agent.run("more", session=reply.session)
    assert "belated" not in str(reply.session.messages)
    whole(reply.session.messages)
    assert stubborn.raised.count("cancelled") == 1
    await agent.close()


async def test_on_permission_configuration_and_the_hooks_of_a_sub_agent_deny_as_well(echo, watcher):
    watcher.answer = "allow_once"
    stubborn = Stubborn()
    parent = Agent(ScriptedModel(), tools=())
    for point in ("on_permission", "on_config_change", "before_run"):
        parent.hooks.register(point, stubborn.allows, timeout=SOON)
    child = parent.child(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])
    child.hooks.register("before_tool", lambda ctx: Ask("sure?"))
    main = await parent.new_session(client=watcher)
    session = await child.new_session(parent=main, client=watcher)
    assert "could not decide" in str(await parent.configure(main, mode="plan"))
    refused = await child.prompt(session, "go")
    assert refused.stop_reason == "refusal"
    assert "could not decide" in refused.detail
    parent.hooks.remove(next(hook for hook in parent.hooks["before_run"].entries).owner)
    parent.hooks.register("on_permission", stubborn.allows, timeout=SOON)
    reply = await child.prompt(session, "go")
    assert "could not decide" in str(reply.session.messages[2]["content"])
    assert not echo.ran
    stubborn.go.set()
    await child.close()
    await parent.close()


@pytest.mark.parametrize("point", [point.name for point in POINTS])
async def test_no_hook_at_any_point_that_never_ends_holds_a_run_or_the_end(point, echo, whole):
    async def never(ctx: Any) -> None:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue

    agent = Agent(ScriptedModel(call("echo", text="a"), "done", leftover="allow"), tools=[echo])
    agent.hooks.register(point, never, timeout=SOON)
    async with asyncio.timeout(30):
        session = await agent.new_session()
        await agent.configure(session, mode="plan")
        await agent.prompt(session, "go")
        await agent.close()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.wait(left, timeout=10) if left else None
    whole(session.messages)
    assert not [task for task in left if not task.done()]


async def test_a_hook_that_tidies_up_after_its_time_out_may_but_the_run_does_not_wait(echo):
    tidied, hold = asyncio.Event(), asyncio.Event()

    async def slow(ctx: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await hold.wait()
            tidied.set()

    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])
    agent.hooks.register("after_tool", slow, timeout=SOON)
    assert (await agent.run("go")).text == "done"
    assert not tidied.is_set()
    hold.set()
    async with asyncio.timeout(30):
        await tidied.wait()


async def test_cancelling_reaches_a_hook_at_once_and_its_clock_stands_still_for_the_user(watcher):
    heard, asked = asyncio.Event(), asyncio.Event()

    async def ask(session_id: str, question: Any) -> Any:
        asked.set()
        await asyncio.sleep(SOON * 5)
        return True

    watcher.ask = ask

    async def waits(ctx: Any) -> None:
        assert await ctx.ui.confirm("sure?")
        heard.set()
        await asyncio.Event().wait()

    agent = Agent(ScriptedModel(leftover="allow"), tools=())
    agent.hooks.register("before_run", waits, timeout=SOON * 4)
    session = await agent.new_session(client=watcher)
    running = asyncio.create_task(agent.prompt(session, "go"))
    async with asyncio.timeout(30):
        await heard.wait()
        began = time.perf_counter()
        agent.cancel(session)
        assert (await running).stop_reason == "cancelled"
    assert time.perf_counter() - began < 0.4


async def test_what_needs_a_task_of_its_own_works_inside_a_hook():
    seen: list[str] = []

    async def structured(ctx: Any, call_next: Any) -> Any:
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(0))
            answer = await call_next()
        try:
            async with asyncio.timeout(0.001):
                await asyncio.Event().wait()
        except TimeoutError:
            seen.append("timed out")
        return answer

    agent = Agent(ScriptedModel("done"), tools=())
    for point in ("around_run", "around_llm_request"):
        agent.hooks.register(point, structured)
    assert (await agent.run("go")).text == "done"
    assert seen == ["timed out"] * 2


# wraps


@pytest.mark.parametrize("before", [True, False])
async def test_a_wrap_that_hangs_fails_its_call_and_the_tool_never_runs_after_that(
    echo, whole, before
):
    stubborn, over = Stubborn(), asyncio.Event()
    refused: list[str] = []

    async def hang(ctx: Any, call_next: Any) -> Any:
        if not before:
            await call_next()
        await stubborn.outlast()
        try:
            return await call_next()
        except HookError as error:
            refused.append(str(error))
        finally:
            over.set()

    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])
    agent.hooks.register("around_tool", hang, timeout=SOON)
    reply = await agent.run("go")
    said = str(reply.session.messages[2]["content"])
    assert "TimeoutError: took longer than 0.02 s (in the hook hang, " in said
    assert ("the tool itself had run" in said) is not before
    ran = len(echo.ran)
    stubborn.go.set()
    async with asyncio.timeout(30):
        await over.wait()
    assert refused
    assert refused[0].startswith("too late to call_next(): the hook hang took longer")
    assert len(echo.ran) == ran == (0 if before else 1)
    whole(reply.session.messages)


async def test_call_next_is_refused_once_the_wrap_has_answered_and_cancelled_where_it_still_runs(
    make_echo,
):
    slow = make_echo("slow", wait=asyncio.Event())
    kept: list[Any] = []

    async def early(ctx: ToolContext, call_next: Any) -> str:
        kept.append(call_next)
        kept.append(asyncio.create_task(call_next()))
        await slow.started.wait()
        return "early"

    agent = Agent(ScriptedModel(call("slow", text="a"), "done"), tools=[slow])
    agent.hooks.register("around_tool", early)
    reply = await agent.run("go")
    assert reply.session.messages[2]["content"] == "early"
    with pytest.raises(asyncio.CancelledError):
        await kept[1]
    with pytest.raises(HookError, match="too late to call_next"):
        await kept[0]()
    assert len(slow.ran) == 1


# synchronous hooks


async def test_a_synchronous_gate_that_took_longer_than_its_time_denies_and_is_named(echo, caplog):
    def slow(ctx: Any) -> Allow:
        ctx.args = {"text": "b"}
        time.sleep(0.12)
        return Allow()

    agent = Agent(
        ScriptedModel(call("echo", text="a"), call("echo", text="a"), "done"), tools=[echo]
    )
    agent.hooks.register("before_tool", slow, timeout=SOON)
    with caplog.at_level(logging.WARNING):
        reply = await agent.run("go")
    assert not echo.ran
    assert "could not decide: TimeoutError" in str(reply.session.messages[2]["content"])
    said = [record.getMessage() for record in caplog.records]
    blocked = [line for line in said if "blocked everything" in line]
    assert len(blocked) == 1
    assert blocked[0].startswith("hook slow blocked everything for 0.")
    assert f" s at before_tool ({__file__}:" in blocked[0]
    assert all(record.values["blocked"] >= 0.05 for record in reply.session.trace)


async def test_a_hook_in_a_thread_holds_nothing_and_answers_as_any_other(echo):
    held = threading.Event()

    def decides(ctx: Any) -> Deny | None:
        assert threading.current_thread().daemon
        ctx.state["thread"] = threading.current_thread().name
        return Deny("no") if ctx.args["text"] == "a" else None

    def hangs(ctx: Any) -> None:
        held.wait(60)

    def fails() -> None:
        raise StopIteration

    agent = Agent(
        ScriptedModel(call("echo", text="a"), call("echo", text="b"), "done"), tools=[echo]
    )
    agent.hooks.register("before_tool", decides, thread=True)
    agent.hooks.register("after_turn", hangs, thread=True, timeout=SOON)
    agent.hooks.register("on_stop", fails, thread=True)
    reply = await agent.run("go")
    assert reply.session.messages[2]["content"] == "no"
    assert echo.ran == [{"text": "b"}]
    assert reply.session.state["decides"] == {"thread": "hook decides"}
    errors = [record.error for record in reply.session.trace if record.hook == "hangs"]
    assert all(str(error).startswith("TimeoutError: took longer") for error in errors)
    assert any("StopIteration" in str(record.error) for record in reply.session.trace)
    held.set()


def test_a_thread_is_for_what_is_synchronous_and_wraps_nothing():
    agent = Agent(ScriptedModel(leftover="allow"), tools=())

    async def waits(ctx: Any) -> None: ...

    with pytest.raises(HookError, match="is async: thread=True is for hooks that are not"):
        agent.hooks.register("before_run", waits, thread=True)
    with pytest.raises(HookError, match="wraps what is async"):
        agent.hooks.register("around_tool", lambda ctx, call_next: ToolResult("x"), thread=True)
    deny = agent.hooks.before_tool(thread=True)(lambda ctx: Deny(ctx.call.name))
    assert [hook.thread for hook in agent.hooks.before_tool.entries] == [True]
    assert deny is agent.hooks.before_tool.entries[0].function


async def test_who_is_cancelled_while_a_hook_hangs_is_so_when_its_time_is_over():
    hangs = Stubborn()
    agent = Agent(ScriptedModel(leftover="allow"), tools=())
    agent.hooks.register("on_config_change", hangs.allows, timeout=SOON * 5)
    session = await agent.new_session()
    asked = asyncio.create_task(agent.configure(session, mode="plan"))
    await asyncio.sleep(0)
    asked.cancel()
    async with asyncio.timeout(30):
        await asyncio.wait({asked})
    assert asked.cancelled()
    assert session.mode == "default"
    hangs.go.set()
    await agent.close()


async def test_an_errand_is_a_coroutine_that_can_be_awaited_too():
    async def work() -> int:
        await asyncio.sleep(0)
        return 3

    assert await Errand(work(), None) == 3


@pytest.mark.parametrize("waits", [False, True])
async def test_an_async_gate_that_blocks_longer_than_its_time_denies_as_well(echo, waits):
    async def blocks(ctx: Any) -> Allow:
        time.sleep(0.12)  # noqa: ASYNC251 - that is what is wrong with it
        return Allow()

    async def looks_first(ctx: Any) -> Allow:
        await ctx.get_messages()
        return await blocks(ctx)

    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])
    agent.hooks.register("before_tool", looks_first if waits else blocks, timeout=SOON)
    reply = await agent.run("go")
    assert "could not decide: TimeoutError" in str(reply.session.messages[2]["content"])
    assert not echo.ran


def block() -> None:
    time.sleep(0.12)


async def looks_first(ctx: Any) -> None:
    await asyncio.sleep(0)
    block()


async def at_once(ctx: Any) -> None:
    block()
    await asyncio.sleep(0)


async def around(ctx: Any, call_next: Any) -> Any:
    block()
    return await call_next()


async def behind(ctx: Any, call_next: Any) -> Any:
    answer = await call_next()
    block()
    return answer


async def innocent(ctx: Any, call_next: Any) -> Any:
    return await call_next()


@pytest.mark.parametrize("blocks", [looks_first, at_once, around, behind])
@pytest.mark.parametrize("judge", [False, True])
async def test_who_blocks_in_any_step_is_named_and_nobody_who_goes_around_it(
    echo, blocks, judge, caplog
):
    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])
    for point in ("around_run", "around_llm_request", "around_tool"):
        agent.hooks.register(point, innocent)
    wraps = blocks in (around, behind)
    if wraps:
        agent.hooks.register("around_tool", blocks)
    else:
        agent.hooks.register("before_tool", blocks, judge=judge)
    with caplog.at_level(logging.WARNING):
        reply = await agent.run("go")
    blocked = [line for line in caplog.messages if "blocked everything" in line]
    assert len(blocked) == 1, blocked
    assert blocked[0].startswith(f"hook {blocks.__name__} blocked everything for 0.")
    told = {record.hook for record in reply.session.trace if "blocked" in record.values}
    assert told == {blocks.__name__}


async def test_what_held_the_model_up_is_no_excuse_for_the_hook_that_blocks_after_it(caplog):
    class Littering(ScriptedModel):
        async def stream(self, request: Request) -> AsyncGenerator[Delta | Completion, None]:
            began = GARBAGE.seconds
            while GARBAGE.seconds < began + 0.1:
                gc.collect()
            yield Completion("done")

    agent = Agent(Littering(), tools=())
    agent.hooks.register("around_llm_request", behind)
    with caplog.at_level(logging.WARNING):
        await agent.run("go")
    assert [line.split()[1] for line in caplog.messages if "blocked" in line] == ["behind"]


@pytest.mark.parametrize("point", ["on_update", "on_message"])
async def test_a_hook_is_not_named_for_one_that_blocks_at_what_it_makes_happen(point, caplog):
    agent = Agent(ScriptedModel("done"), tools=())

    async def emits(ctx: Any) -> None:
        await asyncio.sleep(0)
        await ctx.ui.notify("well")
        await ctx.append({"role": "user", "content": "more"})

    def culprit(ctx: Any) -> None:
        block()

    agent.hooks.register(point, culprit)
    agent.hooks.register("after_turn", emits)
    with caplog.at_level(logging.WARNING):
        await agent.run("go")
    blocked = [line for line in caplog.messages if "blocked everything" in line]
    assert [line.split()[1] for line in blocked] == ["culprit"]


@pytest.mark.parametrize("where", ["tool", "preview", "command"])
@pytest.mark.parametrize("late", [False, True])
async def test_a_tool_a_preview_and_a_command_that_block_are_named_once(
    where, late, watcher, caplog
):
    async def work(at: str) -> None:
        if late:
            await asyncio.sleep(0)
        if at == where:
            block()

    class Slow:
        def __init__(self) -> None:
            self.name, self.description, self.kind = "slow", "Take its time.", "other"
            self.parameters: dict[str, Any] = {"type": "object", "properties": {}}

        async def preview(self, args: Any, ctx: Any) -> ToolResult:
            await work("preview")
            return ToolResult("")

        async def run(self, args: Any, ctx: Any) -> str:
            await work("tool")
            return "done"

    async def slowly(ctx: Any) -> str:
        await work("command")
        return "go"

    watcher.answer = "allow_once"
    agent = Agent(ScriptedModel(*[call("slow"), "done"] * 2), tools=[cast(Any, Slow())])
    agent.add_command(Command("slowly", "Go slowly.", slowly))
    agent.hooks.register("before_tool", lambda: Ask("sure?"))
    session = await agent.new_session(client=watcher)
    with caplog.at_level(logging.WARNING):
        await agent.prompt(session, "/slowly")
        await agent.prompt(session, "/slowly")
    (told,) = [line for line in caplog.messages if "blocked everything" in line]
    name = {
        "tool": "the tool slow",
        "preview": "the preview of slow",
        "command": "the command /slowly",
    }
    assert told.startswith(f"{name[where]} blocked everything for 0.")


async def test_a_tool_is_not_named_for_a_hook_that_blocks_at_what_it_tells(caplog):
    @tool
    async def tells(ctx: ToolContext) -> str:
        """Tell something."""
        await ctx.progress("well")
        return "done"

    def culprit(ctx: Any) -> None:
        if isinstance(ctx.update, ToolProgress):
            block()

    agent = Agent(ScriptedModel(call("tells"), "done"), tools=[tells])
    agent.hooks.register("on_update", culprit)
    with caplog.at_level(logging.WARNING):
        assert (await agent.run("go")).session.messages[2]["content"] == "done"
    blocked = [line for line in caplog.messages if "blocked everything" in line]
    assert [line.split()[1] for line in blocked] == ["culprit"]


async def test_who_only_waits_blocks_nothing(echo, caplog):
    async def waits(ctx: Any) -> None:
        await asyncio.sleep(0.06)
        await asyncio.sleep(0)

    async def hangs(ctx: Any) -> None:
        await asyncio.Event().wait()

    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])
    agent.hooks.register("after_turn", waits)
    agent.hooks.register("after_turn", hangs, timeout=0.06)
    with caplog.at_level(logging.WARNING):
        await agent.run("go")
    assert not [line for line in caplog.messages if "blocked" in line]
