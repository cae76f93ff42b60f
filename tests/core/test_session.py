"""One conversation in memory: mending, segments, tokens; and the seven methods of a context."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crow.core.agent import Agent
from crow.core.messages import Message, Usage, context_block, is_prompt, text_of, weight
from crow.core.session import Session
from crow.core.tools import ToolKind, ToolResult
from crow.core.verdicts import Allow, Ask, Deny
from crow.testing import ScriptedModel, call, text


def asked(*ids: str) -> Message:
    made: Any = [
        {"id": i, "type": "function", "function": {"name": "f", "arguments": "{}"}} for i in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def answered(call_id: str) -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": "ok"}


USER: Message = {"role": "user", "content": "go"}


@given(
    st.lists(
        st.one_of(
            st.just(USER),
            st.lists(st.sampled_from("abcdef"), min_size=1, max_size=3, unique=True).map(
                lambda ids: asked(*ids)
            ),
            st.sampled_from("abcdef").map(answered),
        ),
        max_size=8,
    )
)
def test_mending_leaves_every_call_with_one_answer_behind_it_and_mending_again_nothing(messages):
    session = Session(messages=list(messages))
    session.repair("why")
    open_ids: list[str] = []
    for message in session.messages:
        if message["role"] == "tool":
            open_ids.remove(message.get("tool_call_id", ""))
        else:
            assert not open_ids
            open_ids = [c["id"] for c in message.get("tool_calls", ())]
    assert not open_ids
    assert [m for m in session.messages if m["role"] != "tool"] == [
        m for m in messages if m["role"] != "tool"
    ]
    mended = list(session.messages)
    assert session.repair() == []
    assert session.messages == mended


def test_a_dangling_call_is_answered_where_it_belongs():
    session = Session(messages=[USER, asked("a", "b"), answered("b"), USER])
    added = session.repair()
    assert [m.get("tool_call_id") for m in session.messages] == [None, None, "b", "a", None]
    assert [text_of(m.get("content")) for m in added] == ["interrupted, outcome unknown"]
    assert session.unanswered() == []
    assert Session(messages=[asked("a", "b"), answered("a")]).unanswered() == ["b"]
    assert Session().unanswered() == []


def test_tokens_are_what_was_reported_and_a_quarter_of_the_characters_since():
    session = Session(messages=[USER])
    assert session.tokens()["total_tokens"] == 0
    session.messages.append({"role": "user", "content": "x" * 400})
    assert session.tokens(1000) == {
        "total_tokens": 100,
        "input_tokens": 0,
        "cached_tokens": 0,
        "context_window": 1000,
        "fraction": 0.1,
    }
    session.report(
        {"input_tokens": 70, "output_tokens": 30, "total_tokens": 100, "cached_tokens": 60}
    )
    session.report(None)
    assert session.tokens()["total_tokens"] == 100
    assert session.tokens()["cached_tokens"] == 60
    session.messages.append(asked("a"))
    assert session.tokens()["fraction"] is None
    assert weight(asked("a")) == 3
    assert session.usage["total_tokens"] == 100


def test_injected_context_is_no_prompt():
    session = Session(messages=[USER, context_block("secret", "me")])
    assert session.latest_prompt() == "go"
    assert Session().latest_prompt() == ""
    assert not is_prompt(asked("a"))
    image: Any = {
        "role": "user",
        "content": [
            {"type": "image_url", "image_url": {"url": "data:"}},
            {"type": "text", "text": "look"},
        ],
    }
    assert Session(messages=[image]).latest_prompt() == "look"


async def test_the_seven_methods_of_a_context(echo):
    seen: dict[str, Any] = {}
    used: Usage = {"input_tokens": 90, "output_tokens": 10, "total_tokens": 100}
    model = ScriptedModel(text("one", usage=used), "two", context_window=1000)
    agent = Agent(model, tools=[echo])

    async def pre_request(ctx: Any) -> None:
        seen["before"] = await ctx.get_latest_user_message()

    async def after_turn(ctx: Any) -> None:
        seen["latest"] = await ctx.get_latest_user_message()
        messages = await ctx.get_messages()
        messages[0]["content"] = "changed"
        seen["count"] = await ctx.get_token_count()
        if seen["latest"] == "first":
            seen["id"] = await ctx.restart_with_new_session([{"role": "user", "content": "sum"}])

    agent.hooks.register("pre_request", pre_request)
    agent.hooks.register("after_turn", after_turn)
    session = await agent.new_session()
    await agent.prompt(session, "first")
    assert seen == {
        "before": "first",
        "latest": "first",
        "id": session.id,
        "count": {
            "total_tokens": 100,
            "input_tokens": 90,
            "cached_tokens": 0,
            "context_window": 1000,
            "fraction": 0.1,
        },
    }
    assert (session.segment, session.messages) == (1, [{"role": "user", "content": "sum"}])
    await agent.prompt(session, "second")
    assert [m["content"] for m in model.asked[1]["messages"]] == ["sum", "second"]


async def test_a_restart_without_messages_begins_with_the_prompt_and_stays_whole(echo, whole):
    model = ScriptedModel("old", call("echo", text="a"), "done")
    agent = Agent(model, tools=[echo])
    session = await agent.new_session()
    await agent.prompt(session, "old prompt")

    async def mid_react(ctx: Any) -> None:
        if ctx.reply.calls:
            await ctx.stop_current_turn()
            await ctx.restart_with_new_session()
            await ctx.continue_with_current_session()

    agent.hooks.register("mid_react", mid_react)
    reply = await agent.prompt(session, "new prompt")
    assert reply.text == "done"
    assert [m["role"] for m in session.messages] == ["user", "assistant", "tool", "assistant"]
    assert session.messages[0]["content"] == "new prompt"
    whole(session.messages)


async def test_a_restart_while_calls_run_keeps_their_results(echo, whole):
    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])

    async def after_tool(ctx: Any) -> None:
        await ctx.restart_with_new_session(await ctx.get_messages())

    agent.hooks.register("after_tool", after_tool)
    reply = await agent.run("go")
    assert [m["content"] for m in reply.session.messages if m["role"] == "tool"] == ["echo a"]
    whole(reply.session.messages)


async def test_a_restart_before_the_request_reaches_the_request():
    model = ScriptedModel("done")
    agent = Agent(model, tools=())

    async def before_llm_request(ctx: Any) -> None:
        await ctx.restart_with_new_session([{"role": "user", "content": "short"}])

    agent.hooks.register("before_llm_request", before_llm_request)
    await agent.run("a long story")
    assert model.asked[0]["messages"] == [{"role": "user", "content": "short"}]


async def test_a_stop_before_the_request_makes_none():
    agent = Agent(ScriptedModel(), tools=())

    async def before_llm_request(ctx: Any) -> None:
        await ctx.stop_current_turn()

    agent.hooks.register("before_llm_request", before_llm_request)
    reply = await agent.run("go")
    assert (reply.stop_reason, reply.detail) == ("hook_stopped", "stopped by before_llm_request")


async def test_a_stop_in_before_run_refuses_the_prompt():
    agent = Agent(ScriptedModel(), tools=())

    async def before_run(ctx: Any) -> None:
        ctx.stop("closed on Sundays")

    agent.hooks.register("before_run", before_run)
    reply = await agent.run("go")
    assert (reply.stop_reason, reply.detail) == ("refusal", "closed on Sundays")


async def test_compaction_hooks_may_change_the_summary_or_forbid_it():
    from crow.core.verdicts import Deny

    agent = Agent(ScriptedModel("one", "two"), tools=())
    told: list[str] = []
    agent.hooks.register("PreCompact", lambda summary: summary + "!")
    agent.hooks.register(
        "after_compact", lambda summary, trigger: told.append(f"{trigger} {summary}")
    )

    async def after_turn(ctx: Any) -> None:
        told.append(str(await ctx.compact([], "so far", "auto")))

    agent.hooks.register("after_turn", after_turn)
    session = await agent.new_session()
    await agent.prompt(session, "go")
    assert told == ["auto so far!", "True"]
    assert [text_of(m.get("content")) for m in session.messages] == [
        '<crow-context source="summary">\nso far!\n</crow-context>'
    ]
    agent.hooks.register("before_compact", lambda ctx: Deny("keep it"))
    await agent.prompt(session, "again")
    assert told[2:] == ["False"]


async def test_contexts_outside_a_run_can_say_things_too(watcher):
    agent = Agent(ScriptedModel(), tools=())

    async def on_session_start(ctx: Any) -> None:
        ctx.stop("nothing to stop")
        await ctx.continue_with_current_session()
        assert await ctx.get_latest_user_message() == ""
        assert ctx.roots == (ctx.cwd,)
        await ctx.ui.notify("hello")

    agent.hooks.register("on_session_start", on_session_start)
    session = await agent.new_session(client=watcher)
    assert watcher.names() == ["Notice"]
    assert [record.error for record in session.trace] == [None]
    assert len(session.trace) == 1


async def test_the_trace_says_which_hooks_touched_a_call(echo):
    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])
    watched: list[str] = []
    agent.hooks.watchers.append(lambda record, ctx: watched.append(record.event))
    agent.hooks.register("before_tool", lambda args: args.update(text="b"))
    agent.hooks.register("after_tool", lambda ctx: None)
    agent.hooks.register("after_turn", lambda ctx: None)
    reply = await agent.run("go")
    records = reply.session.trace.of_call("call_1")
    assert [(r.event, r.changed) for r in records] == [
        ("before_tool", ("args",)),
        ("after_tool", ()),
    ]
    assert watched == ["before_tool", "after_tool", "after_turn", "after_turn"]
    assert [r.values for r in records] == [{"args": {"text": "b"}}, {}]


async def test_the_trace_tells_a_user_s_answer_from_nobody_s(echo, watcher):
    model = ScriptedModel(call("echo", text="a"), "done", call("echo", text="b"), "done")
    agent = Agent(model, tools=[echo])
    agent.hooks.register("before_tool", lambda ctx: Ask("sure?"))
    session = await agent.new_session()
    await agent.prompt(session, "go")
    session.client = watcher
    watcher.answer = "allow_once"
    await agent.prompt(session, "go")
    asked = [record for record in session.trace if record.owner == "user"]
    assert [record.hook for record in asked] == ["nobody", "allow_once"]
    assert [type(record.answer) for record in asked] == [Deny, Allow]
    assert session.trace.since(session.trace.count - 1) == [*session.trace][-1:]
    assert session.trace.since(0) == [*session.trace]


def test_a_model_error_carries_what_a_face_needs():
    from crow.core.errors import ModelError

    error = ModelError("slow down", kind="rate_limit", status=429, retry_after=3)
    assert (str(error), error.kind, error.status, error.retry_after) == (
        "slow down",
        "rate_limit",
        429,
        3,
    )


@pytest.mark.parametrize("value, shown", [("a", "a"), ({"b": 1}, '{"b": 1}')])
async def test_what_a_tool_returns_becomes_a_result(make_echo, value, shown):
    class Odd:
        name, description = "odd", ""
        kind: ToolKind = "other"
        parameters: dict[str, Any] = {"type": "object"}  # noqa: RUF012

        def title(self, args: Any) -> str:
            raise ValueError("no title")

        async def run(self, args: Any, ctx: Any) -> Any:
            await ctx.progress("working")
            assert ctx.state == {}
            return value

    agent = Agent(ScriptedModel(call("odd"), "done"), tools=[Odd()])
    reply = await agent.run("go")
    assert reply.session.messages[2]["content"] == shown


async def test_a_hook_can_ask_the_model_beside_the_conversation():
    from crow.core.ports.llm import Request

    used: Usage = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    agent = Agent(ScriptedModel(text("a summary", usage=used), "done"), tools=())
    said: list[str] = []

    async def before_run(ctx: Any) -> None:
        said.append((await ctx.complete(Request([USER]))).text)

    agent.hooks.register("before_run", before_run)
    reply = await agent.run("go")
    assert said == ["a summary"]
    assert [m["content"] for m in reply.session.messages] == ["go", "done"]
    assert reply.session.usage == used

    class Mute:
        model, context_window = "mute", None

        async def stream(self, request: Any) -> AsyncGenerator[Any, None]:
            for nothing in ():
                yield nothing

    agent = Agent(Mute(), tools=())
    agent.hooks.register("before_run", before_run)
    reply = await agent.prompt(await agent.new_session(), "go")
    assert "could not decide: ModelError: the model ended without an answer" in reply.detail


@pytest.mark.parametrize(
    "content, shown",
    [
        ('<mcp-data server="x">\n3\n</mcp-data>', "3"),
        ('<mcp-data server="x"></mcp-data>', ""),
        ("<my-app>\nhello\n</my-app>", "<my-app>\nhello\n</my-app>"),
        ('<mcp-data server="x">\ncut', '<mcp-data server="x">\ncut'),
        ([{"type": "text", "text": "plain"}], "plain"),
    ],
)
def test_people_see_no_label_that_is_for_the_model(content, shown):
    assert ToolResult(content).shown == shown
