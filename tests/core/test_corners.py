"""Corners of the hook model that no other test turns."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from crow.core.agent import Agent
from crow.core.catalog import Command
from crow.core.errors import HookError, ModelError
from crow.core.hooks.points import Point
from crow.core.messages import Usage, is_prompt
from crow.core.ports.client import NullClient, Question
from crow.core.ports.llm import Request
from crow.core.support.tasks import Clock
from crow.core.support.validation import mismatch
from crow.core.verdicts import Allow, Answer, Ask, Continue, Deny, Stop
from crow.testing import ScriptedModel, call, text


def bare(*steps: Any, **options: Any) -> Agent:
    return Agent(ScriptedModel(*steps, leftover="allow"), **{"tools": (), **options})


async def test_a_tool_answered_by_nobody_says_that_nobody_can_be_asked(echo):
    agent = bare(call("echo", text="a"), "done", tools=[echo])
    agent.hooks.register("before_tool", lambda ctx: Ask())
    reply = await agent.run("go")
    assert reply.session.messages[2]["content"] == (
        "this needs the user's permission, and nobody can be asked"
    )
    assert await NullClient().ask("s", Question("which?", "text", default="x")) == "x"


async def test_who_answers_an_ask_may_be_called_back_without_waiting(echo, watcher):
    heard: list[str] = []
    watcher.answer = "allow_once"
    agent = bare(call("echo", text="a"), "done", tools=[echo])
    agent.hooks.register("before_tool", lambda ctx: Ask(answered=heard.append))
    await agent.run("go", client=watcher)
    assert heard == ["allow_once"]


async def test_what_is_changed_after_it_was_judged_does_not_run(echo):
    async def around_tool(ctx: Any, call_next: Any) -> Any:
        ctx.args["text"] = "b"
        return await call_next()

    agent = bare(call("echo", text="a"), "done", tools=[echo])
    agent.hooks.register("around_tool", around_tool)
    reply = await agent.run("go")
    assert echo.ran == []
    assert "must not change args at around_tool" in str(reply.session.messages[2])


async def test_a_tool_may_do_with_its_arguments_what_it_likes_and_run_twice(echo):
    async def around_tool(ctx: Any, call_next: Any) -> Any:
        await call_next()
        return await call_next()

    async def run(args: dict[str, Any], bench: Any) -> str:
        return args.pop("text")

    echo.run = run
    agent = bare(call("echo", text="a"), "done", tools=[echo])
    agent.hooks.register("around_tool", around_tool)
    reply = await agent.run("go")
    assert reply.session.messages[2]["content"] == "a"


async def test_stop_at_a_tool_gate_denies_the_call_and_ends_the_run(echo):
    agent = bare([call("echo", text="a"), call("echo", text="b")], tools=[echo])
    agent.hooks.register("before_tool", lambda ctx: Stop("enough"))
    reply = await agent.run("go")
    assert reply.stop_reason == "hook_stopped"
    assert [m["content"] for m in reply.session.messages[2:]] == [
        "enough",
        "not run: the run was stopped before",
    ]


async def test_nothing_answers_count_for_nothing(echo):
    agent = bare(call("echo", text="a"), "done", tools=[echo])
    for name in agent.hooks.points:
        if not name.startswith("around"):
            agent.hooks.register(name, lambda ctx: {})
    for answer in ("", Continue(""), Allow(), None):
        agent.hooks.register("on_stop", lambda ctx, answer=answer: answer)
    reply = await agent.run("go")
    assert (reply.text, reply.stop_reason) == ("done", "end_turn")
    assert [record.error for record in reply.session.trace if record.error] == []


async def test_a_watch_may_stop_the_run(echo):
    agent = bare(call("echo", text="a"), tools=[echo])
    agent.hooks.register("after_turn", lambda ctx: Stop("one is enough"))
    reply = await agent.run("go")
    assert "one is enough" in reply.detail


async def test_background_hooks_at_a_fold_are_observers_and_their_failures_are_reported(echo):
    errors: list[str] = []
    ran = asyncio.Event()
    agent = bare(call("echo", text="a"), "done", tools=[echo])

    def observe(ctx: Any) -> Any:
        ran.set()
        return Answer("ignored")

    def broken(ctx: Any) -> None:
        raise ValueError("beside the point")

    agent.hooks.register("after_tool", observe, background=True)
    agent.hooks.register("after_tool", broken, background=True, tools={"echo"})
    agent.hooks.register("after_tool", broken, background=True, tools={"other"})
    agent.hooks.register("after_turn", broken, background=True)
    agent.hooks.register("on_error", lambda error: errors.append(str(error)))
    reply = await agent.run("go")
    async with asyncio.timeout(30):
        await ran.wait()
        await asyncio.wait(set(reply.session.tasks) or {asyncio.create_task(asyncio.sleep(0))})
    assert errors == ["beside the point"] * 3
    assert reply.session.messages[2]["content"] == "echo a"


@pytest.mark.parametrize("point", ["after_llm_response", "before_llm_request", "on_update"])
async def test_a_fold_refuses_an_answer_of_the_wrong_type(point, watcher):
    agent = bare("done")
    agent.hooks.register(point, lambda ctx: 42)
    reply = await agent.run("go", client=watcher)
    assert reply.text == "done"
    errors = [str(record.error) for record in reply.session.trace if record.error]
    assert errors[0].startswith(f"TypeError: answered 42, which {point} cannot use ({__file__}:")


async def test_a_failing_on_error_hook_is_only_logged():
    agent = bare("done")

    def broken(ctx: Any) -> None:
        raise ValueError("again")

    agent.hooks.register("on_error", broken)
    agent.hooks.register("after_turn", broken)
    reply = await agent.run("go")
    assert [record.event for record in reply.session.trace] == ["on_error", "after_turn"] or [
        record.event for record in reply.session.trace
    ] == ["after_turn", "on_error"]


async def test_a_time_out_of_the_hooks_own_making_is_its_error(echo):
    async def raises(ctx: Any) -> None:
        await asyncio.sleep(0)
        raise TimeoutError("the database is slow")

    agent = bare(call("echo", text="a"), "done", tools=[echo])
    agent.hooks.register("before_tool", raises)
    reply = await agent.run("go")
    assert "TimeoutError: the database is slow" in str(reply.session.messages[2]["content"])


async def test_interrupts_pass_through_hooks():
    from crow.core.hooks.call import run_hook

    def interrupt(ctx: Any) -> None:
        raise KeyboardInterrupt

    agent = bare()
    agent.hooks.register("after_run", interrupt)
    session = await agent.new_session()
    from crow.core.hooks.run_context import RunContext

    with pytest.raises(KeyboardInterrupt):
        await run_hook(agent.hooks.after_run.entries[0], RunContext(agent, session, "go"))


async def test_a_clock_that_is_paused_twice_runs_on_after_the_second_resume():
    clock = Clock(0.01)
    clock.pause()
    waiting = asyncio.create_task(asyncio.Event().wait())
    ended = asyncio.create_task(clock.ended(waiting, 0))
    await asyncio.sleep(0)
    clock.pause()
    clock.resume()
    assert not clock.expired
    clock.resume()
    async with asyncio.timeout(30):
        await ended
    assert clock.expired
    waiting.cancel()


async def test_a_hook_without_a_time_out_has_none():
    agent = bare("done")
    agent.hooks.register("before_run", lambda: asyncio.sleep(0), timeout=None)
    agent.hooks.register("after_turn", lambda: asyncio.ensure_future(asyncio.sleep(0)))
    assert (await agent.run("go")).text == "done"


def test_a_point_is_defined_once():
    agent = bare()
    with pytest.raises(HookError, match="the event 'before_tool' exists already"):
        agent.hooks.define(Point("before_tool", "gate", ()))


def test_disposing_twice_does_nothing_and_waiting_hooks_are_disposed_after_they_were_registered():
    agent = bare()
    dispose = agent.hooks.register("before_run", lambda ctx: None)
    waiting = agent.hooks.register("TaskCreated", lambda ctx: None)
    dispose()
    dispose()
    undefine = agent.hooks.define(Point("TaskCreated", "watch", ()))
    waiting()
    waiting()
    assert not list(agent.hooks)
    undefine()
    dispose()


def test_a_child_has_the_gates_of_points_that_its_parent_defined():
    parent = bare()
    parent.hooks.define(Point("on_deploy", "gate", ()))
    child = parent.child()
    child.hooks.define(Point("on_deploy", "gate", ()))
    assert child.hooks["on_deploy"].parent is parent.hooks["on_deploy"]
    child.hooks.define(Point("on_own", "gate", ()))
    assert child.hooks["on_own"].parent is None


async def test_wraps_know_call_next_by_two_names_and_tell_of_unknown_ones():
    agent = bare("done")

    async def around_run(ctx: Any, next: Any, *rest: Any) -> Any:  # noqa: A002
        return await next()

    agent.use(around_run)
    assert (await agent.run("go")).text == "done"
    with pytest.raises(HookError, match=r"it has .*call_next"):
        agent.hooks.register("around_run", lambda ctx, proceed: None)


async def test_what_a_session_keeps_open_is_closed_with_it():
    closed: list[bool] = []

    class Held:
        async def aclose(self) -> None:
            closed.append(True)

    agent = bare("done")
    session = await agent.new_session()
    session.cache.update(held=Held(), other=1)
    await agent.close()
    assert closed == [True]


async def test_closing_waits_for_after_run():
    ended: list[str] = []

    async def slow(ctx: Any) -> None:
        await asyncio.sleep(0.02)
        ended.append("after_run")

    agent = bare("done")
    agent.hooks.register("after_run", slow)
    session = await agent.new_session()
    await agent.prompt(session, "go")
    await agent.close()
    assert ended == ["after_run"]


async def test_a_client_that_fails_ends_the_run_with_an_error_and_a_whole_history(
    echo, watcher, whole
):
    from crow.core.events import ToolStarted

    async def update(session_id: str, event: Any) -> None:
        if isinstance(event, ToolStarted):
            raise BrokenPipeError("gone")

    watcher.update = update
    agent = bare([call("echo", text="a"), call("echo", text="b")], "done", tools=[echo])
    reply = await agent.prompt(await agent.new_session(client=watcher), "go")
    whole(reply.session.messages)
    for message in reply.session.messages[2:4]:
        assert str(message["content"]).startswith(f"BrokenPipeError: gone ({__file__}:")


async def test_a_history_that_a_failing_hook_left_open_is_mended(echo, watcher, whole):
    from crow.core.events import ToolPending

    async def update(session_id: str, event: Any) -> None:
        if isinstance(event, ToolPending):
            raise BrokenPipeError("gone")

    watcher.update = update
    agent = bare(call("echo", text="a"), "done", tools=[echo])
    session = await agent.new_session(client=watcher)
    reply = await agent.prompt(session, "go")
    assert reply.stop_reason == "error"
    assert isinstance(reply.error, BrokenPipeError)
    whole(session.messages)


async def test_steering_an_idle_session_prompts_it():
    agent = bare("done")
    session = await agent.new_session()
    ended = asyncio.Event()
    agent.hooks.register("after_run", lambda ctx: ended.set())
    agent.steer(session, "go")
    async with asyncio.timeout(30):
        await ended.wait()
    assert session.latest_prompt() == "go"
    assert all(is_prompt(m) for m in session.messages if m["role"] == "user")


@pytest.mark.parametrize(
    "schema, args, wrong",
    [
        ({}, {"x": 1}, None),
        ({"properties": {"x": True}}, {"x": 1}, None),
        ({"properties": {"x": {"type": ["string", "null"]}}}, {"x": None}, None),
        ({"properties": {"x": {"type": "number"}}}, {"x": 1}, None),
        ({"properties": {"x": {"type": "odd"}}}, {"x": 1}, None),
        ({"properties": {"x": {"type": "array"}}}, {"x": "a"}, "'x' must be array, not \"a\""),
    ],
)
def test_plain_types_are_checked_and_nothing_else(schema, args, wrong):
    assert mismatch(schema, args) == wrong


async def test_a_denied_command_and_a_tool_of_a_child():
    agent = bare("done")
    agent.hooks.register("on_config_change", lambda changes: Deny())
    session = await agent.new_session()
    assert await agent.configure(session, mode="plan") == "denied by a hook"


async def test_every_field_of_a_moment_can_be_named(echo, make_echo):
    seen: dict[str, Any] = {}
    bad = make_echo("bad", fail=ValueError("no"))
    agent = bare([call("echo", text="a"), call("bad", text="b")], "done", tools=[echo, bad])

    def after_tool(ctx: Any) -> Any:
        ctx.cache["seen"] = True
        seen[ctx.name] = (ctx.block is ctx.call, ctx.error, ctx.output)
        return Answer("replaced")

    agent.hooks.register("after_tool", after_tool)
    agent.hooks.register(
        "after_run", lambda reply, usage, messages: seen.update(run=(usage, len(messages)))
    )
    agent.hooks.register("SubagentStart", lambda ctx: seen.update(sub=True))
    agent.hooks.register("StopFailure", lambda ctx: seen.update(failure=True))
    reply = await agent.run("go")
    told = seen["bad"][1]
    assert told.startswith("ValueError: no (")
    assert told.endswith(")")
    assert seen == {
        "echo": (True, None, "echo a"),
        "bad": (True, told, told),
        "run": ({}, 5),
    }
    assert [m["content"] for m in reply.session.messages[2:4]] == ["replaced"] * 2


async def test_a_run_that_was_abandoned_can_say_and_append_nothing_more(echo, watcher):
    late: list[str] = []
    ghost = asyncio.Event()

    reached = asyncio.Event()

    async def stubborn(ctx: Any) -> None:
        reached.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await ghost.wait()
        for action in (
            ctx.append({"role": "user", "content": "boo"}),
            ctx.ui.notify("boo"),
            ctx.run.append({"role": "user", "content": "boo"}),
        ):
            try:
                await action
            except asyncio.CancelledError:
                late.append("held back")

    agent = bare(call("echo", text="a"), tools=[echo])
    agent.hooks.register("before_tool", stubborn)
    session = await agent.new_session(client=watcher)
    running = asyncio.create_task(agent.prompt(session, "go"))
    await reached.wait()
    agent.cancel(session)
    await running
    told, before = len(watcher.events), list(session.messages)
    ghost.set()
    run = [task for task in asyncio.all_tasks() if "_work" in str(task.get_coro())]
    await asyncio.wait(run, timeout=30)
    assert late == ["held back"] * 3
    assert (len(watcher.events), session.messages) == (told, before)


def test_the_cores_own_defaults_are_nothing():
    from crow.core.defaults import Defaults

    assert list(Defaults().tools()) == []


@pytest.mark.parametrize("first", ["CallDelta", "UsageReported", "ToolPending", "ToolEnded"])
async def test_a_client_that_is_gone_fails_the_prompt_and_not_its_caller(
    echo, watcher, whole, first
):
    gone: list[str] = []

    async def update(session_id: str, event: Any) -> None:
        if gone or type(event).__name__ == first:
            gone.append(first)
            raise BrokenPipeError("gone")

    watcher.update = update
    used: Usage = {"total_tokens": 5}
    calls = [call("echo", text="a", usage=used), call("echo", text="b")]
    agent = bare(calls, "done", "next", tools=[echo])
    session = await agent.new_session(client=watcher)
    reply = await agent.prompt(session, "go")
    assert (reply.stop_reason, reply.detail) == ("error", "gone")
    whole(session.messages)
    session.client = NullClient()
    assert (await agent.prompt(session, "again")).stop_reason == "end_turn"
    whole(session.messages)


async def test_a_question_without_options_is_a_denial(echo, watcher):
    agent = bare(call("echo", text="a"), "done", tools=[echo])
    agent.hooks.register("before_tool", lambda ctx: Ask("nobody may", options=()))
    reply = await agent.run("go", client=watcher)
    assert reply.session.messages[2]["content"] == "nobody may"
    assert not watcher.asked


class Several(ScriptedModel):
    """A model that knows another one."""

    def named(self, model: str) -> Any:
        if model != "small":
            raise ModelError(f"there is no model {model!r}", kind="unconfigured")
        return ScriptedModel(context_window=10)


async def test_a_model_that_knows_others_is_asked_for_their_windows():
    agent = Agent(Several(context_window=100), tools=())
    session = await agent.new_session()
    assert agent.context_window(session) == 100
    assert await agent.configure(session, model="other") == "there is no model 'other'"
    assert await agent.configure(session, model="small") is None
    assert agent.context_window(session) == 10


async def test_a_hook_outside_a_run_can_ask_the_model_too():
    said: list[str] = []
    agent = bare("a summary")

    async def on_session_start(ctx: Any) -> None:
        said.append((await ctx.complete(Request([{"role": "user", "content": "go"}]))).text)

    agent.hooks.register("on_session_start", on_session_start)
    await agent.new_session()
    assert said == ["a summary"]


async def test_reasoning_stays_with_the_message():
    agent = bare(text("done", reasoning="let me think"))
    reply = await agent.run("go")
    assert reply.session.messages[1]["reasoning_content"] == "let me think"


async def test_a_run_that_has_not_begun_can_be_cancelled_too():
    from crow.core.hooks.run_context import RunContext

    agent = bare()
    run = RunContext(agent, await agent.new_session(), "go")
    run.cancel()
    run.cancel()
    assert run.cancelled


async def test_a_hook_that_hung_once_in_a_cancelled_run_is_not_waited_for_again(
    make_echo, watcher, whole
):
    reached = asyncio.Event()
    slow = make_echo("slow", wait=asyncio.Event())
    agent = bare(
        [call("slow", text="a"), call("slow", text="b"), call("slow", text="c")], tools=[slow]
    )

    async def hang(ctx: Any) -> None:
        reached.set()
        await asyncio.Event().wait()

    async def pass_on(ctx: Any, call_next: Any) -> Any:
        return await call_next()

    agent.hooks.register("after_tool", hang)
    agent.hooks.register("around_tool", pass_on)
    session = await agent.new_session(client=watcher)
    running = asyncio.create_task(agent.prompt(session, "go"))
    await slow.started.wait()
    started = asyncio.get_running_loop().time()
    agent.cancel(session)
    assert (await running).stop_reason == "cancelled"
    assert asyncio.get_running_loop().time() - started < 1
    assert reached.is_set()
    whole(session.messages)


def test_an_extension_that_has_no_agent_of_its_own_is_given_the_one_that_uses_it():
    class Flask:
        def __init__(self, agent: Agent | None = None) -> None:
            self.agent = agent

        def before_run(self, ctx: Any) -> None: ...

    agent, other = bare(), bare()
    assert agent.use(Flask()).agent is agent
    assert agent.use(Flask(other)).agent is other


async def test_a_hook_that_ends_when_told_to_is_heard_in_a_cancelled_run(echo):
    agent = bare(call("echo", text="a"), tools=[echo])
    heard: list[str] = []

    async def polite(ctx: Any) -> None:
        await asyncio.sleep(0)
        heard.append(ctx.stop_reason)

    agent.hooks.register("before_tool", lambda ctx: agent.cancel(ctx.session))
    agent.hooks.register("after_loop", polite)
    await agent.run("go")
    assert heard == ["cancelled"]


async def test_a_restart_from_the_prompt_while_calls_run_keeps_them_and_their_results(echo, whole):
    agent = bare(call("echo", text="a"), "done", tools=[echo])

    async def after_tool(ctx: Any) -> None:
        await ctx.restart_with_new_session()

    agent.hooks.register("after_tool", after_tool)
    reply = await agent.run("go")
    assert [m["content"] for m in reply.session.messages] == ["go", None, "echo a", "done"]


def test_hooks_for_other_events_go_on_waiting():
    agent = bare()
    agent.hooks.register("TaskCompleted", lambda ctx: None)
    agent.hooks.define(Point("TaskCreated", "watch", ()))
    assert [event for event, _, _ in agent.hooks.waiting] == ["TaskCompleted"]


async def test_context_for_a_prompt_that_a_command_answered_is_gone_with_it():
    async def helpful(ctx: Any) -> Answer:
        return Answer("help")

    model = ScriptedModel("done")
    agent = Agent(model, tools=())
    agent.add_command(Command("help", "", helpful))
    agent.hooks.register("before_run", lambda prompt: f"about {prompt}")
    session = await agent.new_session()
    await agent.prompt(session, "/help")
    await agent.prompt(session, "go")
    assert "/help" not in str(model.asked[0]["messages"])


async def test_a_gate_that_hangs_on_parent_and_child_runs_once_in_the_child(echo):
    ran: list[str] = []

    def before_tool(call: Any) -> None:
        ran.append(call.id)

    parent = bare(hooks=[before_tool])
    child = parent.child(
        ScriptedModel(call("echo", text="a"), "done"), hooks=[before_tool], tools=[echo]
    )
    await child.prompt(await child.new_session(parent=await parent.new_session()), "go")
    assert ran == ["call_1"]


async def test_context_that_a_command_injects_reaches_the_next_prompt():
    async def remember(ctx: Any) -> Answer:
        await ctx.inject_context("remembered")
        return Answer("ok")

    model = ScriptedModel("done")
    agent = Agent(model, tools=())
    agent.add_command(Command("remember", "", remember))
    agent.hooks.register("before_run", lambda prompt: f"about {prompt}")
    session = await agent.new_session()
    await agent.prompt(session, "/remember")
    await agent.prompt(session, "go")
    assert "remembered" in str(model.asked[0]["messages"])
    assert "about /remember" not in str(model.asked[0]["messages"])


async def test_who_stopped_a_prompt_without_a_word_is_named():
    async def before_run(ctx: Any) -> None:
        await ctx.stop_current_turn()

    agent = bare(hooks=[before_run])
    assert (await agent.run("go")).detail == "stopped by before_run"


async def test_closing_waits_for_what_is_cancelled_but_not_for_itself_or_for_ever():
    ended: list[str] = []
    agent = bare()
    session = await agent.new_session()

    async def tidy() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("tidied")

    async def close() -> None:
        await agent.close_session(session)
        ended.append("closed")

    session.spawn(tidy())
    await asyncio.sleep(0)
    closing = session.spawn(close())
    async with asyncio.timeout(30):
        await closing
    assert ended == ["tidied", "closed"]
