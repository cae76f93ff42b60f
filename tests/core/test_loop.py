"""The loop stays a page, and does what a page can say."""

from __future__ import annotations

import ast
import asyncio
import inspect
import sys
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from crow.core import loop
from crow.core.agent import Agent
from crow.core.errors import ModelError
from crow.core.events import Notice, UserMessage
from crow.core.ports.llm import Completion
from crow.core.tools import Call
from crow.testing import ScriptedModel, call, text

SOURCE = inspect.getsource(loop)


def test_the_loop_is_a_page_and_each_function_a_paragraph():
    assert len(SOURCE.splitlines()) <= 120
    for node in ast.walk(ast.parse(SOURCE)):
        if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef):
            assert node.end_lineno is not None
            assert node.end_lineno - node.lineno < 25, node.name


def test_the_loop_reads_from_react_to_go_on():
    names = [n.name for n in ast.parse(SOURCE).body if isinstance(n, ast.AsyncFunctionDef)]
    assert names == ["react", "turn", "go_on"]


def test_the_loop_imports_the_core_and_little_of_the_standard_library():
    imported = {
        node.module or ""
        for node in ast.walk(ast.parse(SOURCE))
        if isinstance(node, ast.ImportFrom)
    } | {a.name for n in ast.walk(ast.parse(SOURCE)) if isinstance(n, ast.Import) for a in n.names}
    foreign = {name.split(".")[0] for name in imported} - sys.stdlib_module_names
    assert foreign == {"crow"}
    assert all(name.startswith("crow.core.") for name in imported if name.startswith("crow"))
    assert len([name for name in imported if name.startswith("crow.")]) <= 8


@pytest.mark.parametrize(
    "word",
    ["rule", "compact", "skill", "persist", "mcp", "retry", "bash", "sqlite", "plan", "memory"],
)
def test_the_loop_has_no_word_of_what_hangs_on_it(word):
    assert word not in SOURCE.lower().replace("call.rule(ruling)", "")


async def test_calls_run_side_by_side_and_results_stand_in_source_order(make_echo):
    first, second = make_echo("first", wait=asyncio.Event()), make_echo("second")

    async def finish_after_the_second() -> None:
        await second.started.wait()
        first.wait.set()

    agent = Agent(
        ScriptedModel([call("first", text="1"), call("second", text="2")], "done"),
        tools=[first, second],
    )
    helper = asyncio.create_task(finish_after_the_second())
    async with asyncio.timeout(30):
        reply = await agent.run("go")
    await helper

    assert [m["content"] for m in reply.session.messages[2:4]] == ["echo 1", "echo 2"]


async def test_one_failing_call_does_not_disturb_the_others(echo, make_echo):
    errors: list[tuple[str, str]] = []
    bad = make_echo("bad", fail=OSError("disk on fire"))
    agent = Agent(
        ScriptedModel([call("bad", text="x"), call("echo", text="y")], "done"), tools=[bad, echo]
    )
    agent.hooks.register("on_error", lambda error, where: errors.append((str(error), where)))
    reply = await agent.run("go")

    failed, fine = (m["content"] for m in reply.session.messages[2:4])
    assert str(failed).startswith("OSError: disk on fire (")
    assert fine == "echo y"
    assert errors == [("disk on fire", "tool")]


class Faulty:
    """A model whose call cannot run."""

    model = "faulty"
    context_window = None

    def __init__(self, *completions: Completion) -> None:
        self.completions = list(completions)

    async def stream(self, request: Any) -> AsyncGenerator[Any, None]:
        yield self.completions.pop(0)


async def test_a_call_with_a_fault_is_answered_and_never_run(echo, watcher):
    cut = Call("1", "echo", {}, '{"text": "a', fault="the arguments were cut off, nothing was run")
    agent = Agent(Faulty(Completion(calls=(cut,)), Completion("done")), tools=[echo])
    consulted: list[str] = []
    agent.hooks.register("before_tool", lambda ctx: consulted.append("asked"))
    reply = await agent.run("go", client=watcher)

    assert reply.session.messages[2]["content"] == "the arguments were cut off, nothing was run"
    assert reply.session.messages[1]["tool_calls"][0]["function"]["arguments"] == "{}"
    assert not consulted
    assert not echo.ran


