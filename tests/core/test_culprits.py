"""Who fails is named, with file and line, and ends neither the process nor the run."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from crow.core.agent import Agent
from crow.core.errors import HookError
from crow.core.hooks.context import Context
from crow.core.hooks.contexts import ErrorContext
from crow.core.hooks.points import POINTS
from crow.core.hooks.run_context import RunContext
from crow.core.tools import ToolKind
from crow.core.verdicts import Answer
from crow.testing import ScriptedModel, call

ENDS: list[Any] = [SystemExit(3), asyncio.CancelledError(), ValueError("no")]


async def fails(ctx: Any, error: BaseException) -> None:
    raise error


@pytest.mark.parametrize("error", ENDS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("after", [False, True])
async def test_what_a_wrap_around_a_tool_raises_is_the_calls_error(echo, whole, error, after):
    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])

    async def culprit(ctx: Any, call_next: Any) -> Any:
        if after:
            await call_next()
        raise error

    agent.hooks.register("around_tool", culprit)
    reply = await agent.run("go")
    said = str(reply.session.messages[2]["content"])
    assert type(error).__name__ in said
    assert f"in the hook culprit, {__file__}:" in said
    assert ("the tool itself had run" in said) is after
    assert reply.text == "done"
    [record] = [record for record in reply.session.trace if record.hook == "culprit"]
    assert ("echo a" in str(record.values)) is after
    whole(reply.session.messages)


@pytest.mark.parametrize("error", ENDS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("point", ["around_llm_request", "around_run"])
async def test_what_another_wrap_raises_is_the_runs_error_and_names_it(point, error, whole):
    agent = Agent(ScriptedModel("done", leftover="allow"), tools=())

    async def culprit(ctx: Any, call_next: Any) -> Any:
        raise error

    agent.hooks.register(point, culprit)
    reply = await agent.prompt(await agent.new_session(), "go")
    assert reply.stop_reason == "error"
    assert f"in the hook culprit, {__file__}:" in reply.detail
    whole(reply.session.messages)


@pytest.mark.parametrize("answer", [None, Answer(None)], ids=["nothing", "null"])
@pytest.mark.parametrize("point", ["around_tool", "around_llm_request"])
async def test_a_forgotten_return_is_named(echo, whole, point, answer):
    agent = Agent(ScriptedModel(call("echo", text="a"), "done", leftover="allow"), tools=[echo])

    async def forgets(ctx: Any, call_next: Any) -> Any:
        await call_next()
        return answer

    agent.hooks.register(point, forgets)
    reply = await agent.prompt(await agent.new_session(), "go")
    said = str(reply.session.messages[2:] if point == "around_tool" else reply.detail)
    assert f"answered nothing (is a return missing?) (in the hook forgets, {__file__}:" in said
    if point == "around_tool":
        assert "the tool itself had run" in said
        [record] = [record for record in reply.session.trace if record.hook == "forgets"]
        assert record.values["result"].text == "echo a"
    whole(reply.session.messages)


@pytest.mark.parametrize("wrong", [3, "text", {"text": "x"}, Answer(5)], ids=repr)
async def test_an_answer_that_is_no_reply_is_named(wrong):
    agent = Agent(ScriptedModel("done", leftover="allow"), tools=())

    async def lies(ctx: Any, call_next: Any) -> Any:
        return wrong

    agent.hooks.register("around_llm_request", lies)
    reply = await agent.prompt(await agent.new_session(), "go")
    assert "the answer must be Completion" in reply.detail
    assert "in the hook lies, " in reply.detail


def helper() -> None:
    raise KeyError("deep")


class Callable:
    """A hook that is an object."""

    def __call__(self, ctx: Any) -> None:
        helper()


class Methods:
    """Hooks that are methods."""

    def fail(self, ctx: Any) -> None:
        helper()

    async def fail_later(self, ctx: Any) -> None:
        await asyncio.sleep(0)
        helper()


@pytest.mark.parametrize("hook", [Callable(), Methods().fail, Methods().fail_later])
@pytest.mark.parametrize("point", ["after_turn", "before_llm_request", "on_stop", "after_run"])
async def test_every_failing_hook_is_named_with_file_and_line(hook, point, caplog):
    heard: list[ErrorContext] = []
    agent = Agent(ScriptedModel("done"), tools=())
    agent.hooks.register("on_error", lambda ctx: heard.append(ctx))
    agent.hooks.register(point, hook)
    with caplog.at_level(logging.WARNING):
        reply = await agent.run("go")
    record = next(r for r in reply.session.trace if r.error and r.event == point)
    line = helper.__code__.co_firstlineno + 1
    assert f"KeyError: 'deep' ({__file__}:{line})" in str(record.error)
    assert f"({__file__}:{line})" in caplog.text
    assert heard[0].place == f"{__file__}:{line}"
    assert heard[0].where.startswith("hook:")


async def test_a_hook_that_cannot_be_found_in_a_file_is_named_all_the_same(caplog):
    agent = Agent(ScriptedModel("done"), tools=())
    agent.hooks.register("after_turn", dict.fromkeys)
    reply = await agent.run("go")
    assert reply.text == "done"
    assert "hook dict.fromkeys failed at after_turn: TypeError: " in caplog.text


async def test_who_looks_on_and_fails_stops_nothing(caplog):
    agent = Agent(ScriptedModel("done"), tools=())

    def watcher(record: Any, ctx: Any) -> None:
        raise ValueError("no")

    agent.hooks.watchers.append(watcher)
    agent.hooks.register("after_turn", lambda ctx: None)
    assert (await agent.run("go")).text == "done"
    assert "which watches hooks, failed: ValueError('no')" in caplog.text


# whose a context is


class Notes:
    """Works on after its hook has returned."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.go = asyncio.Event()

    async def work(self, ctx: Any) -> None:
        await self.go.wait()
        ctx.state["late"] = self.name
        await ctx.inject_context(f"from {self.name}")
        await ctx.ui.notify(f"by {self.name}")
        ctx.stop("enough")

    def after_turn(self, ctx: Any) -> None:
        ctx.session.spawn(self.work(ctx))

    async def around_run(self, ctx: Any, call_next: Any) -> Any:
        ctx.session.spawn(self.work(ctx))
        return await call_next()


