"""What a hook assigns is checked like what it answers: a wrong one is that hook's own error."""

from __future__ import annotations

import asyncio
from dataclasses import fields
from typing import Any

import pytest

from crow.core.agent import Agent
from crow.core.catalog import Command
from crow.core.errors import ExtensionError, HookError
from crow.core.events import TextDelta
from crow.core.hooks.context import Context
from crow.core.hooks.contexts import WorktreeContext
from crow.core.hooks.points import POINTS
from crow.core.hooks.run_context import Reply, RunContext
from crow.core.ports.client import NullClient, PermissionRequest
from crow.core.ports.llm import Completion
from crow.core.session import Session
from crow.core.tool_call import run_tool
from crow.core.tools import ToolResult
from crow.core.verdicts import Allow, Answer, Ask, Continue, Deny, Stop
from crow.extensions.system_prompt import SystemPromptHook
from crow.testing import ScriptedModel, call

NONSENSE: tuple[Any, ...] = (42, object(), ["x", 3], {1: 2}, {"a": object()}, ("a",))
CHANGEABLE = [(point.name, field) for point in POINTS for field in point.changes]
FIXED = [
    (point.name, field)
    for point in POINTS
    for field in ("prompt", "args", "result", "reply", "messages", "summary", "update", "changes")
    if field not in point.changes
]


def playing(echo: Any) -> Agent:
    return Agent(ScriptedModel(call("echo", text="a"), "done", leftover="allow"), tools=[echo])


class Yes(NullClient):
    """Somebody who permits everything."""

    answers = True

    async def permission(self, session_id: str, request: PermissionRequest) -> str | None:
        return "allow_once"


async def play(agent: Agent) -> Any:
    """Make every point fire; the reply of the prompt."""

    async def command(ctx: Any) -> str:
        return "expanded"

    agent.add_command(Command("go", "", command))
    agent.hooks.register("before_tool", lambda ctx: Ask("?"))
    agent.hooks.register("after_turn", lambda ctx: 1 / 0)
    session = await agent.new_session(client=Yes())
    await agent.configure(session, mode="plan")
    reply = await agent.prompt(session, "/go on")
    await asyncio.gather(*session.tasks, return_exceptions=True)
    await agent.notify(session, "idle", "")
    await Context(agent, session).change_directory("/")
    tree = WorktreeContext(agent, session, "tree")
    await agent.hooks.on_worktree_create.fire(tree)
    await agent.hooks.on_worktree_remove.fire(tree)
    await Context(agent, session).compact([], "s")
    await agent.close()
    return reply


def records(reply: Any, hook: str) -> list[Any]:
    return [record for record in reply.session.trace if record.hook == hook]


def hang(agent: Agent, point: str, act: Any) -> None:
    """Hang what is to be blamed at a point, and somebody innocent behind it."""

    def culprit(ctx: Any) -> None:
        act(ctx)

    async def wrapping(ctx: Any, call_next: Any) -> Any:
        act(ctx)
        return await call_next()

    async def innocent(ctx: Any, call_next: Any) -> Any:
        return await call_next()

    if point.startswith("around"):
        agent.hooks.register(point, wrapping)
        agent.hooks.register(point, innocent)
    else:
        agent.hooks.register(point, culprit)
        agent.hooks.register(point, lambda ctx: None)


@pytest.mark.parametrize("value", NONSENSE, ids=["int", "object", "list", "keys", "deep", "tuple"])
@pytest.mark.parametrize("point, field", CHANGEABLE)
async def test_nonsense_that_is_assigned_is_that_hooks_error_at_once_and_nobody_elses(
    echo, point, field, value
):
    if field == "changes":
        value = {"mode": 3} if value == {1: 2} else value
    raised: list[str] = []
    agent = playing(echo)

    def assign(ctx: Any) -> None:
        try:
            setattr(ctx, field, value)
        except TypeError as error:
            raised.append(str(error))
            raise

    hang(agent, point, assign)
    reply = await play(agent)
    assert raised, "the assignment itself raises"
    assert f"ctx.{field}" in raised[0]
    assert " must be " in raised[0]
    blamed = records(reply, "culprit") + records(reply, "wrapping")
    assert all(f"({__file__}:" in str(record.error) for record in blamed)
    innocent = [r for r in records(reply, "<lambda>") if "ZeroDivision" not in str(r.error)]
    assert all(record.error is None for record in innocent)


