"""Harm that hooks could once do unannounced, found by playing at random (see ``test_harm.py``)."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

from crow import tool
from crow.core.agent import Agent
from crow.core.errors import HookError
from crow.core.events import Notice
from crow.core.history import flaw, repaired
from crow.core.hooks.context import Context
from crow.core.messages import user
from crow.core.ports.client import NullClient
from crow.core.ports.llm import Completion
from crow.core.session import Session
from crow.core.tools import Call
from crow.core.verdicts import Ask
from crow.testing import ScriptedModel, call, delay


async def test_a_session_that_is_closed_while_it_runs_is_followed_up_and_free(make_echo):
    slow = make_echo("slow", wait=asyncio.Event())
    followed: list[str] = []
    agent = Agent(ScriptedModel(call("slow", text="a"), leftover="allow"), tools=[slow])
    agent.hooks.register("after_run", lambda ctx: followed.append(ctx.stop_reason))
    session = await agent.new_session()
    running = asyncio.create_task(agent.prompt(session, "go"))
    await slow.started.wait()
    await agent.close_session(session)
    assert (await running).stop_reason == "cancelled"
    assert followed == ["cancelled"]
    assert not session.lock.locked()


@pytest.mark.parametrize("point", ["before_tool", "around_run", "after_turn", "after_run"])
async def test_a_hook_that_closes_its_own_session_closes_it_to_the_end(echo, point):
    ended: list[str] = []
    agent = Agent(ScriptedModel(call("echo", text="a"), "done", leftover="allow"), tools=[echo])

    async def closes(ctx: Any) -> None:
        await agent.close_session(ctx.session)

    async def closes_around(ctx: Any, call_next: Any) -> None:
        await agent.close_session(ctx.session)

    agent.hooks.register(point, closes_around if point == "around_run" else closes)
    agent.hooks.register("after_run", lambda ctx: ended.append("followed"), order=-1)
    agent.hooks.register("on_session_end", lambda ctx: ended.append("ended"))
    session = await agent.new_session()
    async with asyncio.timeout(4):
        await agent.prompt(session, "go")
        await agent.close()
    assert sorted(ended) == ["ended", "followed"]
    assert not agent.sessions


async def test_a_hook_that_cancels_what_runs_beside_leaves_the_session_free():
    agent = Agent(ScriptedModel("done", "here"), tools=())

    async def culprit(ctx: Any) -> None:
        await asyncio.sleep(0)
        for task in list(ctx.session.tasks):
            task.cancel()

    agent.hooks.register("after_loop", culprit, background=True)
    session = await agent.new_session()
    await agent.prompt(session, "go")
    async with asyncio.timeout(30):
        assert (await agent.prompt(session, "again")).text == "here"


async def test_a_hook_is_not_blamed_for_one_that_hangs_at_what_it_makes_happen():
    agent = Agent(ScriptedModel("done"), tools=())

    async def culprit(ctx: Any) -> None:
        await asyncio.Event().wait()

    async def innocent(ctx: Any) -> None:
        await ctx.compact([user("kept")], "so far")

    agent.hooks.register("after_compact", culprit, timeout=1.5)
    agent.hooks.register("after_turn", innocent, timeout=1)
    reply = await agent.run("go")
    failed = {record.hook for record in reply.session.trace if record.error}
    assert failed == {"culprit"}


@pytest.mark.parametrize("fail", [ValueError("no"), SystemExit(3)])
async def test_a_wrap_that_an_error_passes_through_has_not_failed(make_echo, fail):
    broken = make_echo("broken", fail=fail)
    agent = Agent(ScriptedModel(call("broken", text="a"), "done"), tools=[broken])

    async def innocent(call_next: Any) -> Any:
        return await call_next()

    agent.hooks.register("around_tool", innocent)
    reply = await agent.run("go")
    assert [record.error for record in reply.session.trace] == [None]


async def test_calls_of_a_reply_that_was_cancelled_while_it_was_stored_are_settled_too(echo, whole):
    settled: list[tuple[str, str]] = []
    stored = asyncio.Event()
    agent = Agent(ScriptedModel(call("echo", text="a"), leftover="allow"), tools=[echo])

    async def waits(ctx: Any) -> None:
        if "tool_calls" in ctx.message:
            stored.set()
            await asyncio.Event().wait()

    agent.hooks.register("on_message", waits)
    agent.hooks.register("after_tool", lambda ctx: settled.append((ctx.call.id, ctx.outcome)))
    session = await agent.new_session()
    running = asyncio.create_task(agent.prompt(session, "go"))
    await stored.wait()
    agent.cancel(session)
    assert (await running).stop_reason == "cancelled"
    assert settled == [("call_1", "cancelled")]
    whole(session.messages)


@pytest.mark.parametrize("point", ["on_session_start", "on_config_change", "on_session_end"])
async def test_a_hook_outside_of_a_run_that_cancels_its_task_has_failed_too(point):
    agent = Agent(ScriptedModel(leftover="allow"), tools=())

    def culprit(ctx: Any) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    agent.hooks.register(point, culprit)
    session = await agent.new_session()
    await agent.configure(session, mode="plan")
    await agent.close()
    [error] = [str(record.error) for record in session.trace]
    assert (
        f"cancelled the task that it runs in: use ctx.stop() or agent.cancel(session) ({__file__}:"
        in error
    )


SILENT: list[Any] = [
    {"role": "assistant", "content": None},
    {"role": "user", "content": None},
    {"role": "system", "content": None},
    {"role": "assistant", "content": "x", "tool_calls": []},
    {"role": "assistant", "content": None, "tool_calls": []},
]


@pytest.mark.parametrize("message", SILENT)
async def test_what_says_nothing_or_calls_nothing_reaches_no_endpoint(message):
    agent = Agent(ScriptedModel("done"), tools=())
    errors: list[str] = []

    async def culprit(ctx: Any) -> None:
        ctx.session.pending.append(message)
        try:
            await ctx.append(message)
        except HookError as error:
            errors.append(str(error))
        ctx.session.messages.append(message)

    agent.hooks.register("after_turn", culprit)
    reply = await agent.run("go")
    model: Any = agent.llm
    model.extend("again")
    await agent.run("more", session=reply.session)
    assert message not in [*reply.session.messages, *model.asked[-1]["messages"]]
    assert errors
    assert "lacks its role or content, or calls nothing" in str(
        next(iter(reply.session.trace)).error
    )
    assert flaw(repaired([user("go"), message])) is None


async def test_a_hook_that_says_something_to_every_message_ends(whole):
    agent = Agent(ScriptedModel("done", "again"), tools=())

    async def culprit(ctx: Any) -> None:
        await ctx.inject_context("noted")

    agent.hooks.register("on_message", culprit)
    reply = await agent.run("go")
    reply = await agent.run("more", session=reply.session)
    assert reply.text == "again"
    assert len(reply.session.messages) < 15
    whole(reply.session.messages)


@pytest.mark.parametrize("waits", [False, True])
def test_work_that_wants_to_end_the_program_only_fails(waits, caplog):
    async def leaves() -> None:
        await asyncio.sleep(0) if waits else None
        raise SystemExit(3)

    async def main() -> None:
        agent = Agent(ScriptedModel("done"), tools=())

        def spawner(ctx: Any) -> None:
            ctx.session.spawn(leaves())

        agent.hooks.register("after_turn", spawner)
        async with agent:
            assert (await agent.run("go")).text == "done"
            await asyncio.sleep(0.01)

    asyncio.run(main())
    assert (
        "leaves, which was spawned by spawner, failed: RuntimeError('SystemExit: 3')" in caplog.text
    )


async def test_a_background_hook_that_outlasts_its_session_ends_at_last():
    asked = asyncio.Event()

    async def never(ctx: Any) -> None:
        asked.set()
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue

    agent = Agent(ScriptedModel("done"), tools=())
    agent.hooks.register("after_turn", never, background=True, timeout=0.5)
    async with agent:
        await agent.run("go")
        await asked.wait()
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert left
    await asyncio.wait(left, timeout=20)
    assert all(task.done() for task in left)


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("point", ["on_update", "after_compact", "on_config_change"])
async def test_a_hook_that_makes_happen_what_it_is_called_for_ends_and_is_named(
    point, waits, times
):
    agent = Agent(ScriptedModel("done"), tools=())

    async def culprit(ctx: Any) -> None:
        for _ in range(times):
            await asyncio.sleep(0) if waits else None
            match point:
                case "on_update":
                    await ctx.emit(Notice("again"))
                case "after_compact":
                    await ctx.compact([user("again")], "")
                case _:
                    await agent.configure(ctx.session, mode="again")

    agent.hooks.register(point, culprit)
    session = await agent.new_session()
    await agent.configure(session, mode="plan")
    assert (await agent.run("go", session=session)).text == "done"
    await Context(agent, session).compact([user("kept")], "so far")
    errors = {str(record.error) for record in session.trace if record.error}
    if (point, times) != ("on_update", 2):  # switched off before
        assert any("makes happen what it is called for, 8 times over" in e for e in errors)
    assert all(__file__ in error for error in errors)


@pytest.mark.variants(1)
@pytest.mark.parametrize("point", ["on_update", "on_message"])
@pytest.mark.parametrize("way", ["background", "spawned", "spawned by two"])
async def test_one_that_does_so_beside_the_run_ends_and_is_named(point, way):
    agent = Agent(ScriptedModel("done"), tools=())
    heard: list[int] = []

    def again(ctx: Any) -> Any:
        return ctx.emit(Notice("again")) if point == "on_update" else ctx.append(user("again"))

    async def culprit(ctx: Any) -> None:
        heard.append(1)
        assert len(heard) < 5000, "it never ends"
        if way == "background":
            await again(ctx)
        else:
            ctx.session.spawn(again(ctx))

    async def other(ctx: Any) -> None:
        await culprit(ctx)

    agent.hooks.register(point, culprit, background=way == "background")
    if way == "spawned by two":
        agent.hooks.register(point, other)
    session = await agent.new_session()
    assert (await agent.run("go", session=session)).text == "done"
    while session.tasks:
        await asyncio.wait(session.tasks)
    errors = {str(record.error) for record in session.trace if record.error}
    assert any("makes happen what it is called for, 8 times over" in e for e in errors)


async def test_what_hooks_prompt_for_again_and_again_is_nothing_of_the_kind():
    agent = Agent(ScriptedModel(*"abcdefghijklmnopqrst"), tools=())
    replies: list[str] = []

    async def goes_on(ctx: Any) -> None:
        replies.append(ctx.reply.text)
        if len(replies) < 20:
            agent.queue(ctx.session, "again")

    agent.hooks.register("after_run", goes_on)
    session = await agent.new_session()
    await agent.run("go", session=session)
    while session.tasks:
        await asyncio.wait(session.tasks)
    assert "".join(replies) == "abcdefghijklmnopqrst"
    assert not [record for record in session.trace if record.error]


async def test_a_run_that_is_cancelled_leaves_what_its_hooks_do_in_the_background():
    agent = Agent(ScriptedModel(delay(10), leftover="allow"), tools=())
    begun, heard = asyncio.Event(), list[str]()

    async def notes(ctx: Any) -> None:
        begun.set()
        await asyncio.sleep(0.05)
        heard.append("done")

    agent.hooks.register("before_llm_request", notes, background=True)
    session = await agent.new_session()
    running = asyncio.create_task(agent.prompt(session, "go"))
    await begun.wait()
    agent.cancel(session)
    assert (await running).stop_reason == "cancelled"
    await asyncio.wait(session.tasks)
    assert heard == ["done"]
    assert not [record for record in session.trace if record.error]


@pytest.mark.parametrize("point", ["after_tool", "PostToolUse"])
async def test_every_hook_hears_what_came_of_a_call_though_another_was_cancelled_over_it(
    echo, point
):
    heard: list[str] = []
    waiting = asyncio.Event()
    agent = Agent(ScriptedModel(call("echo", text="a"), leftover="allow"), tools=[echo])

    async def waits(ctx: Any) -> None:
        waiting.set()
        await asyncio.Event().wait()

    for order in (-1, 1):
        agent.hooks.register(point, lambda ctx: heard.append(ctx.output), order=order)
    agent.hooks.register(point, waits)
    session = await agent.new_session()
    running = asyncio.create_task(agent.prompt(session, "go"))
    await waiting.wait()
    agent.cancel(session)
    assert (await running).stop_reason == "cancelled"
    assert heard == ["echo a", "echo a"]


async def test_the_loop_is_not_run_twice_at_the_same_time(echo, whole):
    agent = Agent(ScriptedModel(call("echo", text="a"), "done", leftover="allow"), tools=[echo])

    async def culprit(ctx: Any, call_next: Any) -> None:
        await asyncio.gather(call_next(), call_next())

    agent.hooks.register("around_run", culprit)
    agent.hooks.register("on_message", lambda ctx: asyncio.sleep(0))
    reply = await agent.prompt(await agent.new_session(), "go")
    assert f"await it before the next (in the hook culprit, {__file__}:" in reply.detail
    whole(reply.session.messages)
    model: Any = agent.llm
    for asked in model.asked:
        whole(asked["messages"])


async def test_work_that_is_cancelled_before_it_begins_is_not_said_to_be_forgotten():
    async def work() -> None: ...

    async with Agent(ScriptedModel(leftover="allow"), tools=[]) as agent:
        session = await agent.new_session()
        waiting = work()
        session.spawn(waiting).cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert inspect.getcoroutinestate(waiting) == inspect.CORO_CLOSED


async def test_an_error_that_has_no_text_is_named_by_its_type(caplog: pytest.LogCaptureFixture):
    class MuteError(Exception):
        def __str__(self) -> str:
            raise ValueError("no text")

    def fails() -> None:
        raise MuteError

    agent = Agent(ScriptedModel("said"), tools=[])
    agent.hooks.register("on_session_start", fails)
    assert (await agent.run("go")).text == "said"
    assert "failed at on_session_start: MuteError" in caplog.text


async def test_calls_of_one_id_that_a_hook_makes_up_have_ids_of_their_own():
    def rewrites(reply: Any) -> Any:
        twice = (Call("one", "look", {}, "{}"), Call("one", "look", {}, "{}"))
        return Completion(calls=twice) if reply.text == "first" else None

    agent = Agent(ScriptedModel("first", "Done."), tools=[])
    agent.hooks.register("after_llm_response", rewrites)
    reply = await agent.run("go")
    assert flaw(reply.session.messages) is None
    calls = reply.session.messages[1]["tool_calls"]
    assert [each["id"] for each in calls] == ["one", "call00001"]


@pytest.mark.parametrize("how", ["cancel", "stop"])
async def test_no_tool_begins_in_a_run_that_is_over(how: str):
    ran: list[str] = []

    @tool
    async def look(text: str) -> str:
        """Look."""
        ran.append(text)
        return text

    async def late(ctx: Any, call_next: Any) -> Any:
        if how == "stop":
            ctx.stop("enough")
            return await call_next()
        agent.cancel(ctx.session)
        try:
            await asyncio.sleep(30)
        finally:
            return await call_next()  # noqa: B012 - as somebody might

    agent = Agent(ScriptedModel(call("look", text="a"), leftover="allow"), tools=[look])
    agent.hooks.register("around_tool", late)
    session = await agent.new_session()
    reply = await agent.prompt(session, "go")
    assert reply.stop_reason == ("cancelled" if how == "cancel" else "hook_stopped")
    assert ran == []
    assert flaw(session.messages) is None


class Gone(NullClient):
    """A client that is told everything, and fails when it is asked."""

    async def ask(self, session_id: str, question: Any) -> Any:
        raise ConnectionError("the client is gone")


async def test_a_client_that_fails_when_it_is_asked_has_permitted_nothing():
    agent = Agent(ScriptedModel(leftover="allow"), tools=())
    session = await agent.new_session(client=Gone())
    agent.hooks.register("on_config_change", lambda ctx: Ask("really?"))
    agent.hooks.register("before_run", lambda ctx: Ask("really?"))
    why = "the user cannot be asked: ConnectionError: the client is gone"
    assert await agent.configure(session, mode="plan") == why
    assert session.mode != "plan"
    reply = await agent.prompt(session, "go")
    assert (reply.stop_reason, reply.detail) == ("refusal", why)


class Deaf(NullClient):
    """A client that fails when it is told something."""

    async def update(self, session_id: str, event: Any) -> None:
        raise ConnectionError("the client is gone")


async def test_a_client_that_cannot_be_told_what_a_hook_says_has_permitted_nothing():
    agent = Agent(ScriptedModel(leftover="allow"), tools=())
    session = await agent.new_session(client=Deaf())
    remove = agent.hooks.register("on_config_change", lambda ctx: {"systemMessage": "careful"})
    why = "the user cannot be told: ConnectionError: the client is gone"
    assert await agent.configure(session, mode="plan") == why
    assert session.mode == "default"
    remove()


async def test_a_client_that_cannot_be_told_of_a_change_does_not_undo_it():
    agent = Agent(ScriptedModel(leftover="allow"), tools=())
    session = await agent.new_session(client=Deaf())
    assert await agent.configure(session, mode="plan") is None
    assert session.mode == "plan"


async def test_what_a_hook_begins_is_its_own_though_others_come_after_it_at_once():
    agent = Agent(ScriptedModel("done"), tools=())
    told, kept = asyncio.Event(), list[Any]()
    tasks = list[Any]()

    class Begins:
        name = "begins"

        def after_turn(self, ctx: Any) -> None:
            async def later() -> None:
                await told.wait()
                agent.hooks.register("on_error", lambda error: None)

            tasks.append(asyncio.get_running_loop().create_task(later()))

    class Keeps:
        name = "keeps"

        def after_turn(self, ctx: Any) -> None:
            kept.append(ctx)

    class Comes:
        def __init__(self, name: str) -> None:
            self.name = name

        def after_turn(self, ctx: Any) -> None:
            assert ctx.owner == self.name

    for thing in (Comes("a"), Begins(), Comes("b"), Keeps(), Comes("c")):
        agent.use(thing)
    reply = await agent.run("go")
    told.set()
    await asyncio.gather(*tasks)
    assert {hook.owner.name for hook in agent.hooks.on_error.entries} == {"begins"}
    assert kept[0].owner == "keeps"
    assert {record.error for record in reply.session.trace} == {None}


async def test_a_session_that_is_not_open_can_be_closed_and_its_hooks_hear_of_it():
    ended = list[str]()
    agent = Agent(ScriptedModel(leftover="allow"), tools=())
    agent.hooks.register("on_session_end", lambda reason: ended.append(reason))
    session = Session()
    await agent.close_session(session)
    assert session.closed
    assert ended == ["closed"]


async def test_hooks_that_say_something_to_each_message_do_not_answer_one_another_without_end():
    agent = Agent(ScriptedModel(leftover="allow"), tools=())
    session = await agent.new_session()
    for name in ("a", "b", "c"):

        class Says:
            def __init__(self, name: str) -> None:
                self.name = name

            async def on_message(self, ctx: Any) -> None:
                await ctx.inject_context("noted")

        agent.use(Says(name))
    for _ in range(6):
        await agent.prompt(session, "go")
    assert len(session.messages) < 6 * 10


async def test_hooks_that_call_one_another_are_ended_before_they_are_thousands():
    agent = Agent(ScriptedModel("done", leftover="allow"), tools=())
    for name in ("a", "b", "c"):

        class Again:
            def __init__(self, name: str) -> None:
                self.name = name

            async def on_message(self, ctx: Any) -> None:
                await ctx.append(user("again"))

        agent.use(Again(name))
    session = await agent.new_session()
    reply = await agent.prompt(session, "go")
    assert reply.stop_reason != "error"
    assert len(session.messages) < 1000
    errors = {record.error for record in session.trace if record.error}
    assert any("makes happen what it is called for, 64 times over" in error for error in errors)


async def test_a_hook_may_say_as_much_as_it_likes_where_it_is_not_called_again():
    agent = Agent(ScriptedModel("done", leftover="allow"), tools=())
    count = 0

    async def on_message(ctx: Any) -> None:
        nonlocal count
        count += 1
        if ctx.message["content"] == "go":
            for _ in range(200):
                await ctx.append(user("more"))

    agent.use(on_message)
    reply = await agent.run("go")
    assert count == 202
    assert {record.error for record in reply.session.trace} == {None}
