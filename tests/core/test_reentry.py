"""A hook that prompts the session that waits for it is told so at once, wherever it hangs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from crow.core.agent import Agent
from crow.core.calls import ToolKind
from crow.core.errors import SessionError
from crow.core.points import POINTS
from crow.core.session import Session
from crow.testing import ScriptedModel, call

SAID = "a hook cannot wait for its own session: use agent.queue(...)"
OFTEN = [
    point.name
    for point in POINTS
    if point.name not in ("on_permission", "on_notification", "after_compact", "before_compact",
                          "on_error", "before_command")
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


@pytest.mark.parametrize("way", [directly, by_run, in_a_task, waited_for, gathered, spawned])
@pytest.mark.parametrize("point", OFTEN)
async def test_at_every_point_and_by_every_path(echo, whole, point, way):
    raised: list[str] = []
    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])

    async def again(ctx: Any) -> None:
        try:
            await way(agent, ctx.session)
        except SessionError as error:
            raised.append(str(error))

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
    assert set(raised) == {SAID}
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