@pytest.mark.parametrize("point, field", FIXED)
async def test_what_a_hook_must_not_change_it_cannot_change(echo, point, field):
    raised: list[str] = []
    agent = playing(echo)

    def assign(ctx: Any) -> None:
        with pytest.raises(AttributeError) as error:
            setattr(ctx, field, "x")
        raised.append(str(error.value))

    hang(agent, point, assign)
    await play(agent)
    assert set(raised) == {f"must not change {field} at {point}"}


def bad(point: str) -> Any:
    """What a hook does in place."""

    def before_tool(args: Any) -> None:
        args[3] = object()

    def before_llm_request(messages: Any, params: Any) -> None:
        messages.append("nonsense")

    def after_loop(reply: Any) -> None:
        reply.text = 42

    def after_tool(args: Any) -> None:
        args["text"] = "b"

    def on_message(message: Any) -> None:
        message["content"] = "b"

    def on_config_change(changes: Any) -> None:
        changes["mode"] = 3

    def after_turn(results: Any) -> None:
        results[0].result = 3

    return locals()[point]


@pytest.mark.parametrize(
    "point",
    "before_tool before_llm_request after_loop after_tool on_message on_config_change".split(),
)
async def test_nonsense_that_is_made_in_place_is_that_hooks_error_too(echo, whole, point):
    agent = playing(echo)
    agent.hooks.register(point, bad(point))
    session = await agent.new_session()
    assert (await agent.configure(session, mode="plan") is None) is (point != "on_config_change")
    reply = await agent.run("go", session=session)
    errors = [record.error for record in records(reply, point)]
    assert errors
    assert any(f"({__file__}:" in str(error) for error in errors)
    assert reply.text == "done"
    whole(reply.session.messages)
    said = [message["content"] for message in reply.session.messages if message["role"] == "tool"]
    assert said == ["echo a"] or point == "before_tool"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Deny(5),  # type: ignore[arg-type]
        lambda: Allow(["x"]),  # type: ignore[arg-type]
        lambda: Ask("?", options="abc"),  # type: ignore[arg-type]
        lambda: Stop(5),  # type: ignore[arg-type]
    ],
)
async def test_a_verdict_made_of_nonsense_is_no_verdict(echo, wrong):
    agent = playing(echo)
    agent.hooks.register("before_tool", wrong)
    reply = await agent.run("go")
    assert "<lambda> could not decide: TypeError" in str(reply.session.messages[2]["content"])
    assert not echo.ran


@pytest.mark.parametrize(
    "point, answer",
    [
        ("after_tool", ToolResult(42)),  # type: ignore[arg-type]
        ("after_tool", Answer(ToolResult([3]))),  # type: ignore[list-item]
        ("after_llm_response", Completion(text=5)),  # type: ignore[arg-type]
        ("after_llm_response", Completion(calls=("x",))),  # type: ignore[arg-type]
        ("before_llm_request", [{"role": "banana", "content": "x"}]),
        ("before_llm_request", [{"role": "tool", "tool_call_id": "x", "content": "x"}]),
        ("on_update", TextDelta(5)),  # type: ignore[arg-type]
        ("on_stop", Continue(5)),  # type: ignore[arg-type]
        ("on_stop", Stop(5)),  # type: ignore[arg-type]
    ],
)
async def test_an_answer_made_of_nonsense_changes_nothing_and_the_tool_did_what_it_did(
    echo, whole, point, answer
):
    agent = playing(echo)
    agent.hooks.register(point, lambda ctx: answer)
    reply = await agent.run("go")
    assert any("TypeError" in str(record.error) for record in reply.session.trace)
    assert reply.text == "done"
    assert reply.session.messages[2]["content"] == "echo a"
    whole(reply.session.messages)


