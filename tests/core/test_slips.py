"""Slips of whoever writes an extension: each is told with the name, the place and what to do."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from typing import Any, get_args

import pytest

from crow import Agent, AgentHook, ToolContext, hook
from crow.core.hooks.event_names import EventName
from crow.errors import CrowError, ExtensionError, HookError
from crow.hooks import NextCall
from crow.testing import AgentOf, ScriptedModel, call

PLACE = r"\(\S+test_slips\.py:\d+\)$"


def guard(call: Any) -> None: ...


class Misspelt:
    def befor_tool(self, call: Any) -> None: ...


class MisspeltHook(AgentHook):
    def before_tols(self, ctx: Any) -> None: ...


class Marked:
    @hook("before_tol")
    def guard(self, call: Any) -> None: ...


class AsyncInit:
    async def init_agent(self, agent: Agent) -> None: ...


class LazyInit:
    def init_agent(self, agent: Agent) -> Iterator[None]:
        yield


@pytest.mark.parametrize(
    ("thing", "told"),
    [
        (Misspelt, "hangs nothing on the agent: .*; befor_tool is no event; did you mean bef"),
        (MisspeltHook, "before_tols is no event; did you mean before_tool?"),
        (Marked, "there is no event 'before_tol'; did you mean 'before_tool'?"),
        (AsyncInit, "AsyncInit.init_agent is not run by a call: make it a plain def"),
        (LazyInit, "LazyInit.init_agent is not run by a call: make it a plain def"),
    ],
)
def test_what_cannot_be_used_is_told_with_its_place(
    agent_of: AgentOf, thing: Any, told: str
) -> None:
    with pytest.raises(CrowError, match=told) as raised:
        agent_of(hooks=[thing])
    assert re.search(PLACE, str(raised.value)), raised.value


class NoYield:
    async def lifespan(self, agent: Agent) -> None: ...


class NotAsync:
    def lifespan(self, agent: Agent) -> Iterator[None]:
        yield


class NoAgent:
    async def lifespan(self) -> AsyncIterator[None]:
        yield


@pytest.mark.parametrize(
    ("thing", "told"),
    [
        (NoYield, "lifespan must be an async def with one yield"),
        (NotAsync, "lifespan must be an async def with one yield"),
        (NoAgent, "takes 1 positional argument but 2 were given"),
    ],
)
async def test_a_lifespan_that_is_none_is_told_with_its_place(
    agent_of: AgentOf, thing: Any, told: str
) -> None:
    agent = agent_of(hooks=[thing])
    with pytest.raises(ExtensionError, match=told) as raised:
        await agent.start()
    assert re.search(PLACE, str(raised.value)), raised.value
    await agent.close()


def make_guard() -> Any:
    """Forgets to return the guard that it makes."""


@pytest.mark.parametrize("event", ["before_tool", "PreToolUse"])
def test_a_guard_that_is_none_is_refused_and_no_decorator(agent_of: AgentOf, event: str) -> None:
    agent = agent_of()
    with pytest.raises(HookError, match="None cannot be a hook"):
        agent.hooks.register(event, make_guard())
    with pytest.raises(HookError, match="None cannot be a hook"):
        agent.hooks.before_tool(make_guard())


@pytest.mark.parametrize(
    ("event", "near"),
    [
        ("pre_tool_use", "PreToolUse"),
        ("beforeTool", "before_tool"),
        ("session_start", "SessionStart"),
        ("befor_tool", "before_tool"),
    ],
)
def test_an_event_is_meant_in_whichever_letters(agent_of: AgentOf, event: str, near: str) -> None:
    with pytest.raises(HookError, match=f"did you mean '{near}'") as raised:
        agent_of().hooks.register(event, guard)
    assert re.search(PLACE, str(raised.value)), raised.value


def test_an_option_that_hook_does_not_have_is_refused_where_it_is_written() -> None:
    options: Any = {"jugde": True}
    with pytest.raises(HookError, match="hook has no option 'jugde'; did you mean 'judge'"):
        hook("before_tool", **options)


async def test_a_result_that_is_read_before_it_is_awaited_is_told(agent_of: AgentOf) -> None:
    async def around_tool(call_next: NextCall) -> Any:
        attempt: Any = call_next()
        try:
            return attempt.content
        finally:
            attempt.close()

    reply = await agent_of(call("LS", path="."), "Done.", hooks=[around_tool]).run("Go")
    told = str(reply.session.messages[2]["content"])
    assert "'content' is not there before it is awaited: write await in front of the call" in told


async def test_a_guard_that_does_not_await_its_question_lets_nothing_pass(
    agent_of: AgentOf,
) -> None:
    async def before_tool(ctx: ToolContext) -> str | None:
        question: Any = ctx.ui.confirm("Really?")
        try:
            return None if question else "no"
        finally:
            question.close()

    reply = await agent_of(call("LS", path="."), "Done.", hooks=[before_tool]).run("Go")
    told = str(reply.session.messages[2]["content"])
    assert "could not decide: TypeError: it is neither true nor false before it is awaited" in told


async def test_a_field_that_is_none_is_told_with_the_one_that_is_meant(agent_of: AgentOf) -> None:
    def before_tool(ctx: Any) -> None:
        ctx.arg = {"path": ".."}

    reply = await agent_of(call("LS", path="."), "Done.", hooks=[before_tool]).run("Go")
    told = str(reply.session.messages[2]["content"])
    assert "must not change arg at before_tool; did you mean 'args'?" in told


def test_editors_complete_all_events() -> None:
    assert {*get_args(EventName)} == {*Agent(ScriptedModel()).hooks.names}


class Options:
    def __init__(self, file: str = "") -> None: ...


class Notes:
    options = Options

    def __init__(self, options: Options) -> None: ...


def test_a_class_is_made_with_the_fields_of_its_options_and_says_so(agent_of: AgentOf) -> None:
    told = "needs the option 'options' of Notes, which is made with the fields of Options"
    with pytest.raises(ExtensionError, match=told):
        agent_of(hooks=[Notes])


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"hooks": Misspelt()}, r"hooks takes a list: \[<"),
        ({"tools": "Bash"}, r"tools takes a list: \['Bash'\]"),
        (
            {"llm": ScriptedModel},
            r"ScriptedModel is a class: give one that is made, ScriptedModel\(",
        ),
    ],
)
def test_what_an_agent_is_made_of_is_looked_at_when_it_is_made(given: Any, told: str) -> None:
    with pytest.raises(TypeError, match=told):
        Agent(**given)


async def test_the_place_of_a_wrap_that_fails_is_told_once(agent_of: AgentOf) -> None:
    async def around_tool(call_next: NextCall) -> Any:
        raise ValueError("not today")

    reply = await agent_of(call("LS", path="."), "Done.", hooks=[around_tool]).run("Go")
    told = str(reply.session.messages[2]["content"])
    assert re.fullmatch(
        r"ValueError: not today \(in the hook around_tool, \S+test_slips\.py:\d+; .*\)", told
    )
    assert told.count("test_slips.py") == 1, told


def test_options_for_what_is_made_already_are_refused(agent_of: AgentOf) -> None:
    options: Any = {"limit": 3}
    with pytest.raises(ExtensionError, match=r"takes no options: limit \(use its class\)"):
        agent_of().use(Marked(), **options)


async def test_a_lifespan_that_yields_twice_is_told_with_its_place(
    agent_of: AgentOf, caplog: pytest.LogCaptureFixture
) -> None:
    class Twice:
        async def lifespan(self, agent: Agent) -> AsyncIterator[None]:
            yield
            yield

    async with agent_of(hooks=[Twice]) as agent:
        await agent.start()
    (told,) = caplog.messages
    assert told.startswith("the extension twice failed to stop: RuntimeError")
    assert re.search(PLACE, told), told
