"""A notification when the answer lies there and nobody types anything."""

from __future__ import annotations

import asyncio

from crow import Agent
from crow.extensions.idle import IdleHook
from crow.testing import ScriptedModel


async def test_each_answer_that_nobody_follows_up_is_told_of_once():
    heard: list[str] = []
    told = asyncio.Event()

    def on_notification(kind: str, message: str) -> None:
        heard.append(f"{kind}: {message}")
        told.set()

    hooks = [IdleHook(after=0), on_notification]
    async with Agent(ScriptedModel("One.", "Two."), hooks=hooks, tools=[]) as agent:
        reply = await agent.run("Go")
        async with asyncio.timeout(30):
            await told.wait()
        told.clear()
        await agent.run("Go on", session=reply.session)
        async with asyncio.timeout(30):
            await told.wait()
    assert heard == ["idle_prompt: Crow is waiting for your input"] * 2


async def test_the_next_prompt_and_the_end_of_the_session_end_the_waiting():
    heard: list[str] = []

    def on_notification(kind: str) -> None:
        heard.append(kind)

    hooks = [IdleHook(after=3600), on_notification]
    async with Agent(ScriptedModel("One.", "Two."), hooks=hooks, tools=[]) as agent:
        session = (await agent.run("Go")).session
        first: asyncio.Task[object] = session.cache["idle"]
        await agent.run("Go on", session=session)
        second: asyncio.Task[object] = session.cache["idle"]
        assert (first.cancelled(), second.done()) == (True, False)
    assert second.cancelled()
    assert heard == []


async def test_where_nobody_listens_nothing_waits():
    async with Agent(ScriptedModel("One."), hooks=[IdleHook(after=0)], tools=[]) as agent:
        session = (await agent.run("Go")).session
        assert "idle" not in session.cache
