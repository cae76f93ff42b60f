"""Wraps as middleware: another request, several attempts, other arguments, and what people ask for."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import Any

import pytest

from crow import Agent, Allow, Answer, Ask, Call, Completion, Deny, Request, ToolResult, Usage
from crow.core.hooks.wraps.stream import ANEW
from crow.errors import ModelError
from crow.events import ALLOW_ONCE, REJECT_ONCE, ThoughtDelta, ToolStarted, UsageReported
from crow.testing import ScriptedModel, call, text

HERE = re.escape(__file__)


class Awaited:
    """Can be awaited, and neither closed nor cancelled."""

    def __init__(self, attempt: Any) -> None:
        attempt.close()

    def __await__(self) -> Any:
        yield


# another request


async def test_a_request_can_be_changed_by_name_or_as_a_whole_for_one_attempt(said):
    model = ScriptedModel("one", "two", "three")
    seen: list[Any] = []

    async def around(ctx: Any, call_next: Any) -> Any:
        await call_next(model="small", params={"temperature": 0})
        await call_next(Request([{"role": "user", "content": "instead"}], model="big"))
        return await call_next()

    async def inner(ctx: Any, call_next: Any) -> Any:
        seen.append((ctx.model, ctx.params, ctx.messages[-1]["content"]))
        return await call_next()

    await said(model, around, inner)
    asked = [(a["model"], a["params"], a["messages"][-1].get("content")) for a in model.asked]
    assert asked == seen == [
        ("small", {"temperature": 0}, "go"), ("big", {}, "instead"), (None, {}, "go"),
    ]  # fmt: skip


async def test_what_a_hook_assigns_goes_into_every_attempt_what_it_gives_into_one(said):
    model = ScriptedModel("one", "two")

    async def around(ctx: Any, call_next: Any) -> Any:
        ctx.params = {"top_p": 1}
        await call_next(model="small")
        return await call_next()

    await said(model, around)
    assert [(a["model"], a["params"]) for a in model.asked] == [
        ("small", {"top_p": 1}), (None, {"top_p": 1}),
    ]  # fmt: skip


async def test_hooks_behind_a_request_see_the_one_that_was_sent_last():
    seen: list[Any] = []

    async def around(ctx: Any, call_next: Any) -> Any:
        return await call_next(messages=[*ctx.messages, {"role": "user", "content": "briefly"}])

    async with Agent(ScriptedModel("yes"), tools=()) as agent:
        agent.hooks.register("around_llm_request", around)
        agent.hooks.register("after_llm_response", lambda messages: seen.extend(messages))
        reply = await agent.run("go")
    assert [message["content"] for message in seen] == ["go", "briefly"]
    assert [message["content"] for message in reply.session.messages] == ["go", "yes"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"model": 3}, "call_next(model=...) must be str | None, not 3"),
        ({"temperature": 1}, "call_next() takes no temperature; it takes messages, tools,"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "cannot be sent"),
        ({"messages": "go"}, "call_next(messages=...) must be list[Message]"),
    ],
)
async def test_a_request_that_cannot_be_asked_is_refused_where_it_is_given(given, told, said):
    async def around(ctx: Any, call_next: Any) -> Any:
        return await call_next(**given)

    reply, _ = await said(ScriptedModel("never", leftover="allow"), around)
    assert told in reply.detail
    assert re.search(rf"\(in the hook around, {HERE}:\d+\)", reply.detail)


# what the client sees of several attempts


async def retry(ctx: Any, call_next: Any) -> Any:
    """Ask another model where the first one fails."""
    try:
        return await call_next()
    except ModelError:
        return await call_next(model="other")


BROKEN = ModelError("it broke", kind="overloaded")


@pytest.mark.parametrize(
    ("first", "second", "shown"),
    [
        ([BROKEN], ["Hello"], "Hello"),
        (["Hel", BROKEN], ["H", "ello"], "Hello"),
        (["Hello", BROKEN], ["Hello"], "Hello"),
        (["Good", BROKEN], ["Go", "ne"], f"Good{ANEW}Gone"),
        (["Hello there", BROKEN], ["Hello"], f"Hello there{ANEW}Hello"),
        (["Hello", BROKEN], [Completion()], f"Hello{ANEW}"),
    ],
)
async def test_a_retry_on_another_model_shows_nothing_twice(first, second, shown, said, played):
    model = played(first, second)
    reply, client = await said(model, retry)
    assert model.asked == [None, "other"]
    assert client.text == shown
    assert reply.text == shown.rpartition(ANEW)[2]


async def test_what_was_thrown_away_is_no_part_of_the_history_and_is_paid_all_the_same(said):
    usage: Usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}

    async def until_json(ctx: Any, call_next: Any) -> Any:
        reply = await call_next()
        again = {"role": "user", "content": "JSON, please"}
        return reply if reply.text[0] == "{" else await call_next(messages=[*ctx.messages, again])

    model = ScriptedModel(text("Sure!", usage=usage), text("{}", usage=usage))
    reply, client = await said(model, until_json)
    assert client.text == f"Sure!{ANEW}{{}}"
    assert [message["content"] for message in reply.session.messages] == ["go", "{}"]
    assert reply.usage["total_tokens"] == reply.session.usage["total_tokens"] == 30
    assert reply.session.history.tokens(None)["total_tokens"] == 15


async def test_of_attempts_at_the_same_time_one_is_shown_and_the_one_that_counts_in_the_end(
    said, played
):
    late, soon = asyncio.Event(), asyncio.Event()
    model = played(["slow ", late, "one"], ["quick ", soon, "one"])

    async def race(ctx: Any, call_next: Any) -> Any:
        tasks = [asyncio.create_task(call_next()) for _ in range(2)]
        await asyncio.sleep(0)
        soon.set()
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return done.pop().result()

    reply, client = await said(model, race)
    assert reply.text == "quick one"
    assert client.text == f"slow {ANEW}quick one"
    assert model.closed == 2


async def test_thoughts_are_not_shown_twice_either(said, played):
    model = played([ThoughtDelta("hm, "), BROKEN], [ThoughtDelta("hm, well"), "Yes"])
    _, client = await said(model, retry)
    assert (client.thought, client.text) == ("hm, well", "Yes")


# most asked


async def test_a_cache_answers_without_a_request_and_the_client_sees_it(said):
    known: dict[str, Completion] = {}

    async def cache(ctx: Any, call_next: Any) -> Any:
        key = str(ctx.messages)
        if key not in known:
            known[key] = replace(await call_next(), usage=None)
        return known[key]

    model = ScriptedModel(text("Lisbon", reasoning="easy"))
    for _ in range(2):
        reply, client = await said(model, cache)
        assert (reply.text, client.text, client.thought) == ("Lisbon", "Lisbon", "easy")
    assert len(model.asked) == 1


async def test_a_record_answers_for_model_and_tool(echo):
    record = [
        Completion("", (Call("call_1", "echo", {"text": "a"}),)),
        ToolResult("recorded"),
        Completion("b"),
    ]

    async def replay(ctx: Any, call_next: Any) -> Any:
        return record.pop(0)

    async with Agent(ScriptedModel(), tools=[echo]) as agent:
        agent.hooks.register("around_llm_request", replay)
        agent.hooks.register("around_tool", replay)
        reply = await agent.run("go")
    assert echo.ran == []
    assert [message["content"] for message in reply.session.messages] == [
        "go", None, "recorded", "b",
    ]  # fmt: skip


async def test_what_is_redacted_both_ways_is_seen_by_neither_model_nor_client(watcher):
    model = ScriptedModel(["Mail AL", "ICE to", "day"])

    async def redact(ctx: Any, call_next: Any) -> Any:
        hidden = [{**each, "content": each["content"].replace("Alice", "ALICE")}
                  for each in ctx.messages]  # fmt: skip
        async for piece in call_next(messages=hidden):
            if isinstance(piece, Completion):
                return replace(piece, text=piece.text.replace("ALICE", "Alice"))
        return None

    client = watcher
    async with Agent(model, tools=()) as agent:
        agent.hooks.register("around_llm_request", redact)
        session = await agent.new_session(client=client)
        reply = await agent.prompt(session, "Whom, Alice?")
    assert model.asked[0]["messages"][0]["content"] == "Whom, ALICE?"
    assert session.messages[0]["content"] == "Whom, Alice?"
    assert reply.text == client.text == session.messages[1]["content"] == "Mail Alice today"


async def test_a_reply_that_was_changed_once_it_was_shown_stands_behind_the_first(said):
    async def around(ctx: Any, call_next: Any) -> Any:
        reply = await call_next()
        return replace(reply, text=reply.text + (" indeed" if reply.text == "Yes" else "?"))

    for first, shown in (("Yes", "Yes indeed"), ("No", "No?")):
        reply, client = await said(ScriptedModel(first), around)
        assert client.text == reply.text == shown


async def test_a_reply_that_was_taken_back_is_shown_as_that(said):
    async def around(ctx: Any, call_next: Any) -> Any:
        await call_next()
        return Completion()

    reply, client = await said(ScriptedModel("No"), around)
    assert (reply.text, client.text) == ("", f"No{ANEW}")


@pytest.mark.parametrize("way", ["wait_for", "timeout"])
async def test_a_tool_can_be_limited_in_time(echo, way):
    async def limit(ctx: Any, call_next: Any) -> Any:
        try:
            if way == "wait_for":
                return await asyncio.wait_for(call_next(), 0.02)
            async with asyncio.timeout(0.02):
                return await call_next()
        except TimeoutError:
            return ToolResult.failure("took too long")

    echo.wait = asyncio.Event()
    async with Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo]) as agent:
        agent.hooks.register("around_tool", limit)
        reply = await agent.run("go")
    assert reply.session.messages[2]["content"] == "took too long"
    assert reply.text == "done"


# other arguments


def with_args(*attempts: Any) -> Any:
    async def around(ctx: Any, call_next: Any) -> Any:
        return [await (call_next() if each is None else call_next(each)) for each in attempts][-1]

    return around


async def run_with(echo: Any, around: Any, client: Any = None, **hooks: Any) -> Any:
    model = ScriptedModel(call("echo", text="a"), "done")
    async with Agent(model, tools=[echo]) as agent:
        agent.hooks.register("around_tool", around)
        for name, fn in hooks.items():
            agent.hooks.register(name, fn, judge=name == "before_tool")
        session = await agent.new_session(client=client)
        return await agent.prompt(session, "go")


async def test_a_tool_can_be_run_with_other_arguments_once_these_are_judged(echo, watcher):
    judged: list[Any] = []
    after: list[Any] = []

    def judge(call: Any, args: Any) -> None:
        judged.append((call.id, args))

    reply = await run_with(
        echo, with_args({"text": "b"}), watcher,
        before_tool=judge, after_tool=lambda args, output: after.append((args, output)),
    )  # fmt: skip
    assert judged == [("call_1", {"text": "a"}), ("call_1", {"text": "b"})]
    assert after == [({"text": "b"}, "echo b")]
    assert [e.args for e in watcher.events if isinstance(e, ToolStarted)] == [
        {"text": "a"}, {"text": "b"},
    ]  # fmt: skip
    assert reply.session.messages[2]["content"] == "echo b"


async def test_each_attempt_has_its_own_arguments_and_the_inner_hooks_see_them(echo):
    seen: list[Any] = []

    async def inner(ctx: Any, call_next: Any) -> Any:
        seen.append((ctx.args, ctx.call.args))
        return await call_next()

    async def both(ctx: Any, call_next: Any) -> Any:
        await asyncio.gather(call_next({"text": "b"}), call_next({"text": "c"}))
        return await call_next()

    async with Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo]) as agent:
        agent.hooks.register("around_tool", both)
        agent.hooks.register("around_tool", inner)
        reply = await agent.run("go")
    assert seen == [({"text": each}, {"text": each}) for each in "bca"]
    assert [ran["text"] for ran in echo.ran] == ["b", "c", "a"]
    assert reply.session.messages[2]["content"] == "echo a"


async def test_other_arguments_that_are_refused_do_not_run_and_the_wrap_is_told(echo):
    def judge(args: Any) -> Any:
        return Deny("not b") if args["text"] == "b" else None

    reply = await run_with(echo, with_args({"text": "b"}), before_tool=judge)
    assert (reply.session.messages[2]["content"], echo.ran) == ("not b", [])
    reply = await run_with(echo, with_args({"text": "b"}, None), before_tool=judge)
    assert reply.session.messages[2]["content"] == "echo a"


async def test_other_arguments_are_held_against_the_schema(echo):
    reply = await run_with(echo, with_args({"words": "b"}))
    assert str(reply.session.messages[2]["content"]).startswith("echo: ")
    assert echo.ran == []


@pytest.mark.parametrize(
    ("answer", "told"),
    [("allow_once", "echo b"), ("reject_once", "the user rejected this call")],
)
async def test_the_user_is_asked_about_other_arguments(echo, watcher, answer, told):
    def judge(args: Any) -> Any:
        return Ask("is b fine?", options=(ALLOW_ONCE, REJECT_ONCE)) if args["text"] == "b" else None

    watcher.answer = answer
    reply = await run_with(echo, with_args({"text": "b"}), watcher, before_tool=judge)
    assert [request.args for request in watcher.asked] == [{"text": "b"}]
    assert reply.session.messages[2]["content"] == told


async def test_arguments_that_are_no_object_are_the_hooks_error(echo):
    reply = await run_with(echo, with_args(["b"]))
    told = str(reply.session.messages[2]["content"])
    assert "what call_next() is given must be an object of JSON, not ['b']" in told
    assert re.search(rf"\(in the hook around, {HERE}:\d+; the tool itself did not run\)", told)


async def test_around_a_run_there_is_nothing_to_give():
    async def around_run(ctx: Any, call_next: Any) -> Any:
        return await call_next("another prompt")

    async with Agent(ScriptedModel(leftover="allow"), hooks=[around_run], tools=()) as agent:
        session = await agent.new_session()
        assert "in the hook around_run" in (await agent.prompt(session, "go")).detail


async def test_an_answer_that_stands_in_for_a_request_is_shown(said):
    async def around(ctx: Any, call_next: Any) -> Any:
        return Answer(Completion("instead"))

    reply, client = await said(ScriptedModel(), around)
    assert reply.text == client.text == "instead"


async def test_an_attempt_is_made_once(said):
    async def around(ctx: Any, call_next: Any) -> Any:
        attempt = call_next()
        await attempt
        return [piece async for piece in attempt]

    reply, _ = await said(ScriptedModel("Hello", leftover="allow"), around)
    assert "this attempt was made: call_next() makes another" in reply.detail


@pytest.mark.parametrize("made", [asyncio.ensure_future, lambda attempt: attempt, Awaited])
async def test_what_a_wrap_has_begun_and_returns_unawaited_is_ended(said, made):
    async def around(ctx: Any, call_next: Any) -> Any:
        return made(call_next())

    model = ScriptedModel("never", leftover="allow")
    reply, _ = await said(model, around)
    assert "return await call_next()" in reply.detail
    assert model.asked == []


async def test_a_hook_that_stops_the_run_keeps_other_arguments_from_running(echo):
    def stops(ctx: Any) -> None:
        if ctx.args["text"] == "b":
            ctx.stop("enough")

    async with Agent(ScriptedModel(call("echo", text="a")), tools=[echo]) as agent:
        agent.hooks.register("around_tool", with_args({"text": "b"}))
        agent.hooks.register("before_tool", stops)
        reply = await agent.run("go")
    assert echo.ran == []
    assert reply.session.messages[2]["content"] == "not run: the run was stopped before"


@pytest.mark.parametrize("event", ["around_tool", "around_llm_request", "around_run"])
async def test_a_wrap_that_tries_again_for_ever_keeps_nobody_else_from_working(echo, event: str):
    tried = asyncio.Event()

    async def again(call_next: Any) -> Any:
        while True:
            tried.set()
            try:
                return await call_next()
            except asyncio.CancelledError:  # that is what is wrong with it
                continue

    echo.wait = asyncio.Event()
    model = ScriptedModel(call("echo", text="a"), leftover="allow")
    agent = Agent(model, tools=[echo])
    agent.hooks.register(event, again)
    session = await agent.new_session()
    running = asyncio.create_task(agent.prompt(session, "go"))
    await echo.started.wait()
    agent.cancel(session)
    async with asyncio.timeout(2):
        assert (await running).stop_reason == "cancelled"
        await agent.close()


@pytest.mark.parametrize("said", ["allow_once", "hook", "reject_once"])
async def test_what_a_hook_answers_where_the_user_is_asked_stands_in_for_the_tool(
    echo, watcher, said: str
):
    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])
    agent.hooks.register("before_tool", lambda: Ask("sure?"))
    agent.hooks.register("on_permission", lambda: Answer("known"))
    if said == "hook":
        agent.hooks.register("on_permission", lambda: Allow())
    watcher.answer = said
    session = await agent.new_session(client=watcher)
    await agent.prompt(session, "go")
    result = session.messages[2]["content"]
    assert echo.ran == []
    assert result == ("the user rejected this call" if said == "reject_once" else "known")


async def wrongs(ctx: Any, call_next: Any) -> Any:
    ctx.prompt = 5
    return await call_next()


async def wrongs_late(ctx: Any, call_next: Any) -> Any:
    reply = await call_next()
    ctx.reply = "no reply"
    return reply


async def wrongs_a_request(ctx: Any, call_next: Any) -> Any:
    ctx.messages = "no list"
    return await call_next()


async def wrongs_a_request_in_place(ctx: Any, call_next: Any) -> Any:
    ctx.request.messages.append("nonsense")
    return await call_next()


async def wrongs_behind_a_request(ctx: Any, call_next: Any) -> Any:
    reply = await call_next()
    ctx.model = 5
    return reply


async def wrongs_among_pieces(ctx: Any, call_next: Any) -> Any:
    async for piece in call_next():
        yield piece
        ctx.params = "none"


WRONGS = [
    ("around_run", wrongs),
    ("around_run", wrongs_late),
    ("around_llm_request", wrongs_a_request),
    ("around_llm_request", wrongs_a_request_in_place),
    ("around_llm_request", wrongs_behind_a_request),
]


@pytest.mark.parametrize("point, culprit", WRONGS)
async def test_a_wrong_assignment_in_a_wrap_is_its_own_error_and_never_the_runs(
    watcher: Any, point: str, culprit: Any
):
    told: list[str] = []
    agent = Agent(ScriptedModel(text("one two"), "again"), tools=())
    agent.hooks.register(point, culprit)
    agent.hooks.register("on_error", lambda where, place: told.append(f"{where} {place}"))
    session = await agent.new_session(client=watcher)
    reply = await agent.prompt(session, "go")

    assert (reply.stop_reason, reply.text) == ("end_turn", "one two")
    assert "".join(watcher.texts) == "one two"
    assert [message["content"] for message in session.messages] == ["go", "one two"]
    [record] = [each for each in session.trace if each.error]
    assert record.hook == culprit.__name__
    assert f"({__file__}:" in str(record.error)
    [blamed] = told
    assert blamed.startswith(f"hook:{record.owner} {__file__}:")
    assert (await agent.prompt(session, "go on")).text == "again"


async def test_a_request_whose_pieces_a_wrong_assignment_cut_off_is_made_anew(watcher: Any):
    agent = Agent(ScriptedModel(text("one two"), "again"), tools=())
    agent.hooks.register("around_llm_request", wrongs_among_pieces)
    reply = await agent.prompt(await agent.new_session(client=watcher), "go")
    assert (reply.stop_reason, reply.text) == ("end_turn", "again")
    assert "".join(watcher.texts) == f"one two{ANEW}again"


async def test_what_was_paid_for_a_reply_is_told_where_a_wrap_gives_it_without_its_usage(watcher):
    paid: Usage = {"input_tokens": 900, "output_tokens": 100, "total_tokens": 1000}

    async def keeps(call_next: Any) -> Any:
        return replace(await call_next(), usage=None)

    model = ScriptedModel(text("Hello", usage=paid))
    async with Agent(model, tools=[]) as agent:
        agent.hooks.register("around_llm_request", keeps)
        session = await agent.new_session(client=watcher)
        await agent.prompt(session, "Hi")
    assert session.tokens(2000)["total_tokens"] == 1000
    assert [e.last for e in watcher.events if isinstance(e, UsageReported)] == [paid]


async def test_arguments_that_a_wrap_has_changed_stand_in_the_history_and_run(echo):
    async def reveals(call_next: Any) -> Any:
        reply = await call_next()
        calls = [replace(each, args={"text": "Alice"}) for each in reply.calls]
        return replace(reply, calls=tuple(calls))

    model = ScriptedModel(call("echo", text="PERSON_1"), "done")
    async with Agent(model, tools=[echo]) as agent:
        agent.hooks.register("around_llm_request", reveals)
        reply = await agent.run("go")
    assert "Alice" in str(reply.session.messages[1]["tool_calls"])
    assert echo.ran == [{"text": "Alice"}]


# one that leaves: its answer is call_next() itself


class Traced:
    """A tool that says which task it runs in."""

    def __init__(self) -> None:
        self.tasks: list[Any] = []

    def here(self) -> None:
        self.tasks.append(asyncio.current_task())


async def test_a_wrap_that_answers_with_call_next_itself_needs_no_task_of_its_own(echo):
    here = Traced()

    def leaves(call_next: Any) -> Any:
        here.here()
        return call_next()

    async def stays(call_next: Any) -> Any:
        return await call_next()

    for around, is_same in ((leaves, True), (stays, False)):
        async with Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo]) as agent:
            agent.hooks.register("around_tool", around)
            agent.hooks.register("around_tool", lambda call_next: (here.here(), call_next())[1])
            agent.hooks.register("before_tool", here.here)
            assert (await agent.run("go")).text == "done"
        before, *_, within = here.tasks
        here.tasks.clear()
        assert (before is within) is is_same


async def test_a_wrap_that_leaves_has_its_record_and_what_it_changed_counts(watcher):
    model = ScriptedModel("one")

    def leaves(ctx: Any, call_next: Any) -> Any:
        ctx.model = "small"
        return call_next()

    async with Agent(model) as agent:
        agent.hooks.register("around_llm_request", leaves)
        session = await agent.new_session(client=watcher)
        reply = await agent.prompt(session, "Hi")
        records = [each for each in session.trace if each.event == "around_llm_request"]
    assert reply.text == "one"
    assert watcher.texts == ["one"]
    assert model.asked[0]["model"] == "small"
    assert [(each.hook, each.changed, each.error) for each in records] == [
        ("leaves", ("model",), None)
    ]


async def test_an_error_further_in_is_not_that_of_a_wrap_that_has_left():
    def leaves(call_next: Any) -> Any:
        return call_next()

    async with Agent(ScriptedModel(ModelError("no", kind="server"))) as agent:
        agent.hooks.register("around_llm_request", leaves)
        reply = await agent.prompt(await agent.new_session(), "Hi")
        record = next(each for each in reply.session.trace if each.hook == "leaves")
    assert isinstance(reply.error, ModelError)
    assert record.error is None
    assert not getattr(reply.error, "__notes__", [])


async def test_a_run_is_cancelled_within_a_wrap_that_has_left(echo):
    began = asyncio.Event()

    async def hangs(call_next: Any) -> Any:
        began.set()
        await asyncio.Event().wait()

    async with Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo]) as agent:
        agent.hooks.register("around_tool", lambda call_next: call_next())
        agent.hooks.register("around_tool", hangs)
        session = await agent.new_session()
        running = asyncio.create_task(agent.prompt(session, "go"))
        await began.wait()
        agent.cancel(session)
        assert (await running).stop_reason == "cancelled"


async def test_an_attempt_that_was_made_is_no_answer_of_a_wrap(echo):
    def twice(call_next: Any) -> Any:
        async def both() -> Any:
            attempt = call_next()
            await attempt
            return attempt

        return both()

    async with Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo]) as agent:
        agent.hooks.register("around_tool", twice)
        reply = await agent.run("go")
    assert "answered what nobody awaited" in str(reply.session.messages[2]["content"])


async def test_the_first_of_two_attempts_is_no_answer_to_leave_with(echo):
    def two(call_next: Any) -> Any:
        first = call_next()
        call_next().close()
        return first

    async with Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo]) as agent:
        agent.hooks.register("around_tool", two)
        assert (await agent.run("go")).text == "done"
    assert echo.ran == [{"text": "a"}]