async def test_a_result_of_the_wrong_type_leaves_the_call_recorded_as_what_it_was(echo, watcher):
    agent = playing(echo)
    outcomes: list[Any] = []

    def culprit(ctx: Any) -> None:
        ctx.result = "a text"

    agent.hooks.register("after_tool", lambda outcome, result: outcomes.append((outcome, result)))
    agent.hooks.register("after_tool", culprit)
    reply = await agent.run("go", client=watcher)
    assert outcomes == [("ok", ToolResult("echo a"))]
    assert reply.session.messages[2]["content"] == "echo a"


async def test_what_is_written_into_the_call_is_what_runs(echo):
    agent = playing(echo)

    def in_place(block: Any) -> None:
        block.input["text"] += "b"

    def both(ctx: Any) -> None:
        block = ctx.block
        ctx.args = {"text": ctx.args["text"] + "c"}
        block.input["text"] += "d"
        ctx.call.args["text"] += "e"

    agent.hooks.register("PreToolUse", in_place)
    agent.hooks.register("PreToolUse", both)
    reply = await agent.run("go")
    assert echo.ran == [{"text": "abcde"}]
    assert [record.changed for record in reply.session.trace] == [("args",)] * 2


async def test_what_is_written_into_a_call_that_was_judged_fails_loudly(echo):
    agent = playing(echo)

    async def around_tool(block: Any, call_next: Any) -> Any:
        block.input["text"] = "b"
        return await call_next()

    agent.hooks.register("around_tool", around_tool)
    reply = await agent.run("go")
    assert "must not change args at around_tool" in str(reply.session.messages[2]["content"])
    assert not echo.ran


async def test_what_a_hook_keeps_of_a_moment_changes_nothing_once_it_has_answered(echo):
    kept: list[Any] = []
    agent = playing(echo)

    def keeps(ctx: Any) -> None:
        ctx.args["text"] = "b"
        kept.append((ctx, ctx.args))

    def uses(ctx: Any) -> None:
        kept[0][1]["text"] = "c"
        with pytest.raises(AttributeError, match="too late to change args"):
            kept[0][0].args = {"text": "d"}

    agent.hooks.register("before_tool", keeps)
    agent.hooks.register("before_tool", uses)
    await agent.run("go")
    assert echo.ran == [{"text": "b"}]


async def test_a_reply_and_a_prompt_are_checked_wherever_they_are_reached(echo):
    agent = playing(echo)
    errors: list[str] = []

    def after_turn(ctx: Any) -> None:
        for wrong in (
            lambda: setattr(ctx.run, "prompt", 5),
            lambda: setattr(ctx.run, "reply", None),
            lambda: setattr(ctx.run.reply, "text", 5),
            lambda: (
                setattr(ctx.results[0], "result", 5)
                if ctx.results
                else ctx.run.reply.__init__(1, 2, 3, 4)
            ),  # type: ignore[misc]
        ):
            try:
                wrong()
            except (TypeError, AttributeError) as error:
                errors.append(str(error))

    agent.hooks.register("after_turn", after_turn)
    reply = await agent.run("go")
    assert isinstance(reply, Reply)
    assert reply.text == "done"
    assert len(errors) == 8


def test_a_second_system_prompt_is_refused_by_name():
    agent = Agent(ScriptedModel(), tools=(), hooks=[SystemPromptHook("one")])
    with pytest.raises(ExtensionError, match="system_prompt is the system prompt already"):
        agent.use(SystemPromptHook("two"))
    agent.remove("system_prompt")
    agent.use(SystemPromptHook("two"))


