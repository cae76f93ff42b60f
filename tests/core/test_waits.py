"""Who is named for blocking: a hook that does it, and not one that others keep from running."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest

from crow import NullClient, ToolContext, ToolResult, tool
from crow.core.agent import Agent
from crow.core.ports.client import Question
from crow.hooks import NextCall
from crow.testing import ScriptedModel, call

SPINS = "while True: pass"
needs_linux = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="no system to say for what a thread waits"
)


def compute(seconds: float) -> None:
    """Compute for so long, however long that takes."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


@contextmanager
def a_busy_cpu() -> Generator[None]:
    """Have one CPU alone, together with three others who want it."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    others = [subprocess.Popen([sys.executable, "-c", SPINS]) for _ in range(3)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()
        os.sched_setaffinity(0, before)


@contextmanager
def a_busy_thread() -> Generator[None]:
    """Share the GIL with a thread that computes."""
    over = threading.Event()

    def spin() -> None:
        while not over.is_set():
            pass

    thread = threading.Thread(target=spin)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


async def named(work: Callable[[], object], *, later: bool, caplog: Any) -> list[str]:
    agent = Agent(ScriptedModel("done"), tools=())

    async def waits(ctx: Any) -> None:
        await asyncio.sleep(0)
        work()

    def does(ctx: Any) -> None:
        work()

    agent.hooks.register("after_turn", waits if later else does)
    with caplog.at_level(logging.WARNING):
        await agent.run("go")
    await agent.close()
    return [line for line in caplog.messages if "blocked everything" in line]


@needs_linux
@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("busy", [a_busy_cpu, a_busy_thread])
async def test_a_hook_that_waits_for_the_cpu_or_the_gil_blocks_nobody(busy, later, caplog):
    took = list[float]()

    def work() -> None:
        began = time.perf_counter()
        compute(0.03)
        took.append(time.perf_counter() - began)

    with busy():
        assert await named(work, later=later, caplog=caplog) == []
    assert took[0] > 0.05


async def test_a_hook_in_whose_time_garbage_is_collected_blocks_nobody(caplog):
    took = list[float]()
    heap = [[number] for number in range(1_500_000)]

    def work() -> None:
        began = time.perf_counter()
        while time.perf_counter() < began + 0.06:
            gc.collect()
        took.append(time.perf_counter() - began)

    assert await named(work, later=False, caplog=caplog) == []
    assert took[0] > 0.05
    assert heap


@pytest.mark.slow
@needs_linux
@pytest.mark.parametrize("work", [lambda: compute(0.09), lambda: time.sleep(0.12)])
@pytest.mark.parametrize("busy", [a_busy_cpu, a_busy_thread])
async def test_a_hook_that_computes_or_sleeps_is_named_however_busy_the_machine_is(
    busy, work, caplog
):
    with busy():
        (told,) = await named(work, later=False, caplog=caplog)
    assert " blocked everything for 0." in told


def test_an_agent_that_is_used_in_one_thread_after_another_looks_at_the_one_that_it_is_in():
    agent = Agent(ScriptedModel(*["done"] * 4), tools=())
    agent.hooks.register("after_turn", lambda ctx: None)
    replies = list[Any]()
    for _ in range(4):
        thread = threading.Thread(target=lambda: replies.append(asyncio.run(agent.run("go"))))
        thread.start()
        thread.join()
    assert [reply.text for reply in replies] == ["done"] * 4
    assert all(record.error is None for reply in replies for record in reply.session.trace)


async def test_a_hooks_own_time_is_without_the_user_and_what_it_goes_around() -> None:
    waited: dict[str, float] = {}

    class User(NullClient):
        answers = True

        async def ask(self, session_id: str, question: Question) -> bool:
            began = time.perf_counter()
            await asyncio.sleep(0.3)
            waited["asks"] = time.perf_counter() - began
            return True

    @tool
    async def slow() -> str:
        """Take time."""
        began = time.perf_counter()
        await asyncio.sleep(0.3)
        waited["goes_around"] = time.perf_counter() - began
        return "done"

    async def asks(ctx: ToolContext) -> None:
        await ctx.ui.confirm("Really?")

    async def goes_around(ctx: ToolContext, call_next: NextCall) -> ToolResult:
        return await call_next()

    async with Agent(ScriptedModel(call("slow"), "Done."), tools=[slow]) as agent:
        agent.hooks.before_tool(asks)
        agent.hooks.around_tool(goes_around)
        began = time.perf_counter()
        reply = await agent.run("Go", client=User())
        total = time.perf_counter() - began
        own = {each.hook: each.seconds for each in reply.session.trace if each.hook in waited}
        assert own.keys() == waited.keys()
        assert 0 < sum(own.values()) <= total - sum(waited.values())
