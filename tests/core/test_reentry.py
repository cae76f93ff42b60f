"""A hook that prompts the session that waits for it is told so at once, wherever it hangs."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from crow.core.agent import Agent
from crow.core.catalog import Command
from crow.core.errors import SessionError
from crow.core.hooks.points import POINTS
from crow.core.session import Session
from crow.core.tools import ToolKind
from crow.testing import ScriptedModel, call

SAID = "a hook cannot wait for its own session: use agent.queue(...)"
OFTEN = [
    point.name
    for point in POINTS
    if point.name not in ("on_permission", "on_notification", "after_compact", "before_compact",
                          "on_error", "before_command", "on_cwd_changed", "on_worktree_create",
                          "on_worktree_remove")
]  # fmt: skip


async def directly(agent: Agent, session: Any) -> None:
    await agent.prompt(session, "again")


async def by_run(agent: Agent, session: Any) -> None:
    await agent.run("again", session=session)


async def in_a_task(agent: Agent, session: Any) -> None:
    await asyncio.create_task(agent.prompt(session, "again"))


async def waited_for(agent: Agent, session: Any) -> None:
    await asyncio.wait_for(agent.run("again", session=session), 20)


async def gathered(agent: Agent, session: Any) -> None:
    await asyncio.gather(agent.prompt(session, "again"), asyncio.sleep(0))


async def spawned(agent: Agent, session: Any) -> None:
    async def work() -> None:
        await agent.run("again", session=session)

    await session.spawn(work())


async def nested(agent: Agent, session: Any) -> None:
    async def work() -> None:
        await asyncio.create_task(directly(agent, session))

    await session.spawn(work())


async def spawned_and_waited_for(agent: Agent, session: Any) -> None:
    await asyncio.wait_for(session.spawn(by_a_helper(agent, session)), 20)


async def spawned_and_gathered(agent: Agent, session: Any) -> None:
    await asyncio.gather(asyncio.shield(session.spawn(by_a_helper(agent, session))))


async def spawned_twice(agent: Agent, session: Any) -> None:
    async def work() -> None:
        await session.spawn(by_a_helper(agent, session))

    done, _ = await asyncio.wait({session.spawn(work())}, timeout=20)
    await done.pop()


async def which_waits_already(agent: Agent, session: Any) -> None:
    task = session.spawn(by_a_helper(agent, session))
    await asyncio.sleep(0.01)
    await task


async def by_a_helper(agent: Agent, session: Any) -> None:
    await asyncio.create_task(directly(agent, session))


async def by_a_helper_in_time(agent: Agent, session: Any) -> None:
    await asyncio.wait_for(by_a_helper(agent, session), 20)


async def in_a_group(agent: Agent, session: Any) -> None:
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(by_run(agent, session))
    except* SessionError as errors:
        raise errors.exceptions[0] from None


async def by_a_thread(agent: Agent, session: Any) -> None:
    loop = asyncio.get_running_loop()

    def work() -> None:
        asyncio.run_coroutine_threadsafe(directly(agent, session), loop).result(20)

    await asyncio.to_thread(work)


async def of_a_thread(agent: Agent, session: Any) -> None:
    loop = asyncio.get_running_loop()

    def work() -> None:
        asyncio.run_coroutine_threadsafe(agent.prompt(session, "again"), loop).result(20)

    await asyncio.to_thread(work)


async def through_another(agent: Agent, session: Any) -> None:
    """Prompt a session whose own hook prompts this one."""
    raised: list[SessionError] = []

    async def before_run(ctx: Any) -> None:
        try:
            await asyncio.create_task(directly(agent, session))
        except SessionError as error:
            raised.append(error)

    other = Agent(ScriptedModel("there"), tools=())
    other.hooks.register("before_run", before_run)
    await asyncio.create_task(other.prompt(await other.new_session(), "go"))
    raise raised[0]


WAYS = [directly, by_run, in_a_task, waited_for, gathered, spawned, by_a_helper,
        by_a_helper_in_time, in_a_group, by_a_thread, of_a_thread, through_another, nested,
        spawned_and_waited_for, spawned_and_gathered, spawned_twice, which_waits_already,
        ]  # fmt: skip
AT_ONCE = [way for way in WAYS if way is not which_waits_already]  # where no run holds the session


@pytest.mark.parametrize("point", OFTEN)
async def test_at_every_point_and_by_every_path(echo, whole, point):
    raised: list[Any] = []
    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])

    async def again(ctx: Any) -> None:
        for way in WAYS if ctx.run is not None else AT_ONCE:
            try:
                await way(agent, ctx.session)
            except SessionError as error:
                raised.append((way, str(error)))

    async def around(ctx: Any, call_next: Any) -> Any:
        await again(ctx)
        answer = await call_next()
        await again(ctx)
        return answer

    agent.hooks.register(point, around if point.startswith("around") else again)
    async with asyncio.timeout(20):
        session = await agent.new_session()
        await agent.configure(session, mode="plan")
        assert (await agent.run("go", session=session)).text == "done"
        await agent.close()
    assert raised
    assert {way for way, _ in raised} in (set(WAYS), set(AT_ONCE))
    assert {said for _, said in raised} == {SAID}
    assert "cancelled" not in str(session.messages)
    whole(session.messages)


async def test_in_the_background_in_a_tool_and_for_the_session_of_a_parent(echo):
    raised: list[str] = []
    parent = Agent(ScriptedModel("done", leftover="allow"), tools=())
    main = await parent.new_session()

    async def again(session: Any, agent: Any) -> None:
        try:
            await agent.prompt(session, "again")
        except SessionError as error:
            raised.append(str(error))

    async def before_tool(ctx: Any) -> None:
        await again(main, parent)

    async def beside(ctx: Any) -> None:
        await again(ctx.session, child)

    class Selfish:
        name, description = "selfish", ""
        kind: ToolKind = "other"
        parameters: Any = {"type": "object"}  # noqa: RUF012

        async def run(self, args: Any, ctx: Any) -> str:
            await again(ctx.session, child)
            return "told"

    child = parent.child(ScriptedModel(call("selfish"), "done"), tools=[Selfish()])
    child.hooks.register("before_tool", before_tool)
    child.hooks.register("after_turn", beside, background=True)
    async with asyncio.timeout(20):
        session = await child.new_session(parent=main)
        await child.run("go", session=session)
        await asyncio.gather(*session.tasks)
    assert raised == [SAID] * 4


@pytest.mark.parametrize("way", AT_ONCE)
async def test_in_a_tool_a_command_and_for_the_session_of_a_parent_by_every_path(way):
    raised: list[str] = []
    parent = Agent(ScriptedModel(), tools=())
    main = await parent.new_session()

    async def again(session: Any, agent: Agent) -> None:
        try:
            await way(agent, session)
        except SessionError as error:
            raised.append(str(error))

    class Selfish:
        name, description = "selfish", ""
        kind: ToolKind = "other"
        parameters: Any = {"type": "object"}  # noqa: RUF012

        async def run(self, args: Any, ctx: Any) -> str:
            await again(ctx.session, child)
            return "told"

    async def command(ctx: Any) -> str:
        await again(ctx.session, child)
        return "expanded"

    async def after_turn(ctx: Any) -> None:
        if ctx.results and way is not spawned:  # which is nobody's in the parent's session
            await again(main, parent)

    child = parent.child(ScriptedModel(call("selfish"), "done"), tools=[Selfish()])
    child.add_command(Command("go", "", command))
    child.hooks.register("after_turn", after_turn)
    async with asyncio.timeout(20):
        session = await child.new_session(parent=main)
        await child.run("/go", session=session)
    assert raised == [SAID] * (2 if way is spawned else 3)


def test_of_a_thread_of_its_own_too(echo):
    raised: list[str] = []
    agent = Agent(ScriptedModel("done"), tools=())

    async def main() -> None:
        loop = asyncio.get_running_loop()

        def after_turn(ctx: Any) -> None:
            work = asyncio.run_coroutine_threadsafe(directly(agent, ctx.session), loop)
            raised.append(str(work.exception(20)))

        agent.hooks.register("after_turn", after_turn, thread=True)
        await agent.run("go")

    asyncio.run(asyncio.wait_for(main(), 20))
    assert raised == [SAID]


async def test_spawned_work_waits_until_a_hook_that_its_session_waits_for_waits_for_it():
    agent = Agent(ScriptedModel("one", "there"), tools=())
    other = await agent.new_session()
    tasks: list[Any] = []
    raised: list[str] = []

    async def work(session: Any) -> None:
        await asyncio.create_task(directly(agent, session))

    async def before_run(ctx: Any) -> None:
        if not tasks:
            tasks.append(other.spawn(work(ctx.session)))

    async def after_turn(ctx: Any) -> None:
        await asyncio.wait({tasks[0]}, timeout=20)
        raised.append(str(tasks[0].exception()))

    agent.hooks.register("before_run", before_run)
    agent.hooks.register("after_turn", after_turn)
    reply = await asyncio.wait_for(agent.run("go"), 20)
    assert raised == [SAID]
    assert reply.text == "one"
    assert [record.hook for record in reply.session.trace] == ["before_run", "after_turn"]


async def test_who_only_looks_at_spawned_work_or_gave_up_waiting_lets_it_wait():
    agent = Agent(ScriptedModel("one", "two"), tools=())
    over: list[Any] = []
    tasks: list[Any] = []

    async def after_turn(ctx: Any) -> None:
        if not tasks:
            tasks.append(ctx.session.spawn(late(ctx.session)))
            tasks[0].add_done_callback(over.append)
            await asyncio.wait(tasks, timeout=0.01)
            await asyncio.sleep(0.03)
            assert not over

    async def late(session: Any) -> None:
        await asyncio.sleep(0.02)
        await by_a_helper(agent, session)

    agent.hooks.register("after_turn", after_turn)
    reply = await asyncio.wait_for(agent.run("go"), 20)
    await asyncio.wait(reply.session.tasks, timeout=20)
    assert reply.session.messages[-1]["content"] == "two"


async def test_a_prompt_made_before_is_refused_where_a_hook_waits_for_it():
    agent = Agent(ScriptedModel("one"), tools=())
    session = await agent.new_session()
    before = agent.prompt(session, "again")
    after: list[str] = []

    async def after_turn(ctx: Any) -> None:
        with pytest.raises(SessionError, match="cannot wait for its own session"):
            await before

    agent.hooks.register("after_turn", after_turn)
    agent.hooks.register("after_run", lambda ctx: after.append(ctx.prompt))
    reply = await asyncio.wait_for(agent.run("go", session=session), 20)
    assert reply.text == "one"
    assert [record.error for record in session.trace] == [None, None]
    assert after == ["go"]


async def test_a_queued_prompt_is_nobodys_and_answered_whoever_waits():
    agent = Agent(ScriptedModel("one", "two"), tools=())
    session = await agent.new_session()

    async def after_turn(ctx: Any) -> None:
        if len(session.messages) < 3:
            agent.queue(session, "later")
            await asyncio.wait(session.tasks, timeout=0.05)

    agent.hooks.register("after_turn", after_turn)
    await asyncio.wait_for(agent.run("go", session=session), 20)
    await asyncio.gather(*session.tasks)
    assert [m["content"] for m in session.messages] == ["go", "one", "later", "two"]


async def test_a_hook_whose_own_thread_prompts_is_told_when_its_time_is_over():
    agent = Agent(ScriptedModel("one", "two"), tools=())
    loop = asyncio.get_running_loop()
    replies: list[Any] = []

    async def after_turn(ctx: Any) -> None:
        if replies:
            return
        work = directly(agent, ctx.session)
        replies.append(work)
        await loop.run_in_executor(
            None, lambda: asyncio.run_coroutine_threadsafe(work, loop).result(20)
        )

    agent.hooks.register("after_turn", after_turn, timeout=0.2)
    async with asyncio.timeout(20):
        reply = await agent.run("go")
        async with reply.session.lock:
            pass
    [told] = [record.error for record in reply.session.trace if record.error]
    assert "took longer than 0.2 s, while a prompt of its session waited" in told
    assert "use agent.queue(...)" in told
    assert reply.text == "one"


@pytest.mark.parametrize("waits", ["on the loop", "beside it"])
async def test_a_prompt_in_another_event_loop_is_refused_while_the_session_is_at_work(waits: str):
    agent = Agent(ScriptedModel("one", "two"), tools=())
    raised: list[str] = []

    def prompt(session: Any) -> None:
        with pytest.raises(SessionError) as told:
            asyncio.run(agent.prompt(session, "again"))
        raised.append(str(told.value))

    async def after_turn(ctx: Any) -> None:
        thread = threading.Thread(target=prompt, args=[ctx.session])
        thread.start()
        await asyncio.sleep(0) if waits == "on the loop" else await asyncio.to_thread(thread.join)
        thread.join()

    agent.hooks.register("after_turn", after_turn)
    async with asyncio.timeout(20):
        reply = await agent.run("go")
    assert "another event loop" in raised[0]
    assert reply.text == "one"


async def test_what_outlives_its_hook_may_prompt_the_session():
    agent = Agent(ScriptedModel("one", "two", "three"), tools=())
    over = asyncio.Event()
    tasks: list[Any] = []

    async def later(session: Any) -> str:
        await over.wait()
        return (await agent.prompt(session, "later")).text

    async def spawns(session: Any) -> str:
        return await asyncio.create_task(later(session))

    async def after_turn(ctx: Any) -> None:
        if not tasks:
            await asyncio.sleep(0)
            tasks.extend(
                [asyncio.create_task(later(ctx.session)), ctx.session.spawn(spawns(ctx.session))]
            )

    agent.hooks.register("after_turn", after_turn)
    async with asyncio.timeout(20):
        await agent.run("go")
        over.set()
        assert sorted(await asyncio.gather(*tasks)) == ["three", "two"]


async def test_a_prompt_that_is_queued_or_of_another_session_is_answered():
    agent = Agent(ScriptedModel("one", "two", "three"), tools=())
    other = await agent.new_session()
    done: list[str] = []

    async def before_run(ctx: Any) -> None:
        if ctx.session is not other and not done:
            done.append((await agent.prompt(other, "there")).text)
            agent.queue(ctx.session, "later")

    agent.hooks.register("before_run", before_run)
    reply = await agent.run("go")
    await asyncio.gather(*reply.session.tasks)
    assert done == ["one"]
    assert [m["content"] for m in reply.session.messages][1::2] == ["two", "three"]


async def test_a_prompt_that_never_had_its_turn_leaves_the_history_of_another_alone(
    make_echo, whole
):
    slow = make_echo("slow", wait=asyncio.Event())
    agent = Agent(ScriptedModel(call("slow", text="a"), "done"), tools=[slow])
    session = await agent.new_session()
    running = asyncio.create_task(agent.prompt(session, "go"))
    await slow.started.wait()
    waiting = asyncio.create_task(agent.prompt(session, "more"))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    slow.wait.set()
    assert (await running).text == "done"
    assert session.messages[2]["content"] == "echo a"
    whole(session.messages)


def test_outside_of_a_loop_nobody_waits_for_anybody():
    agent = Agent(ScriptedModel(), tools=())
    agent.prompt(Session(), "go").close()
