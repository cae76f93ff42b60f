"""Several sub-agents at once: side by side, in order, and gone when their caller is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.extensions.branching import Branching

from crow import Agent, tool
from crow.core.events import Event
from crow.core.ports.client import NullClient, PermissionRequest
from crow.core.session import Session
from crow.core.verdicts import Ask
from crow.extensions import PersistenceHook, SubagentsHook
from crow.testing import call, text
from crow.testing.model import Line


def hand_out(*prompts: str) -> list[Any]:
    return [call("Agent", description=prompt, prompt=prompt) for prompt in prompts]


def assert_whole(session: Session) -> None:
    """Every call of a history has its answer, right behind it."""
    waiting: list[str] = []
    for message in session.messages:
        if message["role"] == "tool":
            waiting.remove(message.get("tool_call_id", ""))
            continue
        assert not waiting
        waiting = [each["id"] for each in message.get("tool_calls", ())]
    assert not waiting


class Stage:
    """A caller with sub-agents, every one of which is watched."""

    def __init__(self, script: Callable[[str], Sequence[Line]], **options: Any) -> None:
        self.sessions: list[Session] = []
        extension = SubagentsHook((), **options.pop("subagents", {}))
        hooks = [*options.pop("hooks", ()), extension]
        self.agent = Agent(llm=Branching(script), hooks=hooks, **options)
        self.agent.hooks.register("SubagentStart", lambda ctx: self.sessions.append(ctx.session))


async def test_they_work_side_by_side_and_their_results_come_in_the_order_of_the_calls():
    here = asyncio.Barrier(3)
    order: list[str] = []

    @tool
    async def meet(who: str) -> str:
        """Wait for the others."""
        await here.wait()
        return who

    def script(prompt: str) -> Sequence[Line]:
        if prompt == "Go":
            return [hand_out("a", "b", "c"), "Ok."]
        return [call("meet", who=prompt), f"{prompt} was there."]

    stage = Stage(script, tools=[meet])
    stage.agent.hooks.register("SubagentStop", lambda ctx: order.append(ctx.session.title))
    reply = await stage.agent.run("Go")
    said = [m.get("content") for m in reply.session.messages if m["role"] == "tool"]
    assert said == ["a was there.", "b was there.", "c was there."]
    assert sorted(order) == ["a", "b", "c"]


async def test_one_that_fails_does_not_harm_the_others():
    def script(prompt: str) -> Sequence[Line]:
        if prompt == "Go":
            return [hand_out("good", "bad", "fine"), "Ok."]
        return [RuntimeError("broken")] if prompt == "bad" else [f"{prompt}."]

    reply = await Stage(script, tools=[]).agent.run("Go")
    said = [m.get("content") for m in reply.session.messages if m["role"] == "tool"]
    expected = "the sub-agent general-purpose did not finish: broken."
    assert said == ["good.", expected, "fine."]


async def test_the_tokens_of_all_of_them_count():
    def script(prompt: str) -> Sequence[Line]:
        usage: Any = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
        return [hand_out("a", "b"), "Ok."] if prompt == "Go" else [text("Done.", usage=usage)]

    reply = await Stage(script, tools=[]).agent.run("Go")
    assert reply.usage["total_tokens"] == reply.session.usage["total_tokens"] == 10


class Hang:
    """A tool that waits until it is let go; where it is deaf, cancelling is no way."""

    name, description, kind = "hang", "Wait.", "other"

    def __init__(self, deaf: bool = False) -> None:
        self.parameters: dict[str, Any] = {"type": "object", "properties": {}}
        self.deaf = deaf
        self.begun = asyncio.Semaphore(0)
        self.free = asyncio.Event()

    async def run(self, args: dict[str, Any], ctx: Any) -> str:
        self.begun.release()
        while not self.free.is_set():
            try:
                await self.free.wait()
            except asyncio.CancelledError:
                if not self.deaf:
                    raise
        return "let go"


@pytest.mark.parametrize("deaf", [False, True])
async def test_they_are_cancelled_with_their_caller(deaf: bool):
    def script(prompt: str) -> Sequence[Line]:
        return [hand_out("a", "b"), "Ok."] if prompt == "Go" else [call("hang"), "Done."]

    hang = Hang(deaf)
    stage = Stage(script, tools=[hang])
    session = await stage.agent.new_session()
    run = asyncio.create_task(stage.agent.prompt(session, "Go"))
    for _ in "ab":
        await hang.begun.acquire()
    stage.agent.cancel(session)
    async with asyncio.timeout(30):
        reply = await run
    assert reply.stop_reason == "cancelled"
    assert_whole(session)
    hang.free.set()
    if late := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(late, timeout=30)
    for inner in stage.sessions:
        assert_whole(inner)
        assert inner.messages[-1].get("content") == "cancelled by the user"


class Hesitant(NullClient):
    """A client whose user takes some steps of the event loop to answer."""

    async def update(self, session_id: str, event: Event) -> None:
        await asyncio.sleep(0)

    async def permission(self, session_id: str, request: PermissionRequest) -> str | None:
        for _ in range(7):
            await asyncio.sleep(0)
        return "allow_once"


@pytest.mark.slow
async def test_wherever_they_are_cancelled_every_history_is_whole_and_nothing_goes_on(
    tmp_path: Path,
):
    @tool
    async def change(what: str) -> str:
        """Change something."""
        await asyncio.sleep(0)
        return f"changed {what}"

    usage: Any = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}

    def script(prompt: str) -> Sequence[Line]:
        if prompt == "Go":
            return [hand_out("a", "deep", "c"), "Ok."]
        if prompt == "deep":
            return [hand_out("d", "e"), "Deep."]
        changes = [call("change", what=prompt), call("change", what="more", usage=usage)]
        return [["Hm.", *changes], text(f"{prompt}.", usage=usage)]

    before = asyncio.all_tasks()
    reasons: set[str] = set()
    step = 1
    while "end_turn" not in reasons:
        stage = Stage(script, tools=[change], subagents={"depth": 2})
        stage.agent.hooks.register("before_tool", lambda ctx: Ask("sure?"), tools={"change"})
        async with stage.agent:
            session = await stage.agent.new_session(tmp_path, client=Hesitant())
            run = asyncio.create_task(stage.agent.prompt(session, "Go"))
            for _ in range(step):
                await asyncio.sleep(0)
            stage.agent.cancel(session)
            reply = await asyncio.wait_for(run, 30)
            reasons.add(reply.stop_reason)
            for each in (session, *stage.sessions):
                assert_whole(each)
            assert all(each.closed and not each.busy for each in stage.sessions)
            used = sum(
                each.usage.get("total_tokens", 0) for each in stage.sessions if each.title != "deep"
            )
            assert session.usage.get("total_tokens", 0) == used
        assert asyncio.all_tasks() == before
        step += 3
    assert reasons == {"cancelled", "end_turn"}
    assert step > 60


async def test_a_cancelled_one_is_stored_whole(tmp_path: Path):
    def script(prompt: str) -> Sequence[Line]:
        return [hand_out("a"), "Ok."] if prompt == "Go" else [call("hang"), "Done."]

    hang = Hang()
    hook = PersistenceHook(tmp_path / "crow.db")
    stage = Stage(script, tools=[hang], hooks=[hook])
    async with stage.agent:
        session = await stage.agent.new_session(tmp_path)
        run = asyncio.create_task(stage.agent.prompt(session, "Go"))
        await hang.begun.acquire()
        stage.agent.cancel(session)
        await run
        history = (await hook.store.segments(stage.sessions[0].id))[0]
    assert [message["role"] for message in history] == ["user", "assistant", "tool"]
    assert history[-1].get("content") == "cancelled by the user"