async def test_work_that_goes_on_after_its_hook_keeps_its_owner(watcher):
    one, two = Notes("one"), Notes("two")
    agent = Agent(ScriptedModel("done"), tools=(), hooks=[one, two])
    session = await agent.new_session(client=watcher)
    await agent.run("go", session=session)
    one.go.set()
    two.go.set()
    await asyncio.gather(*session.tasks)
    assert session.state == {"one": {"late": "one"}, "two": {"late": "two"}}
    notices = [(e.text, e.source) for e in watcher.events if type(e).__name__ == "Notice"]
    assert sorted(notices) == [("by one", "one")] * 2 + [("by two", "two")] * 2
    assert sorted(str(m["content"]).split('"')[1] for m in session.pending) == [
        "one", "one", "two", "two",
    ]  # fmt: skip


async def test_hooks_that_run_at_the_same_time_do_not_mix_their_owners(make_echo):
    first, second = asyncio.Event(), asyncio.Event()
    agent = Agent(
        ScriptedModel([call("echo", text="a"), call("echo", text="b")], "done"),
        tools=[make_echo()],
    )

    async def around_tool(ctx: Any, call_next: Any) -> Any:
        first.set() if first.is_set() is False else second.set()
        await second.wait()
        ctx.state[ctx.call.id] = 1
        return await call_next()

    async def beside(ctx: Any) -> None:
        await asyncio.sleep(0)
        ctx.state["beside"] = 1

    agent.hooks.register("around_tool", around_tool)
    agent.hooks.register("on_message", beside, background=True)
    reply = await agent.run("go")
    await asyncio.gather(*reply.session.tasks)
    assert reply.session.state == {
        "around_tool": {"call_1": 1, "call_2": 1},
        "beside": {"beside": 1},
    }


async def test_a_tool_keeps_its_own_as_well_and_nobodys_context_has_no_state():
    class Worker:
        name, description = "worker", ""
        kind: ToolKind = "other"
        parameters: Any = {"type": "object"}  # noqa: RUF012

        async def run(self, args: Any, ctx: Any) -> str:
            async def later() -> None:
                await asyncio.sleep(0)
                ctx.state["late"] = True

            ctx.session.spawn(later())
            return "ok"

    agent = Agent(ScriptedModel(call("worker"), "done"), tools=[Worker()])
    reply = await agent.run("go")
    await asyncio.gather(*reply.session.tasks)
    assert reply.session.state == {"worker": {"late": True}}
    with pytest.raises(HookError, match="no extension's"):
        _ = Context(agent, reply.session).state
    with pytest.raises(HookError, match="no extension's"):
        _ = RunContext(agent, reply.session, "go").state
    assert len(POINTS) == 27


async def test_a_copy_of_a_context_belongs_to_the_same(echo):
    import copy

    agent = Agent(ScriptedModel("done"), tools=())
    seen: list[Any] = []

    def after_turn(ctx: Any) -> None:
        twin = copy.copy(ctx)
        seen.append((twin.owner, twin.reply.text, twin.session is ctx.session))

    agent.use(after_turn)
    await agent.run("go")
    assert seen == [("after_turn", "done", True)]


@pytest.mark.parametrize("point", ["before_tool", "around_tool", "after_tool", "on_stop"])
async def test_a_hook_that_wants_to_end_the_program_after_it_has_waited_ends_nothing(echo, point):
    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])

    async def leaves(ctx: Any) -> None:
        await asyncio.sleep(0)
        raise SystemExit(3)

    async def leaves_around(ctx: Any, call_next: Any) -> None:
        await leaves(ctx)

    agent.hooks.register(point, leaves_around if point == "around_tool" else leaves)
    reply = await agent.run("go")
    assert reply.text == "done"
    assert any(f"SystemExit: 3 ({__file__}:" in str(r.error) for r in reply.session.trace)