async def test_an_unknown_tool_is_an_error_that_names_the_ones_there_are(echo, watcher):
    agent = Agent(ScriptedModel(call("Nope", x=1), "done"), tools=[echo])
    reply = await agent.run("go", client=watcher)

    assert reply.session.messages[2]["content"] == "there is no tool 'Nope'; there are: echo"
    assert not watcher.asked


@pytest.mark.parametrize(
    "args, wrong",
    [
        ({}, "'text' is missing"),
        ({"text": 1}, "'text' must be string, not 1"),
        ({"text": "a", "times": True}, "'times' must be integer, not true"),
        ({"text": "a", "more": 1}, "there is no 'more'; there are: text, times"),
    ],
)
async def test_arguments_that_do_not_fit_the_schema_are_an_error_result(echo, args, wrong):
    agent = Agent(ScriptedModel(call("echo", **args), "done"), tools=[echo])
    reply = await agent.run("go")

    assert reply.session.messages[2]["content"] == f"echo: {wrong}"


@pytest.mark.parametrize(
    "finish, stop_reason",
    [("stop", "end_turn"), ("length", "max_tokens"), ("content_filter", "refusal")],
)
async def test_the_models_reason_to_end_is_the_runs(finish, stop_reason):
    agent = Agent(ScriptedModel(text("well", finish=finish)), tools=())
    assert (await agent.run("go")).stop_reason == stop_reason


async def test_an_empty_answer_leaves_no_empty_message(whole):
    agent = Agent(Faulty(Completion("")), tools=())
    reply = await agent.run("go")

    assert reply.session.messages == [{"role": "user", "content": "go"}]


async def test_a_model_that_ends_without_an_answer_is_an_error_and_the_next_prompt_works():
    class Mute:
        model = "mute"
        context_window = None
        asked = 0

        async def stream(self, request: Any) -> AsyncGenerator[Any, None]:
            self.asked += 1
            if self.asked > 1:
                yield Completion("here I am")

    agent = Agent(Mute(), tools=())
    session = await agent.new_session()
    reply = await agent.prompt(session, "go")
    assert (reply.stop_reason, reply.detail) == (
        "error",
        "the model ended without an answer: the last that it yields is a Completion",
    )
    assert isinstance(reply.error, ModelError)
    assert (await agent.prompt(session, "again")).text == "here I am"


async def test_what_a_hook_queues_after_a_run_is_prompted_next(watcher):
    agent = Agent(ScriptedModel("one", "two"), tools=())

    def again(ctx: Any) -> None:
        if ctx.prompt == "go":
            agent.queue(ctx.session, "go on")

    agent.hooks.register("post_request", again)
    finished = asyncio.Event()
    agent.hooks.register("after_run", lambda prompt: prompt == "go on" and finished.set())
    reply = await agent.run("go", client=watcher)
    async with asyncio.timeout(30):
        await finished.wait()

    assert [m["content"] for m in reply.session.messages] == ["go", "one", "go on", "two"]
    assert [e.content for e in watcher.events if isinstance(e, UserMessage)] == ["go on"]


async def test_the_failure_of_a_queued_prompt_is_told_to_the_user(watcher):
    agent = Agent(ScriptedModel(ModelError("no more money", kind="billing")), tools=())
    session = await agent.new_session(client=watcher)
    agent.queue(session, "go on")
    await asyncio.gather(*session.tasks)
    (notice,) = [e for e in watcher.events if isinstance(e, Notice)]
    assert (notice.text, notice.severity) == ("no more money", "error")


async def test_steering_reaches_the_model_with_the_next_request(make_echo):
    slow = make_echo(wait=asyncio.Event())
    model = ScriptedModel(call("echo", text="a"), "done")
    agent = Agent(model, tools=[slow])
    session = await agent.new_session()
    running = asyncio.create_task(agent.prompt(session, "go"))
    await slow.started.wait()
    agent.steer(session, "the other way")
    slow.wait.set()
    await running

    assert model.asked[1]["messages"][-1] == {"role": "user", "content": "the other way"}


async def test_a_hook_cannot_wait_for_its_own_session():
    from crow.core.errors import SessionError

    agent = Agent(ScriptedModel("one"), tools=())
    raised: list[str] = []

    async def prompt_again(ctx: Any) -> None:
        try:
            await agent.prompt(ctx.session, "again")
        except SessionError as error:
            raised.append(str(error))

    agent.hooks.register("after_run", prompt_again)
    await agent.run("go")
    assert raised == ["a hook cannot wait for its own session: use agent.queue(...)"]
