"""Hooks that somebody has decorated: they are called as what they are, not as what they wrap."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any

import pytest
from tests.core.conftest import Echo

from crow.core.agent import Agent
from crow.core.verdicts import Deny
from crow.testing import ScriptedModel, call


def for_bash_alone(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A plain function around an async one, which it does not always call."""

    @functools.wraps(fn)
    def inner(ctx: Any) -> Any:
        return fn(ctx) if ctx.call.name == "Bash" else None

    return inner


def patient(fn: Callable[..., Any]) -> Callable[..., Any]:
    """An async function around another one, before which it waits."""

    @functools.wraps(fn)
    async def inner(ctx: Any) -> Any:
        await asyncio.sleep(0)
        return await fn(ctx)

    return inner


class Guard:
    """Calls a function that it was made with."""

    def __init__(self, func: Callable[..., Any]) -> None:
        self.func = func

    async def __call__(self, ctx: Any) -> Any:
        await asyncio.sleep(0)
        return await self.func(ctx)


async def says_nothing(ctx: Any) -> None:
    """Wait for nothing."""


async def denies(ctx: Any) -> Deny:
    return Deny("no")


@pytest.mark.parametrize("decorated", [for_bash_alone, patient, Guard])
async def test_a_decorated_hook_that_has_no_opinion_holds_nothing_up(decorated: Any):
    echo = Echo()
    model = ScriptedModel(call("echo", text="a"), "done")
    async with Agent(model, tools=[echo]) as agent:
        agent.hooks.register("before_tool", decorated(says_nothing))
        reply = await agent.run("go")
    assert reply.session.messages[2]["content"] == "echo a"


@pytest.mark.parametrize("decorated", [patient, Guard])
async def test_a_decorated_hook_denies_in_its_own_words(decorated: Any):
    echo = Echo()
    model = ScriptedModel(call("echo", text="a"), "done")
    async with Agent(model, tools=[echo]) as agent:
        agent.hooks.register("before_tool", decorated(denies))
        reply = await agent.run("go")
    assert reply.session.messages[2]["content"] == "no"


class Unready:
    """An answer of which nobody can see what it has, like a proxy without anything behind it."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"no {name} here")


@pytest.mark.parametrize("event", ["before_run", "before_llm_request", "before_tool", "after_turn"])
async def test_an_answer_that_shows_nothing_of_itself_is_its_hooks_error(event: str):
    def answers_unready(ctx: Any) -> Any:
        return Unready()

    model = ScriptedModel(call("echo", text="a"), "done", leftover="allow")
    async with Agent(model, tools=[Echo()]) as agent:
        agent.hooks.register(event, answers_unready)
        session = await agent.new_session()
        reply = await agent.prompt(session, "go")
    assert reply.error is None
    errors = [record.error for record in session.trace if record.hook == "answers_unready"]
    assert any(errors) == (event != "after_turn")  # the answers of who looks on count for nothing