async def test_what_goes_into_a_request_may_be_changed_before_and_around_it():
    model = ScriptedModel("done")
    agent = Agent(model, tools=())
    spec: Any = {"type": "function", "function": {"name": "f", "description": "", "parameters": {}}}

    def before(ctx: Any) -> None:
        ctx.tools = [spec]
        ctx.params = {"stop": ["x"], "seed": 1}

    async def around(ctx: Any, call_next: Any) -> Any:
        assert not hasattr(ctx, "__nothing__")
        ctx.request = ctx.agent.request_of(ctx.session)
        await agent.hooks.before_llm_request.fire(ctx)
        assert ctx.model is None
        ctx.model = "other"
        return await call_next()

    agent.hooks.register("before_llm_request", before)
    agent.hooks.register("around_llm_request", around)
    await agent.run("go")
    [asked] = model.asked
    assert (asked["tools"], asked["model"]) == ([spec], "other")
    assert asked["params"] == {"stop": ["x"], "seed": 1}


async def test_a_call_runs_once_and_as_it_was_judged_however_it_is_reached(echo):
    kept: list[Any] = []
    agent = playing(echo)

    async def around_tool(ctx: Any, call_next: Any) -> Any:
        [behind] = ctx.run.open
        kept.append(behind)
        behind.args = {"text": "b"}
        return await call_next()

    agent.hooks.register("around_tool", around_tool)
    reply = await agent.run("go")
    assert "after they had been judged" in str(reply.session.messages[2]["content"])
    with pytest.raises(HookError, match="the call is over"):
        await run_tool(kept[0])
    assert not echo.ran


WRONG: tuple[Any, ...] = (None, 42, object(), b"x", "", ["x", object()], {1: object()}, {"x": 3})
SESSION = [field.name for field in fields(Session) if not field.name.startswith("_")]
OF_SESSION = [("session", name) for name in SESSION]
OF_RUN = [("run", name) for name in (*RunContext.__slots__, *Context.__slots__)]
OF_REPLY = [("run.reply", field.name) for field in fields(Reply)]


def reach(ctx: Any, path: str) -> Any:
    for name in path.split("."):
        ctx = getattr(ctx, name)
    return ctx


async def played_on(agent: Agent, raised: list[Any]) -> Any:
    """The reply of a run that nothing has stopped; whoever was refused something is named."""
    async with asyncio.timeout(20):
        reply = await play(agent)
    assert (reply.stop_reason, reply.text) == ("end_turn", "done"), reply.detail
    for error in raised:
        assert type(error) in (TypeError, AttributeError), error
        assert "super(type, obj)" not in str(error)
    return reply


def tries(raised: list[Any], ctx: Any, path: str, name: str) -> None:
    """Assign everything to a field of somebody's."""
    for value in WRONG:
        try:
            setattr(reach(ctx, path) if path else ctx, name, value)
        except Exception as error:  # noqa: BLE001 - looked at by the test
            raised.append(error)


@pytest.mark.parametrize("point", ["on_message", "after_tool", "around_tool"])
@pytest.mark.parametrize("fields_of", [OF_SESSION, OF_RUN, OF_REPLY], ids=lambda of: of[0][0])
async def test_nothing_that_is_assigned_to_session_run_or_reply_stops_a_run(
    echo, whole, point, fields_of
):
    raised: list[Any] = []
    agent = playing(echo)

    def act(ctx: Any) -> None:
        for path, name in fields_of:
            tries(raised, ctx, path, name)

    hang(agent, point, act)
    reply = await played_on(agent, raised)
    assert len(raised) >= len(fields_of)
    whole(reply.session.messages)
    assert echo.ran == [{"text": "a"}]


@pytest.mark.parametrize("point", [point.name for point in POINTS])
async def test_nothing_that_is_assigned_to_a_context_stops_a_run(echo, whole, point):
    raised: list[Any] = []
    agent = playing(echo)

    def act(ctx: Any) -> None:
        for cls in type(ctx).__mro__:
            for name in getattr(cls, "__slots__", ()):
                if not name.startswith("_") and name != "prompt":
                    tries(raised, ctx, "", name)

    hang(agent, point, act)
    whole((await played_on(agent, raised)).session.messages)
    assert raised


