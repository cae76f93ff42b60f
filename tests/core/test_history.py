"""A hook that touches the history itself: what is whole stays, what is not is undone, by name."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.properties import examples

from crow.core.agent import Agent
from crow.core.errors import HookError
from crow.core.history import History, flaw, open_end
from crow.core.hooks.points import POINTS
from crow.core.messages import tool_answer, user
from crow.core.tools import ToolKind
from crow.testing import ScriptedModel, call

DURING = ["on_session_start", "before_run", "before_llm_request", "around_llm_request",
          "after_llm_response", "on_message", "before_tool", "around_tool", "after_tool",
          "after_turn", "on_stop", "on_update", "around_run"]  # fmt: skip


def touches(number: int, session: Any) -> None:
    """The ways in which a history can be spoilt."""
    messages = session.messages
    ways: list[Any] = [
        lambda: messages.append(user("hello")),
        messages.clear,
        lambda: messages and messages.pop(),
        lambda: messages.insert(0, tool_answer("nobody", "x")),
        lambda: messages.__delitem__(slice(-2, None)),
        messages.reverse,
        lambda: setattr(session, "messages", []),
        lambda: setattr(session, "messages", messages[-1:]),
        lambda: messages.extend([{"role": "banana"}, 42, {"content": "no role"}]),
        lambda: messages.append(tool_answer("call_1", "forged")),
        lambda: messages.append({"role": "assistant", "content": None, "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}),
        lambda: messages.sort(key=str),
        lambda: messages.__iadd__([user("x")]),
        lambda: messages[-1:] and messages[-1].pop("tool_calls", None),
        lambda: session.pending.append({"role": "tool", "content": "x"}),
        lambda: messages and messages[-1].update(content="spoilt"),
        lambda: messages and messages[0].__setitem__("content", 5),
        lambda: [call["function"].update(name="x") for m in messages
                 for call in m.get("tool_calls", ())],
        lambda: [m["tool_calls"].clear() for m in messages if "tool_calls" in m],
        lambda: session.restart([]),
        lambda: session.restart(messages[:1]),
        lambda: session.repair(),
    ]  # fmt: skip
    ways[number % len(ways)]()


WAYS = 22


def sent_whole(model: ScriptedModel) -> None:
    for asked in model.asked:
        assert flaw(asked["messages"]) is None, asked["messages"]
        assert all(isinstance(m, dict) and m["role"] != "banana" for m in asked["messages"])


@given(
    st.lists(
        st.tuples(st.sampled_from(DURING), st.integers(0, WAYS - 1), st.booleans()),
        min_size=1,
        max_size=5,
    ),
    st.integers(1, 3),
)
@example([("on_message", 13, False), ("on_message", 0, False)], 1)
@example([("before_llm_request", 20, False), ("before_llm_request", 1, False)], 1)
@settings(deadline=None, max_examples=examples(60))
async def test_whatever_hooks_do_to_the_history_no_result_is_lost_and_every_request_is_whole(
    acts, calls
):
    class Echo:
        name, description = "echo", ""
        kind: ToolKind = "other"
        parameters: Any = {"type": "object"}  # noqa: RUF012

        async def run(self, args: Any, ctx: Any) -> str:
            ran.append(f"echo {args['text']}")
            return ran[-1]

    ran: list[str] = []
    script = [call("echo", text=f"t{number}") for number in range(calls)]
    model = ScriptedModel(script, call("echo", text="last"), "done", leftover="allow")
    agent = Agent(model, tools=[Echo()])
    for point, way, waits in acts:

        async def sync_or_not(ctx: Any, way: int = way, waits: bool = waits) -> None:
            await asyncio.sleep(0) if waits else None
            touches(way, ctx.session)

        async def wrapping(ctx: Any, call_next: Any, act: Any = sync_or_not) -> Any:
            await act(ctx)
            return await call_next()

        agent.hooks.register(point, wrapping if point.startswith("around") else sync_or_not)
    async with asyncio.timeout(30):
        reply = await agent.prompt(await agent.new_session(), "go")
    sent_whole(model)
    assert flaw(reply.session.messages) is None
    for before, after in zip(model.asked, model.asked[1:], strict=False):
        said = [m for m in after["messages"] if m["role"] == "assistant" and m.get("tool_calls")]
        assert not said or not open_end(after["messages"]), before


@pytest.mark.parametrize("way", range(WAYS))
@pytest.mark.parametrize("point", ["before_tool", "around_tool", "after_tool", "on_permission"])
async def test_while_calls_wait_nothing_is_taken_from_the_history_and_who_tried_is_named(
    echo, whole, point, way
):
    model = ScriptedModel(call("echo", text="a"), "done", leftover="allow")
    agent = Agent(model, tools=[echo])

    def culprit(ctx: Any) -> None:
        touches(way, ctx.session)

    async def around_tool(ctx: Any, call_next: Any) -> Any:
        answer = await call_next()
        touches(way, ctx.session)
        return answer

    agent.hooks.register(point, around_tool if point == "around_tool" else culprit)
    reply = await agent.run("go")
    whole(reply.session.messages)
    sent_whole(model)
    results = [m for m in reply.session.messages if m["role"] == "tool"]
    assert [m["tool_call_id"] for m in results] == ["call_1"]
    if point == "after_tool":
        assert results[0]["content"] == "echo a"
    errors = " ".join(str(record.error) for record in reply.session.trace)
    name = "around_tool" if point == "around_tool" else "culprit"
    if way in (13, 15, 16, 17, 18) and point != "on_permission":
        assert "cannot be changed in place, many hold it" in errors
    elif way == 19 and point != "on_permission":
        assert "calls wait for their results, and the history goes on" in errors
    elif way not in (2, 14, 20, 21) and point != "on_permission":
        assert f"the hook {name} changed session.messages and that was undone" in errors
    if way not in (2, 14, 20, 21) and point != "on_permission":
        assert f"({__file__}:" in errors


async def test_what_leaves_the_history_whole_stays_and_is_recorded(whole):
    model = ScriptedModel("one", "two")
    agent = Agent(model, tools=())

    def trim(ctx: Any) -> None:
        ctx.session.messages[:] = ctx.session.messages[-1:]

    agent.hooks.register("before_llm_request", trim)
    reply = await agent.run("go")
    await agent.run("more", session=reply.session)
    assert [m["content"] for m in model.asked[1]["messages"]] == ["go", "one", "more"]
    assert [m["content"] for m in reply.session.messages] == ["more", "two"]
    assert [record.changed for record in reply.session.trace] == [("session.messages",)] * 2


async def test_a_hook_appends_by_its_context_only_where_the_history_is_whole(echo, whole):
    raised: list[str] = []
    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])

    async def appends(ctx: Any) -> None:
        for message in (user("x"), tool_answer("x", "y"), {"role": "banana", "content": "x"}):
            try:
                await ctx.append(message)
            except (HookError, TypeError) as error:
                raised.append(type(error).__name__)

    agent.hooks.register("after_tool", appends)
    agent.hooks.register("after_turn", appends)
    reply = await agent.run("go")
    assert raised == ["HookError", "HookError", "TypeError"] + ["HookError", "TypeError"] * 2
    whole(reply.session.messages)


async def test_work_beside_the_conversation_is_held_to_the_same(echo, whole, caplog):
    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])

    async def beside(session: Any) -> None:
        session.messages.append(user("boo"))

    async def before_tool(ctx: Any) -> None:
        await ctx.session.spawn(beside(ctx.session))

    agent.hooks.register("before_tool", before_tool)
    reply = await agent.run("go")
    whole(reply.session.messages)
    assert echo.ran
    assert "somebody changed session.messages and that was undone" in caplog.text
    assert f"({__file__}:" in caplog.text


def test_a_history_is_copied_as_a_plain_list():
    import copy
    import json
    import pickle

    history = History([user("a")])
    for other in (copy.copy(history), copy.deepcopy(history), pickle.loads(pickle.dumps(history))):
        assert type(other) is list
        assert other == history
    assert json.loads(json.dumps(history)) == [user("a")]
    assert history.before is None
    history.undo()
    history.append(user("b"))
    history.undo()
    assert history == [user("a")]
    assert {point.name for point in POINTS} >= set(DURING)


async def test_what_a_hook_that_fails_did_to_the_history_is_undone(whole):
    agent = Agent(ScriptedModel("done"), tools=())

    def after_turn(ctx: Any) -> None:
        ctx.session.messages.append(user("half"))
        raise ValueError("half-way")

    agent.hooks.register("after_turn", after_turn)
    reply = await agent.run("go")
    assert [m["content"] for m in reply.session.messages] == ["go", "done"]


def test_a_call_without_a_result_is_a_flaw_wherever_it_stands():
    asked: Any = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    spoken: Any = {"role": "assistant", "content": None, "tool_calls": [asked]}
    assert flaw([spoken, user("x")]) == flaw([spoken]) == "the call 'a' has no result"
    assert flaw([spoken, tool_answer("a", "x"), user("x")]) is None


IN_PLACE: list[Any] = [
    lambda message: message.__setitem__("content", "spoilt"),
    lambda message: message.pop("content"),
    lambda message: message.update(content=5),
    lambda message: message.__ior__({"content": "spoilt"}),
    lambda message: message["content"][0].__setitem__("text", "spoilt"),
    lambda message: message["content"].append({"type": "text", "text": "spoilt"}),
    lambda message: message["content"][0].clear(),
]


@pytest.mark.parametrize("point", [point for point in DURING if point != "on_session_start"])
async def test_a_message_that_is_changed_in_place_stays_and_who_tried_is_named(
    echo, whole, point, caplog
):
    model = ScriptedModel(call("echo", text="a"), "done", leftover="allow")
    agent = Agent(model, tools=[echo])
    tried: list[str] = []

    async def culprit(ctx: Any) -> None:
        both: Any = (ctx.session.messages, getattr(ctx, "messages", None))
        for messages in both:
            for change in IN_PLACE if messages else []:
                with pytest.raises(TypeError, match="cannot be changed in place") as error:
                    change(messages[0])
                tried.append(str(error.value))
        if tried:
            ctx.session.messages[0]["content"] = "spoilt"

    async def wrapping(ctx: Any, call_next: Any) -> Any:
        answer = await call_next()
        try:
            await culprit(ctx)
        except TypeError as error:
            agent.hooks.remove(agent.hooks[point].entries[0].owner)
            raise ValueError("in place") from error
        return answer

    prompt: Any = [{"type": "text", "text": "go"}]
    agent.hooks.register(point, wrapping if point.startswith("around") else culprit)
    session = await agent.new_session()
    await agent.prompt(session, prompt)
    reply = await agent.prompt(session, prompt)
    whole(reply.session.messages)
    sent_whole(model)
    assert tried
    assert "spoilt" not in str(reply.session.messages) + str(model.asked)
    errors = [r.error for r in reply.session.trace if r.error and r.event == point]
    assert any(f"({__file__}:" in error for error in errors)


async def test_what_one_hook_has_put_into_a_request_another_cannot_change_in_place():
    model = ScriptedModel("done")
    agent = Agent(model, tools=())

    def one(ctx: Any) -> None:
        ctx.messages = [{"role": "system", "content": "be good"}, *ctx.messages]

    def other(ctx: Any) -> None:
        ctx.messages[0]["content"] = "be bad"

    agent.hooks.register("before_llm_request", one)
    agent.hooks.register("before_llm_request", other)
    reply = await agent.run("go")
    assert model.asked[0]["messages"][0]["content"] == "be good"
    [record] = [record for record in reply.session.trace if record.hook == "other"]
    assert f"in place, many hold it: replace it by a copy ({__file__}:" in str(record.error)


async def test_what_the_model_is_told_of_a_tool_no_hook_can_change_in_place(echo):
    model = ScriptedModel(call("echo", text="a"), "done")
    agent = Agent(model, tools=[echo])

    def culprit(ctx: Any) -> None:
        ctx.tools[0]["function"]["parameters"]["properties"].clear()

    agent.hooks.register("before_llm_request", culprit)
    reply = await agent.run("go")
    assert all("in place" in str(record.error) for record in reply.session.trace)
    for asked in model.asked:
        told = asked["tools"][0]["function"]["parameters"]
        assert told["properties"] == echo.parameters["properties"]


def test_what_is_kept_is_json_and_its_copies_can_be_changed():
    import copy
    import json
    import pickle

    message: Any = {"role": "user", "content": [{"type": "text", "text": "a"}]}
    own: Any = History([message])[0]
    for other in (copy.deepcopy(own), pickle.loads(pickle.dumps(own))):
        other["content"][0]["text"] = "b"
        assert type(other) is dict
    assert type(copy.copy(own)) is type(own.copy()) is type({**own}) is dict
    message["content"][0]["text"] = "c"
    assert own == json.loads(json.dumps(own)) == {"role": "user", "content": [
        {"type": "text", "text": "a"}]}  # fmt: skip


async def restarts(ctx: Any) -> None:
    await ctx.restart_with_new_session()


async def keeps_two(ctx: Any) -> None:
    ctx.session.restart([user("a summary"), *ctx.session.messages[-2:]])


async def compacts(ctx: Any) -> None:
    await ctx.compact([], "a summary")


async def mends(ctx: Any) -> None:
    ctx.session.repair()


async def clears_first(ctx: Any) -> None:
    ctx.session.messages.clear()
    ctx.session.restart()


@pytest.mark.parametrize("how", [restarts, keeps_two, compacts, mends, clears_first])
@pytest.mark.parametrize("point", ["before_tool", "around_tool", "after_tool", "on_message"])
async def test_who_begins_anew_while_calls_wait_loses_no_result(echo, whole, point, how):
    calls = [call("echo", text="a"), call("echo", text="b")]
    agent = Agent(ScriptedModel(calls, "done", leftover="allow"), tools=[echo])
    begun: list[bool] = []

    async def anew(ctx: Any) -> None:
        if not begun and ctx.session.messages[-1]["role"] in ("tool", "assistant"):
            begun.append(True)
            await how(ctx)

    async def around(ctx: Any, call_next: Any) -> Any:
        answer = await call_next()
        await anew(ctx)
        return answer

    agent.hooks.register(point, around if point == "around_tool" else anew)
    reply = await agent.run("go")
    said = [m["content"] for m in reply.session.messages if m["role"] == "tool"]
    whole(reply.session.messages)
    assert begun
    assert said[1:] == ["echo b"]
    errors = [record.error for record in reply.session.trace if record.error]
    if how is clears_first:
        assert "session.messages was changed, that was undone" in errors[0]
        assert f"({__file__}:" in errors[0]
    else:
        assert said == ["echo a", "echo b"]
        assert not errors


async def test_a_history_that_is_assigned_is_held_to_the_same(echo, whole):
    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])
    other = await agent.new_session()

    def culprit(ctx: Any) -> None:
        ctx.session.messages = other.messages

    agent.hooks.register("after_tool", culprit)
    reply = await agent.run("go")
    assert reply.session.messages is not other.messages
    assert reply.session.messages[2]["content"] == "echo a"
    whole(reply.session.messages)


async def test_a_new_history_of_calls_whose_results_are_cut_off_has_the_results():
    session = await Agent(ScriptedModel("done")).new_session()
    asked: Any = {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}  # fmt: skip
    session.messages = [user("go"), asked, tool_answer("c", "found")]
    session.restart(session.messages[:2])
    assert [message["role"] for message in session.messages] == ["user", "assistant", "tool"]
    assert session.messages[-1]["content"] == "found"


@pytest.mark.parametrize("point", ["before_tool", "around_tool", "after_tool", "on_message"])
@pytest.mark.parametrize("around", [list.append, lambda messages, _: list.clear(messages)])
async def test_who_goes_around_the_methods_of_the_history_loses_no_result_either(
    echo: Any, around: Any, point: str
) -> None:
    model = ScriptedModel(call("echo", text="one"), "Done.", "And again.")
    agent = Agent(model, tools=[echo])
    left = [1]

    def spoil(ctx: Any) -> None:
        if open_end(ctx.session.messages) and left:
            left.pop()
            around(ctx.session.messages, user("behind the back"))

    async def wrap(ctx: Any, call_next: Any) -> Any:
        spoil(ctx)
        return await call_next()

    agent.hooks.register(point, wrap if point.startswith("around") else spoil)
    reply = await agent.run("Go")
    await agent.run("More", session=reply.session)
    sent_whole(model)
    assert not left
    said = [m["content"] for m in reply.session.messages if m["role"] == "tool"]
    assert said == (["echo one"] if around is list.append else [])


async def test_what_a_client_wrote_beside_a_prompt_is_in_no_request_whenever_it_comes(whole):
    model = ScriptedModel("one", "two", "three", "four")
    written = [{"type": "resource_link", "uri": "file:///a"}]
    async with Agent(model, tools=[]) as agent:
        session = await agent.new_session()
        await agent.prompt(session, "plain")
        await agent.prompt(session, "linked", written=written)
        await agent.prompt(session, "plain again")
        kept = list(session.messages)
        session.messages[:] = kept[2:]
        await agent.prompt(session, "behind a change")
        whole(session.messages)
    assert [each.get("written") for each in kept[::2]] == [None, written, None]
    assert all("written" not in each for asked in model.asked for each in asked["messages"])
    assert [len(asked["messages"]) for asked in model.asked] == [1, 3, 5, 5]


async def test_a_request_that_ends_with_the_history_is_looked_at_in_front_of_it(echo):
    async def wrong(ctx):
        ctx.messages = [{"role": "system", "content": 7}, *ctx.messages]

    async def right(ctx):
        ctx.messages = [{"role": "system", "content": "Be brief."}, *ctx.messages]

    model = ScriptedModel(call("echo", text="a"), "done")
    async with Agent(model, tools=[echo]) as agent:
        agent.hooks.register("before_llm_request", wrong)
        agent.hooks.register("before_llm_request", right)
        reply = await agent.run("go")
        errors = [each.error for each in reply.session.trace if each.hook == "wrong"]
    assert all("ctx.messages[0]['content'] must be" in str(error) for error in errors)
    assert [asked["messages"][0]["content"] for asked in model.asked] == ["Be brief."] * 2
    assert model.asked[1]["messages"][1:] == reply.session.messages[:-1]