class Leaves(BaseException):
    """Neither an error nor an end."""


@pytest.mark.parametrize("error", [GeneratorExit("x"), Leaves("x"), SystemExit(3)], ids=repr)
@pytest.mark.parametrize("late", [False, True, None])
@pytest.mark.parametrize(
    "point", ["before_tool", "after_tool", "after_turn", "on_stop", "on_update"]
)
async def test_whatever_a_hook_raises_is_its_own_error(echo, whole, point, error, late):
    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])

    async def culprit(ctx: Any) -> None:
        await asyncio.sleep(0) if late else None
        raise error

    def at_once(ctx: Any) -> None:
        raise error

    agent.hooks.register(point, at_once if late is None else culprit)
    reply = await agent.run("go")
    assert reply.text == "done"
    errors = [str(record.error) for record in reply.session.trace if record.error]
    assert all(type(error).__name__ in each and f"({__file__}:" in each for each in errors)
    assert errors
    whole(reply.session.messages)


@pytest.mark.parametrize("point", ["around_tool", "around_llm_request", "around_run"])
async def test_a_wrap_that_cancels_what_it_wraps_is_named_and_nobody_else(make_echo, whole, point):
    slow = make_echo("slow", wait=asyncio.Event())
    agent = Agent(ScriptedModel(call("slow", text="a"), "done", leftover="allow"), tools=[slow])

    async def waits(ctx: Any) -> None:
        slow.started.set()
        await slow.wait.wait()

    async def innocent(ctx: Any, call_next: Any) -> Any:
        return await call_next()

    async def culprit(ctx: Any, call_next: Any) -> Any:
        task = asyncio.create_task(call_next())
        await slow.started.wait()
        task.cancel()
        slow.wait.set()
        return await task

    agent.hooks.register(point, culprit)
    agent.hooks.register(point, innocent)
    if point != "around_tool":
        agent.hooks.register("on_update", waits)
    reply = await agent.prompt(await agent.new_session(), "go")
    said = str(reply.session.messages[2]["content"] if point == "around_tool" else reply.detail)
    assert f"(in the hook culprit, {__file__}:" in said
    assert "CancelledError" in said
    assert (reply.text == "done") is (point == "around_tool")
    blamed = {record.hook for record in reply.session.trace if "Cancelled" in str(record.error)}
    assert blamed <= {"culprit"}
    whole(reply.session.messages)


@pytest.mark.parametrize("point", ["before_tool", "after_turn", "after_tool", "on_message"])
async def test_a_hook_that_cancels_the_task_that_it_runs_in_has_failed(echo, whole, point):
    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])

    def culprit(ctx: Any) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    agent.hooks.register(point, culprit)
    reply = await agent.run("go")
    assert reply.text == "done"
    errors = [str(record.error) for record in reply.session.trace if record.error]
    assert errors
    assert all("cancelled the task that it runs in" in e and f"({__file__}:" in e for e in errors)
    whole(reply.session.messages)


@pytest.mark.parametrize("point", ["around_llm_request", "around_run"])
async def test_a_wrap_that_answers_what_nobody_awaited_is_named(point):
    agent = Agent(ScriptedModel("done", leftover="allow"), tools=())

    async def culprit(ctx: Any, call_next: Any) -> Any:
        return call_next()

    agent.hooks.register(point, culprit)
    reply = await agent.prompt(await agent.new_session(), "go")
    assert "return await call_next() (in the hook culprit, " in reply.detail


async def breaks() -> None:
    await asyncio.sleep(0)
    helper()


@pytest.mark.parametrize("waits", [False, True, None])
@pytest.mark.parametrize("nested", [False, True])
async def test_work_that_a_hook_spawned_and_that_fails_is_named_like_the_hook(
    caplog, waits, nested
):
    heard: list[ErrorContext] = []
    agent = Agent(ScriptedModel("done"), tools=())

    async def work(session: Any) -> None:
        if nested:
            await asyncio.sleep(0)
            session.spawn(breaks())
        else:
            await breaks()

    async def culprit(ctx: Any) -> None:
        await asyncio.sleep(0) if waits else None
        ctx.session.spawn(work(ctx.session))

    def at_once(ctx: Any) -> None:
        ctx.session.spawn(work(ctx.session))

    agent.hooks.register("on_error", lambda ctx: heard.append(ctx))
    agent.hooks.register("after_turn", at_once if waits is None else culprit)
    reply = await agent.run("go")
    while reply.session.tasks:
        await asyncio.gather(*reply.session.tasks, return_exceptions=True)
        await asyncio.sleep(0)  # since Python 3.12 nothing runs meanwhile where all are done
    owner = "at_once" if waits is None else "culprit"
    line = helper.__code__.co_firstlineno + 1
    assert (
        f"which was spawned by {owner}, failed: KeyError('deep') ({__file__}:{line})" in caplog.text
    )
    [ctx] = heard
    assert (ctx.where, ctx.place) == (f"hook:{owner}", f"{__file__}:{line}")
