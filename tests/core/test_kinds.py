"""What several hooks add up to at a point of each kind, and what a failing one does."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crow.core.agent import Agent
from crow.core.errors import CrowError
from crow.core.events import Notice, RunEnded, TextDelta
from crow.core.hooks.contexts import ToolContext
from crow.core.hooks.registry import FIRST, LAST
from crow.core.messages import Usage
from crow.core.ports.llm import Completion
from crow.core.tools import ToolResult
from crow.core.verdicts import Allow, Answer, Ask, Continue, Deny, Ruling, Stop, Verdict, strictness
from crow.testing import ScriptedModel, call, text

VERDICTS: list[Verdict | None] = [
    None,
    Allow("a"),
    Ask("default", default=True),
    Ask("hook"),
    Ask("rule", rule="Bash"),
    Deny("d"),
    Stop("s"),
    Answer("x"),
]


async def ruling_of(*answers: Any) -> Ruling:
    agent = Agent(ScriptedModel(), tools=())
    for answer in answers:
        agent.hooks.register("before_run", lambda answer=answer: answer)
    session = await agent.new_session()
    from crow.core.hooks.run_context import RunContext

    return await agent.hooks.before_run.fire(RunContext(agent, session, "hi"))


# gates


@settings(deadline=None)
@given(st.lists(st.sampled_from(VERDICTS), max_size=4))
async def test_no_order_of_hooks_changes_a_verdict(answers):
    rulings = [await ruling_of(*order) for order in itertools.permutations(answers)]

    assert len({type(ruling.verdict) for ruling in rulings}) == 1
    assert len({strictness(ruling.verdict) for ruling in rulings}) == 1
    assert len({ruling.answer is None for ruling in rulings}) == 1


@settings(deadline=None)
@given(st.lists(st.sampled_from(VERDICTS), max_size=4), st.data())
async def test_no_allow_weakens_a_rule(answers, data):
    before = await ruling_of(*answers)
    place = data.draw(st.integers(0, len(answers)))
    after = await ruling_of(*answers[:place], Allow("let me"), *answers[place:])

    assert strictness(after.verdict) >= strictness(before.verdict)
    if isinstance(before.verdict, Ask | Deny | Stop) and before.verdict != Ask(
        "default", default=True
    ):
        assert after.verdict == before.verdict


async def test_an_answer_does_not_outrank_a_denial(echo):
    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])
    agent.hooks.register("before_tool", lambda ctx: Answer("cached"))
    agent.hooks.register("before_tool", lambda ctx: Deny("no"))

    reply = await agent.run("go")

    assert reply.session.messages[2]["content"] == "no"
    assert not echo.ran


async def test_an_answer_stands_in_for_the_tool(echo):
    outcomes: list[str] = []
    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])
    agent.hooks.register("before_tool", lambda ctx: Answer("cached"))
    agent.hooks.register("after_tool", lambda outcome: outcomes.append(outcome))

    reply = await agent.run("go")

    assert reply.session.messages[2]["content"] == "cached"
    assert outcomes == ["answered"]
    assert not echo.ran


async def test_rewrites_chain_in_order_and_the_final_arguments_run(echo):
    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])

    def twice(args: dict[str, Any]) -> None:
        args["text"] *= 2

    def replace(ctx: ToolContext) -> None:
        ctx.args = {"text": ctx.args["text"] + "!"}

    agent.hooks.register("before_tool", replace, order=LAST)
    agent.hooks.register("before_tool", twice, order=FIRST)
    reply = await agent.run("go")

    assert echo.ran == [{"text": "aa!"}]
    assert [record.changed for record in reply.session.trace] == [("args",), ("args",)]
    assert '"a"' in reply.session.messages[1]["tool_calls"][0]["function"]["arguments"]


async def test_a_judge_sees_the_final_arguments_whatever_its_order(echo):
    seen: list[Any] = []
    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])
    agent.hooks.register(
        "before_tool", lambda args: seen.append(args["text"]), judge=True, order=FIRST
    )
    agent.hooks.register("before_tool", lambda args: args.update(text="b"), order=LAST)
    await agent.run("go")

    assert seen == ["b"]


async def test_a_judge_that_changes_what_it_judges_denies(echo):
    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])
    agent.hooks.register("before_tool", lambda args: args.update(text="b"), judge=True)
    reply = await agent.run("go")

    assert "must not change" in str(reply.session.messages[2]["content"])
    assert not echo.ran


async def test_rewritten_arguments_that_do_not_fit_the_schema_are_an_error_and_nobody_is_asked(
    echo, watcher
):
    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])
    agent.hooks.register("before_tool", lambda args: args.update(text=3))
    agent.hooks.register("before_tool", lambda ctx: Ask("sure?"), judge=True)
    reply = await agent.run("go", client=watcher)

    told = str(reply.session.messages[2]["content"])
    assert told.startswith("the hook <lambda> has changed the arguments, and they do not fit: ")
    assert told.endswith("echo: 'text' must be string, not 3")
    assert not watcher.asked
    assert not echo.ran


class Broken:
    """Hooks that fail in every way there is."""

    def raises(self) -> None:
        raise ValueError("broken")

    def leaves(self) -> None:
        raise SystemExit(3)

    async def hangs(self) -> None:
        await asyncio.Event().wait()

    async def cancels(self) -> None:
        raise asyncio.CancelledError

    def lies(self) -> Any:
        return 42


@pytest.mark.parametrize("way", ["raises", "leaves", "hangs", "cancels", "lies"])
async def test_a_gate_that_cannot_decide_denies_and_says_who(echo, way):
    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])
    agent.hooks.register("before_tool", getattr(Broken(), way), timeout=0.02)
    reply = await agent.run("go")

    said = str(reply.session.messages[2]["content"])
    assert said.startswith(f"the hook broken.{way} could not decide: ")
    assert not echo.ran
    assert reply.text == "done"


@pytest.mark.parametrize("way", ["raises", "leaves", "hangs", "cancels"])
async def test_other_kinds_never_change_anything_when_they_fail(echo, way):
    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])
    errors: list[str] = []
    for point in (
        "on_session_start",
        "before_llm_request",
        "after_llm_response",
        "on_message",
        "after_tool",
        "after_turn",
        "on_stop",
        "after_loop",
        "after_run",
    ):
        agent.hooks.register(point, getattr(Broken(), way), timeout=0.02)
    agent.hooks.register("on_error", lambda where: errors.append(where))
    reply = await agent.run("go")

    assert reply.text == "done"
    assert reply.stop_reason == "end_turn"
    assert [message["role"] for message in reply.session.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert set(errors) == {"hook:broken"}


async def test_an_untrusted_extensions_allow_counts_as_no_opinion(echo, watcher):
    class Friendly:
        def before_tool(self) -> Allow:
            return Allow()

    asking = Ask("sure?", default=True)
    for trusted, asked in ((True, 0), (False, 1)):
        agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])
        agent.use(Friendly(), trusted=trusted)
        agent.hooks.register("before_tool", lambda ctx: asking, judge=True)
        watcher.asked.clear()
        await agent.run("go", client=watcher)
        assert len(watcher.asked) == asked


async def test_text_of_before_tool_denies_with_that_reason(echo):
    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])
    agent.hooks.register("PreToolUse", lambda block: f"not {block.input['text']}")
    reply = await agent.run("go")

    assert reply.session.messages[2]["content"] == "not a"


async def test_a_refused_prompt_leaves_nothing_behind(watcher):
    agent = Agent(ScriptedModel(leftover="allow"), tools=())

    async def inject(ctx: Any) -> None:
        await ctx.inject_context("a secret")

    agent.hooks.register("before_run", inject)
    agent.hooks.register("before_run", lambda ctx: Deny("not today"))
    reply = await agent.run("go", client=watcher)

    assert (reply.stop_reason, reply.detail) == ("refusal", "not today")
    assert reply.session.messages == []
    assert reply.session.pending == []
    assert Notice("refused by <lambda>: not today", "warning", "<lambda>") in watcher.events


async def test_a_gate_can_answer_a_prompt_in_the_models_place():
    agent = Agent(ScriptedModel(), tools=())
    agent.hooks.register("before_run", lambda prompt: Answer(f"echo {prompt}"))

    reply = await agent.run("go")

    assert (reply.text, reply.stop_reason) == ("echo go", "end_turn")


async def test_text_of_before_run_stands_right_behind_the_prompt():
    model = ScriptedModel("done")
    agent = Agent(model, tools=())

    def rag(user_input: str) -> str:
        return f"about {user_input}"

    agent.hooks.register("before_run", rag)
    await agent.run("go")

    assert model.asked[0]["messages"] == [
        {"role": "user", "content": "go"},
        {
            "role": "user",
            "content": '<crow-context source="rag">\nabout go\n</crow-context>',
        },
    ]


async def test_a_hook_may_rewrite_the_prompt():
    model = ScriptedModel("done")
    agent = Agent(model, tools=())

    def shout(ctx: Any) -> None:
        ctx.prompt = ctx.prompt.upper()

    agent.hooks.register("before_run", shout)
    await agent.run("go")

    assert model.asked[0]["messages"] == [{"role": "user", "content": "GO"}]


# folds


async def test_each_fold_hook_gets_the_value_of_the_one_before():
    model = ScriptedModel("done")
    agent = Agent(model, tools=())
    system = {"role": "system", "content": "one"}
    agent.hooks.register("before_llm_request", lambda messages: [system, *messages])

    def two(ctx: Any) -> None:
        ctx.messages = [{**ctx.messages[0], "content": "two"}, *ctx.messages[1:]]

    agent.hooks.register("before_llm_request", two)
    agent.hooks.register("before_llm_request", lambda messages: {})
    reply = await agent.run("go")

    assert [m["content"] for m in model.asked[0]["messages"]] == ["two", "go"]
    assert [m["content"] for m in reply.session.messages] == ["go", "done"]


async def test_a_failing_folds_changes_are_rolled_back():
    model = ScriptedModel("done")
    agent = Agent(model, tools=())

    def half(ctx: Any) -> None:
        ctx.messages.append({"role": "user", "content": "half"})
        ctx.params["temperature"] = 2
        raise ValueError("half-way")

    agent.hooks.register("before_llm_request", half)
    reply = await agent.run("go")

    assert model.asked[0]["messages"] == [{"role": "user", "content": "go"}]
    assert model.asked[0]["params"] == {}
    [record] = reply.session.trace
    assert str(record.error).startswith(f"ValueError: half-way ({__file__}:")


async def test_a_fold_hook_that_fails_three_times_in_a_row_is_switched_off_and_said_so_once(
    echo, watcher
):
    script = [call("echo", text=str(i)) for i in range(5)]
    agent = Agent(ScriptedModel(*script, "done"), tools=[echo])
    runs: list[int] = []

    def broken() -> None:
        runs.append(1)
        raise ValueError("again")

    agent.hooks.register("after_tool", broken)
    await agent.run("go", client=watcher)

    assert len(runs) == 3
    notices = [event.text for event in watcher.events if isinstance(event, Notice)]
    [notice] = notices
    assert notice.startswith(
        f"the hook broken failed 3 times in a row and is switched off: ValueError: again ({__file__}:"
    )


async def test_text_of_after_tool_is_context_behind_the_results(echo):
    model = ScriptedModel([call("echo", text="a"), call("echo", text="b")], "done")
    agent = Agent(model, tools=[echo])
    agent.hooks.register("after_tool", lambda output: f"seen {output}")
    await agent.run("go")

    tail = [str(m["content"]) for m in model.asked[1]["messages"][2:]]
    assert tail[:2] == ["echo a", "echo b"]
    assert ["seen echo a" in tail[2], "seen echo b" in tail[3]] == [True, True]


async def test_after_tool_can_replace_the_result(echo):
    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])

    def shorten(ctx: ToolContext) -> None:
        ctx.result = ToolResult("short")

    agent.hooks.register("after_tool", shorten)
    reply = await agent.run("go")

    assert reply.session.messages[2]["content"] == "short"


async def test_reply_hooks_replace_text_or_the_whole_reply():
    agent = Agent(ScriptedModel("one", "two"), tools=())
    agent.hooks.register("after_llm_response", lambda reply: reply.text + "!")
    agent.hooks.register("after_loop", lambda reply: reply.text + "?")
    reply = await agent.run("go")
    assert (reply.text, reply.session.messages[-1]["content"]) == ("one!?", "one!")

    agent.hooks.register("after_llm_response", lambda reply: Completion("other"))
    reply = await agent.run("go")
    assert reply.text == "other?"


async def test_on_update_may_change_or_withhold_an_event(watcher):
    agent = Agent(ScriptedModel("hello"), tools=())
    agent.hooks.register("MessageDisplay", lambda update: TextDelta(update.text.upper()))
    agent.hooks.register("on_update", lambda update: Deny() if isinstance(update, RunEnded) else {})
    await agent.run("go", client=watcher)

    assert watcher.events == [TextDelta("HELLO")]


async def test_stop_of_a_fold_hook_ends_the_run_gracefully(echo):
    agent = Agent(
        ScriptedModel([call("echo", text="a"), call("echo", text="b")], leftover="allow"),
        tools=[echo],
    )
    agent.hooks.register("after_llm_response", lambda reply: Stop("enough"))
    reply = await agent.run("go")

    assert (reply.stop_reason, reply.detail) == ("hook_stopped", "stopped by function: enough") or (
        reply.stop_reason == "hook_stopped" and "enough" in reply.detail
    )
    assert [m["content"] for m in reply.session.messages[2:]] == [
        "not run: the run was stopped before"
    ] * 2
    assert not echo.ran


async def test_an_after_tool_hook_can_end_the_loop(echo, watcher):
    agent = Agent(
        ScriptedModel([call("echo", text="a"), call("echo", text="b")], leftover="allow"),
        tools=[echo],
    )

    def stop(ctx: ToolContext) -> None:
        ctx.stop("seen enough")

    agent.hooks.register("after_tool", stop)
    reply = await agent.run("go", client=watcher)

    assert reply.stop_reason == "hook_stopped"
    assert reply.detail == "stopped by stop: seen enough"
    assert len(reply.session.messages) == 4


# watches


async def test_a_background_hook_runs_beside_the_conversation():
    done = asyncio.Event()
    gate = asyncio.Event()

    async def slow(ctx: Any) -> None:
        await gate.wait()
        done.set()

    agent = Agent(ScriptedModel("one"), tools=())
    agent.hooks.register("after_turn", slow, background=True)
    reply = await agent.run("go")
    assert not done.is_set()
    gate.set()
    async with asyncio.timeout(30):
        await done.wait()
        await asyncio.gather(*reply.session.tasks)
    assert [record.event for record in reply.session.trace] == ["after_turn"]


async def test_a_background_hook_ends_with_its_session():
    ended = asyncio.Event()

    async def forever(ctx: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    agent = Agent(ScriptedModel("one"), tools=())
    agent.hooks.register("after_turn", forever, background=True)
    await agent.run("go")
    await agent.close()
    async with asyncio.timeout(30):
        await ended.wait()


# wraps


async def test_wraps_nest_with_the_first_registered_outermost(echo):
    order: list[str] = []

    def wrap(name: str) -> Any:
        async def around(ctx: ToolContext, call_next: Any) -> Any:
            order.append(f"{name}>")
            result = await call_next()
            order.append(f"<{name}")
            return result

        return around

    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])
    agent.hooks.register("around_tool", wrap("a"))
    agent.hooks.register("around_tool", wrap("b"), tools={"ECHO"})
    agent.hooks.register("around_tool", wrap("c"), tools={"other"})
    await agent.run("go")

    assert order == ["a>", "b>", "<b", "<a"]


async def test_a_wrap_may_call_on_several_times_or_not_at_all(echo):
    async def thrice(call_next: Any) -> Any:
        return [await call_next() for _ in range(3)][-1]

    async def never(call_next: Any) -> Any:
        return Answer("instead")

    for wrap, ran, said in ((thrice, 3, "echo a"), (never, 0, "instead")):
        echo.ran.clear()
        agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])
        agent.hooks.register("around_tool", wrap)
        reply = await agent.run("go")
        assert len(echo.ran) == ran
        assert reply.session.messages[2]["content"] == said


async def test_an_error_in_a_wrap_is_the_operations_error(echo):
    async def broken(call_next: Any) -> Any:
        raise ValueError("in the way")

    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])
    agent.hooks.register("around_tool", broken)
    reply = await agent.run("go")
    assert str(reply.session.messages[2]["content"]).startswith(
        f"ValueError: in the way (in the hook broken, {__file__}:"
    )

    agent = Agent(ScriptedModel("done", leftover="allow"), tools=())
    agent.hooks.register("around_run", broken)
    with pytest.raises(ValueError, match="in the way"):
        await agent.run("go")


async def test_only_the_hook_that_failed_is_named_not_the_ones_around_it():
    async def outer(call_next: Any) -> Any:
        return await call_next()

    async def broken(call_next: Any) -> Any:
        raise ValueError("in the way")

    model = ScriptedModel(ValueError("no answer"), "done", leftover="allow")
    agent = Agent(model, hooks=[], tools=())
    agent.hooks.register("around_llm_request", outer)
    session = await agent.new_session()
    assert (await agent.prompt(session, "go")).detail == "no answer"

    agent.hooks.register("around_run", outer)
    agent.hooks.register("around_run", broken)
    reply = await agent.prompt(session, "go")
    assert reply.stop_reason == "error"
    assert reply.detail.startswith(f"in the way (in the hook broken, {__file__}:")


async def test_what_a_wrap_raises_for_people_is_told_as_it_is():
    async def around_run() -> None:
        raise CrowError("this is enough: /clear and begin again")

    agent = Agent(ScriptedModel(leftover="allow"), hooks=[around_run], tools=())
    reply = await agent.prompt(await agent.new_session(), "go")
    assert reply.detail == "this is enough: /clear and begin again"


async def test_the_time_of_what_a_wrap_calls_is_not_its_own(echo):
    async def around(call_next: Any) -> Any:
        return await call_next()

    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])
    agent.hooks.register("around_tool", around, timeout=0.05)
    echo.wait = asyncio.Event()
    asyncio.get_running_loop().call_later(0.15, echo.wait.set)
    reply = await agent.run("go")

    assert reply.session.messages[2]["content"] == "echo a"


async def test_a_wrap_can_serve_a_reply_without_a_request():
    agent = Agent(ScriptedModel(), tools=())

    async def cached(call_next: Any) -> Completion:
        return Completion("from the cache")

    agent.hooks.register("around_llm_request", cached)
    assert (await agent.run("go")).text == "from the cache"


# continue


async def test_a_stop_hook_goes_on_with_its_message_and_counts():
    counts: list[int] = []
    model = ScriptedModel("one", "two", "three")
    agent = Agent(model, tools=())

    def until_two(count: int, cap: int) -> Any:
        counts.append(count)
        return Continue(f"again {count}") if count < 2 else None

    agent.hooks.register("Stop", until_two)
    agent.hooks.register("Stop", lambda count: "me too" if count == 0 else None)
    reply = await agent.run("go")

    assert reply.text == "three"
    assert counts == [0, 1, 2]
    assert "again 0\n\nme too" in str(model.asked[1]["messages"][-1]["content"])


async def test_the_cap_overrides_a_stop_hook_that_never_ends_and_says_so(watcher):
    heard: list[str] = []
    agent = Agent(ScriptedModel(*["again"] * 9), tools=())
    agent.hooks.register("on_stop", lambda ctx: "more")
    agent.hooks.register(
        "on_notification", lambda kind, message: heard.append(f"{kind}: {message}")
    )
    reply = await agent.run("go", client=watcher)

    assert reply.stop_reason == "end_turn"
    assert len(heard) == 1
    assert heard[0].startswith("stop_cap: kept going 8 times by hooks")
    (notice,) = [event for event in watcher.events if isinstance(event, Notice)]
    assert f"stop_cap: {notice.text}" == heard[0]


async def test_tool_calls_reset_the_cap_in_a_row_but_not_the_one_in_total(echo):
    script: list[Any] = []
    for i in range(25):
        script += [call("echo", text=str(i)), "done"]
    agent = Agent(ScriptedModel(*script, call("echo", text="z"), "end"), tools=[echo])
    agent.hooks.register("on_stop", lambda ctx: "more")
    reply = await agent.run("go")

    assert reply.text == "end"


async def test_a_broken_stop_hook_never_keeps_a_run_going():
    agent = Agent(ScriptedModel("one"), tools=())
    agent.hooks.register("on_stop", Broken().raises)
    agent.hooks.register("on_stop", Broken().lies)
    assert (await agent.run("go")).text == "one"


async def test_a_stop_hook_may_stop_for_good():
    agent = Agent(ScriptedModel("one"), tools=())
    agent.hooks.register("on_stop", lambda ctx: "more")
    agent.hooks.register("on_stop", lambda ctx: Stop("no more"))
    reply = await agent.run("go")
    assert reply.stop_reason == "hook_stopped"


# time


async def test_a_hooks_clock_stands_still_while_the_user_thinks(echo, watcher):
    async def ask(ctx: ToolContext) -> Any:
        return None if await ctx.ui.confirm("sure?") else Deny("no")

    async def slow_answer(session_id: str, question: Any) -> bool:
        await asyncio.sleep(0.1)
        return True

    watcher.ask = slow_answer
    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])
    agent.hooks.register("before_tool", ask, timeout=0.05)
    await agent.run("go", client=watcher)

    assert echo.ran == [{"text": "a"}]


async def test_usage_of_all_requests_adds_up(echo):
    used: Usage = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}
    agent = Agent(
        ScriptedModel(call("echo", text="a", usage=used), text("done", usage=used)), tools=[echo]
    )
    reply = await agent.run("go")

    assert reply.usage == {"input_tokens": 20, "output_tokens": 4, "total_tokens": 24}


# what is sent


async def test_who_looks_at_requests_sees_them_as_they_are_sent_and_changes_nothing():
    seen: list[Any] = []

    def before_llm_request(ctx: Any) -> list[Any]:
        return [{"role": "system", "content": "First."}, *ctx.messages]

    async def around_llm_request(ctx: Any, call_next: Any) -> Any:
        ctx.messages = [*ctx.messages, {"role": "user", "content": "Last."}]
        ctx.params = {"temperature": 0}
        return await call_next()

    def on_llm_request(ctx: Any) -> None:
        seen.append((ctx.messages, ctx.tools, ctx.model, ctx.params))
        with pytest.raises(TypeError, match="cannot be changed in place"):
            ctx.messages.append({"role": "user", "content": "More."})

    model = ScriptedModel("done")
    hooks = [on_llm_request, before_llm_request, around_llm_request]
    reply = await Agent(model, hooks=hooks, tools=[]).run("hello")
    [(messages, tools, name, params)] = seen
    [asked] = model.asked
    assert [m["content"] for m in messages] == ["First.", "hello", "Last."]
    assert asked["messages"] == messages
    assert (tools, name, params) == ([], None, {"temperature": 0})
    changed = {record.event: record.changed for record in reply.session.trace}
    assert changed["around_llm_request"] == ("messages", "params")
    assert changed["before_llm_request"] == ("messages",)


async def test_a_request_that_is_made_twice_is_told_twice():
    async def around_llm_request(ctx: Any, call_next: Any) -> Any:
        await call_next()
        ctx.model = "another"
        return await call_next()

    asked: list[Any] = []
    agent = Agent(ScriptedModel("one", "two"), hooks=[around_llm_request], tools=[])
    agent.hooks.register("on_llm_request", lambda model: asked.append(model))
    assert (await agent.run("hello")).text == "two"
    assert asked == [None, "another"]