IN_ITSELF: list[Any] = [
    lambda session: session.options.update(params=None),
    lambda session: session.options.__setitem__("params", 5),
    lambda session: session.options.__ior__({"params": object()}),
    lambda session: session.options.setdefault("params", "x"),
    lambda session: session.tools.update(x=None),
    lambda session: session.tools.setdefault("x", 3),
    lambda session: session.commands.update(x=object()),
    lambda session: session.state.update(x=3),
    lambda session: session.state.__setitem__(3, {}),
    lambda session: session.usage.update(input_tokens="x"),
    lambda session: session.runs.clear(),
]


@pytest.mark.parametrize("spoil", IN_ITSELF)
async def test_nor_what_is_put_into_an_object_of_the_session(echo, spoil):
    agent = playing(echo)
    hang(agent, "after_tool", lambda ctx: spoil(ctx.session))
    reply = await played_on(agent, [])
    errors = [str(record.error) for record in records(reply, "culprit")]
    assert all(f"({__file__}:" in error for error in errors)


@pytest.mark.parametrize(
    "wrong, said",
    [
        (lambda ctx: setattr(ctx.result, "ok", 3), "ToolResult has no ok; it has content, error"),
        (lambda ctx: setattr(ctx.result, "error", 3), "ToolResult.error cannot be assigned: data"),
        (lambda ctx: setattr(ctx.call, "name", "x"), "Call.name cannot be assigned"),
        (lambda ctx: setattr(ctx, "result", ToolResult(42)), "ctx.result.content must be str | l"),  # type: ignore[arg-type]
        (lambda ctx: setattr(ctx, "result", ToolResult("a", error=3)), "ctx.result.error must be"),  # type: ignore[arg-type]
        (lambda ctx: setattr(ctx.session, "directories", ("/a", 5)), "session.directories[1] must"),
        (lambda ctx: object(), "answered an instance of object, which after_tool cannot use"),
        (lambda ctx: Answer(object()), "must be text, JSON or a ToolResult, not an instance of ob"),
    ],
)
async def test_an_error_says_which_field_is_wrong_and_what_to_do(echo, wrong, said):
    agent = playing(echo)
    agent.hooks.register("after_tool", wrong)
    reply = await agent.run("go")
    [record] = [record for record in reply.session.trace if record.error]
    assert said in str(record.error)
    assert f"({__file__}:" in str(record.error)
    assert "0x" not in str(record.error)


@pytest.mark.parametrize("changes", [{"mode": ""}, {"mode": None}, {"model": 3}, {3: "x"}, None])
async def test_a_mode_without_a_name_is_refused_by_name(changes):
    agent = Agent(ScriptedModel(), tools=())

    def culprit(ctx: Any) -> None:
        ctx.changes = changes

    agent.hooks.register("on_config_change", culprit)
    session = await agent.new_session()
    assert "the hook culprit could not decide" in str(await agent.configure(session, mode="plan"))
    assert session.mode == "default"
    agent.hooks.remove(agent.hooks.on_config_change.entries[0].owner)
    assert await agent.configure(session, mode="") == "there is no mode without a name"
    assert session.mode == "default"


@pytest.mark.parametrize("point", ["before_tool", "before_run", "before_command", "around_tool"])
async def test_an_answer_that_nobody_could_read_is_none(echo, point):
    agent = playing(echo)

    async def around(ctx: Any, call_next: Any) -> Any:
        return {"of": object()}

    agent.hooks.register(point, around if point == "around_tool" else lambda ctx: Answer(object()))
    reply = await play(agent)
    said = " ".join(str(record.error) for record in reply.session.trace)
    assert "must be text, JSON or a ToolResult" in said
    assert "object at 0x" not in reply.text


async def test_the_arguments_of_a_reply_are_not_changed_in_place(echo: Any) -> None:
    heard: list[str] = []

    def rewrites(reply: Any) -> None:
        try:
            for each in reply.calls:
                each.args["text"] = "other"
        except TypeError as error:
            heard.append(str(error))
            raise

    agent = Agent(ScriptedModel(call("echo", text="own"), "Ok."), tools=[echo])
    agent.hooks.register("after_llm_response", rewrites)
    reply = await agent.run("go")
    assert echo.ran == [{"text": "own"}]
    assert len(heard) == 1
    assert "own" in str(reply.session.messages[1])
