"""Wraps that an answer streams through: what they see, hold back, change, drop and add."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from crow import Agent, Call, Completion, NullClient
from crow.core.hooks.wraps.stream import ANEW
from crow.errors import ModelError
from crow.events import CallDelta, Event, Retrying, TextDelta, ThoughtDelta
from crow.testing import ScriptedModel, call, delay, text

HERE = re.escape(__file__)
BROKEN = ModelError("it broke", kind="overloaded")


async def passing(ctx: Any, call_next: Any) -> Any:
    return await call_next()


async def through(ctx: Any, call_next: Any) -> Any:
    async for piece in call_next():
        yield piece


async def loud(ctx: Any, call_next: Any) -> Any:
    """Change each piece of the text."""
    async for piece in call_next():
        yield replace(piece, text=piece.text.upper()) if isinstance(piece, TextDelta) else piece


ORDERS = [[loud], [passing, loud], [loud, passing], [through, loud], [loud, passing, through],
          [passing, through, passing, loud, passing]]  # fmt: skip


@pytest.mark.parametrize("arounds", ORDERS, ids=lambda a: "-".join(f.__name__ for f in a))
async def test_what_a_hook_makes_of_the_pieces_is_seen_and_stored(arounds, said):
    reply, client = await said(ScriptedModel(["Hel", "lo"]), *arounds)
    assert client.texts == ["HEL", "LO"]
    assert reply.text == reply.session.messages[1]["content"] == "HELLO"


async def test_a_hook_sees_each_piece_when_it_comes(said, played):
    seen: list[Any] = []
    model = played(["a", "b", "c"])

    async def look(ctx: Any, call_next: Any) -> Any:
        async for piece in call_next():
            seen.append((piece, model.at))
            yield piece

    reply, client = await said(model, look)
    assert [(piece.text, at) for piece, at in seen] == [("a", 1), ("b", 2), ("c", 3), ("abc", 3)]
    assert isinstance(seen[-1][0], Completion)
    assert reply.text == client.text == "abc"


async def test_a_hook_can_hold_back_drop_and_add_pieces(said):
    async def by_sentence(ctx: Any, call_next: Any) -> Any:
        held = ""
        yield "Note: "
        async for piece in call_next():
            match piece:
                case TextDelta(said):
                    *whole, held = re.split(r"(?<=\.) ", held + said)
                    for sentence in whole:
                        if "secret" not in sentence:
                            yield TextDelta(sentence + " ")
                case Completion():
                    yield held
                    yield piece
                case _:
                    yield piece

    model = ScriptedModel(["One th", "ing. A sec", "ret thing. Ano", "ther."])
    reply, client = await said(model, by_sentence)
    assert client.texts == ["Note: ", "One thing. ", "Another."]
    assert reply.text == client.text


async def test_calls_thoughts_and_retries_pass_and_thoughts_can_be_dropped(echo, said, played):
    async def no_thoughts(ctx: Any, call_next: Any) -> Any:
        async for piece in call_next():
            if not isinstance(piece, ThoughtDelta):
                yield piece

    made = Call("call_9", "echo", {"text": "a"}, '{"text": "a"}')
    pieces = [Retrying(1, 0.0, "busy"), ThoughtDelta("hm"), CallDelta("call_9", "echo", "{")]
    opaque = {"reasoning_content": "hm"}
    whole = Completion("", (made,), "hm", "tool_calls", opaque=opaque)
    reply, client = await said(
        played([*pieces, whole], [Completion("done")]), no_thoughts, tools=[echo]
    )
    kinds = [type(event).__name__ for event in client.events]
    assert kinds[:3] == ["Retrying", "CallDelta", "ToolPending"]
    assert "hm" not in str(reply.session.messages)
    assert echo.ran == [{"text": "a"}]


async def test_the_reply_may_be_changed_beside_the_pieces_and_does_not_undo_what_they_say(said):
    async def redact(ctx: Any, call_next: Any) -> Any:
        async for piece in call_next():
            if isinstance(piece, Completion):
                yield replace(piece, model="mine")
            else:
                yield TextDelta(piece.text.replace("secret", "***"))

    reply, client = await said(ScriptedModel(["the ", "secret"]), redact)
    assert client.text == reply.text == reply.session.messages[1]["content"] == "the ***"


async def test_a_text_of_the_replys_own_counts_and_is_shown(said):
    async def whole(ctx: Any, call_next: Any) -> Any:
        async for piece in call_next():
            if isinstance(piece, Completion):
                yield Completion("Hello!")
            else:
                yield piece

    for first, shown in (("Hel", "Hello!"), ("Good", f"Good{ANEW}Hello!")):
        reply, client = await said(ScriptedModel(first), whole)
        assert (reply.text, client.text) == ("Hello!", shown)


async def test_a_hook_can_answer_in_pieces_without_a_model(said):
    async def own(ctx: Any, call_next: Any) -> Any:
        yield ThoughtDelta("well, ")
        yield "One, "
        yield TextDelta("two")

    reply, client = await said(ScriptedModel(), own)
    assert client.texts == ["One, ", "two"]
    assert reply.session.messages[1] == {
        "role": "assistant", "content": "One, two", "reasoning_content": "well, ",
    }  # fmt: skip


async def test_a_hook_can_cut_an_answer_off_and_the_model_is_hung_up(said, played):
    model = played(["one ", "two ", "three ", asyncio.Event()])

    async def until_two(ctx: Any, call_next: Any) -> Any:
        async for piece in call_next():
            yield piece
            if piece.text == "two ":
                return

    reply, client = await said(model, until_two)
    assert reply.text == client.text == "one two "
    assert model.at <= 3
    assert model.closed


async def test_attempts_that_are_whole_make_one_answer_where_a_hook_yields_both(said):
    async def go_on(ctx: Any, call_next: Any) -> Any:
        said = ""
        async for piece in call_next():
            if not isinstance(piece, Completion):
                said += piece.text
                yield piece
            elif piece.finish != "length":
                yield piece
                return
        more = [*ctx.messages, {"role": "assistant", "content": said},
                {"role": "user", "content": "Go on"}]  # fmt: skip
        async for piece in call_next(messages=more):
            yield piece

    model = ScriptedModel(text("One, two, ", finish="length"), "three.")
    reply, client = await said(model, go_on)
    assert client.text == reply.text == "One, two, three."
    assert reply.stop_reason == "end_turn"


@pytest.mark.parametrize(("second", "shown"), [("Hello", "Hello"), ("No", f"Hel{ANEW}No")])
async def test_what_was_yielded_of_an_attempt_that_failed_is_not_shown_twice(
    second, shown, said, played
):
    async def retry(ctx: Any, call_next: Any) -> Any:
        try:
            async for piece in call_next():
                yield piece
        except ModelError:
            async for piece in call_next(model="other"):
                yield piece

    reply, client = await said(played(["Hel", BROKEN], [second]), retry)
    assert client.text == shown
    assert reply.text == second


async def test_an_answer_thrown_away_further_in_is_no_part_of_what_a_hook_changes(said):
    async def twice(ctx: Any, call_next: Any) -> Any:
        await call_next()
        return await call_next()

    async def redact(ctx: Any, call_next: Any) -> Any:
        async for piece in call_next():
            yield replace(piece, text=piece.text.replace("secret", "***"))

    reply, client = await said(ScriptedModel("A secret", "Some secret"), redact, twice)
    assert client.texts == ["A ***", ANEW, "Some ***"]
    assert reply.text == "Some ***"


# what goes wrong


async def nonsense(ctx: Any, call_next: Any) -> Any:
    yield 42


async def half_a_piece(ctx: Any, call_next: Any) -> Any:
    yield TextDelta(None)  # pyright: ignore[reportArgumentType]


async def more_behind(ctx: Any, call_next: Any) -> Any:
    async for piece in call_next():
        yield piece
    yield "more"


async def keeps_the_reply(ctx: Any, call_next: Any) -> Any:
    async for piece in call_next():
        if isinstance(piece, TextDelta):
            yield piece


async def yields_nothing(ctx: Any, call_next: Any) -> Any:
    if ctx is None:
        yield call_next


@pytest.mark.parametrize(
    ("hook", "told", "line"),
    [
        (nonsense, "what it yielded must be a piece of an answer, or the reply, not 42", 1),
        (half_a_piece, "what it yielded.text must be str, not None", 1),
        (more_behind, "yielded more behind its reply, which comes last", 3),
        (keeps_the_reply, "kept the reply to itself: yield the Completion, too", 0),
        (yields_nothing, "yielded nothing (is a yield missing?)", 0),
    ],
)
async def test_what_a_hook_yields_wrongly_is_its_error_with_file_and_line(hook, told, line, said):
    reply, _ = await said(ScriptedModel("Hello", leftover="allow"), passing, hook, passing)
    assert reply.stop_reason == "error"
    assert told in reply.detail
    line += hook.__code__.co_firstlineno
    assert f"(in the hook {hook.__name__}, {__file__}:{line})" in reply.detail


async def test_a_hook_may_mend_what_it_yielded_wrongly(said):
    async def mends(ctx: Any, call_next: Any) -> Any:
        try:
            yield 42
        except TypeError as error:
            yield f"sorry: {error}"

    reply, client = await said(ScriptedModel(), mends)
    assert reply.text == client.text
    assert reply.text.endswith("not 42")


@pytest.mark.parametrize("point", ["around_tool", "around_run"])
async def test_other_wraps_have_nothing_to_yield(echo, point):
    async def pieces(call_next: Any) -> Any:
        yield await call_next()

    def yields(ctx: Any, call_next: Any) -> Any:
        return pieces(call_next)

    async with Agent(
        ScriptedModel(call("echo", text="a"), "x", leftover="allow"), tools=[echo]
    ) as agent:
        agent.hooks.register(point, yields)
        session = await agent.new_session()
        reply = await agent.prompt(session, "go")
    told = str(session.messages) + str(reply.detail)
    assert f"yields, which {point} has no use for: return the result" in told
    assert "in the hook yields" in told


async def test_an_error_of_the_models_reaches_the_hook_and_is_nobodys_fault(said, played):
    caught: list[BaseException] = []

    async def looks(ctx: Any, call_next: Any) -> Any:
        try:
            async for piece in call_next():
                yield piece
        except ModelError as error:
            caught.append(error)
            raise

    reply, client = await said(played(["Hel", BROKEN]), passing, looks, passing)
    assert caught == [BROKEN]
    assert reply.detail == "it broke"
    assert client.text == reply.session.messages[1]["content"] == "Hel"


async def test_a_client_that_fails_is_not_the_hooks_fault():
    class Gone(NullClient):
        async def update(self, session_id: str, event: Event) -> None:
            if isinstance(event, TextDelta):
                raise ConnectionError("gone")

    async with Agent(ScriptedModel("Hello"), tools=()) as agent:
        agent.hooks.register("around_llm_request", through)
        session = await agent.new_session(client=Gone())
        assert (await agent.prompt(session, "go")).detail == "gone"


# time, and the end


async def test_the_time_of_a_hook_stands_still_while_it_waits_for_a_piece():
    agent = Agent(ScriptedModel(["a", delay(0.1), "b", delay(0.1), "c"]), tools=())
    agent.hooks.register("around_llm_request", through, timeout=0.05)
    assert (await agent.run("go")).text == "abc"


async def test_a_hook_that_sits_on_a_piece_runs_out_of_time_and_the_model_is_hung_up(played):
    async def sits(ctx: Any, call_next: Any) -> Any:
        async for piece in call_next():
            yield piece
            await asyncio.Event().wait()

    model = played(["a", asyncio.Event()])
    async with Agent(model, tools=()) as agent:
        agent.hooks.register("around_llm_request", sits, timeout=0.05)
        reply = await agent.prompt(await agent.new_session(), "go")
        assert "took longer than 0.05 s" in reply.detail
        await model.hung_up.wait()


@pytest.mark.parametrize("arounds", ORDERS, ids=lambda a: "-".join(f.__name__ for f in a))
async def test_a_cancelled_answer_is_stored_as_far_as_it_was_seen(arounds, played, watcher):
    client, never = watcher, asyncio.Event()
    model = played(["one ", "two ", never])
    async with Agent(model, tools=()) as agent:
        for each in arounds:
            agent.hooks.register("around_llm_request", each)
        session = await agent.new_session(client=client)
        run = asyncio.create_task(agent.prompt(session, "go"))
        await model.waits.wait()
        agent.cancel(session)
        reply = await run
        assert reply.stop_reason == "cancelled"
        assert reply.text == session.messages[1]["content"] == client.text == "ONE TWO "
        assert model.closed


async def test_what_a_hook_holds_back_at_a_cancellation_is_not_stored(played, watcher):
    client, never = watcher, asyncio.Event()
    held = asyncio.Event()

    async def holds(ctx: Any, call_next: Any) -> Any:
        async for piece in call_next():
            if piece.text == "secret":
                held.set()
            else:
                yield piece

    async with Agent(played(["public, ", "secret", never]), tools=()) as agent:
        agent.hooks.register("around_llm_request", holds)
        session = await agent.new_session(client=client)
        run = asyncio.create_task(agent.prompt(session, "go"))
        await held.wait()
        agent.cancel(session)
        await run
    assert [message["content"] for message in session.messages] == ["go", "public, "]
    assert client.text == "public, "


@pytest.mark.parametrize("inner", [[], [passing]], ids=["alone", "around another"])
async def test_a_hook_that_swallows_a_cancellation_gets_no_further_piece(played, watcher, inner):
    more: list[Any] = []
    held = asyncio.Event()

    async def stubborn(ctx: Any, call_next: Any) -> Any:
        async for piece in call_next():
            more.append(piece.text)
            yield piece
            held.set()
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            if inner:
                await model.hung_up.wait()
            for _ in range(20):
                await asyncio.sleep(0)

    model = played(["one ", "two ", asyncio.Event()])
    async with Agent(model, tools=()) as agent:
        for each in (stubborn, *inner):
            agent.hooks.register("around_llm_request", each)
        session = await agent.new_session(client=watcher)
        run = asyncio.create_task(agent.prompt(session, "go"))
        await held.wait()
        agent.cancel(session)
        reply = await run
    assert (reply.stop_reason, watcher.text) == ("cancelled", "one ")
    assert session.messages[1]["content"] == "one "


async def test_an_attempt_that_a_hook_gave_no_more_time_is_thrown_away_when_the_next_is_begun():
    async def hurries(call_next: Any) -> Any:
        try:
            async with asyncio.timeout(0.02):
                async for piece in call_next():
                    yield piece
        except TimeoutError:
            async for piece in call_next(model="quick"):
                yield piece

    model = ScriptedModel(["Hel", delay(5), "lo"], "Hello")
    async with Agent(model, tools=[]) as agent:
        agent.hooks.register("around_llm_request", hurries)
        reply = await agent.run("Hi")
    assert reply.text == "Hello"


class OnePiece(ScriptedModel):
    """A model whose answer comes as a whole, as that of many small adapters."""

    async def stream(self, request: Any) -> AsyncGenerator[Any, None]:
        async for piece in super().stream(request):
            if isinstance(piece, Completion):
                yield piece


async def test_an_answer_in_one_piece_is_seen_by_wraps_and_by_the_client(watcher):
    for hooks, said in ((), "Hello"), ((loud,), "HELLO"):
        client = type(watcher)()
        async with Agent(OnePiece("Hello"), tools=[]) as agent:
            for each in hooks:
                agent.hooks.register("around_llm_request", each)
            reply = await agent.run("Hi", client=client)
        assert (reply.text, client.text) == (said, said)


async def test_the_line_that_an_answer_was_thrown_away_is_no_text_that_a_hook_changes(said, played):
    async def tries_again(call_next: Any) -> Any:
        try:
            return await call_next()
        except ModelError:
            return await call_next()

    reply, client = await said(played(["Hel", BROKEN], ["Bonjour"]), loud, tries_again)
    assert client.text == f"HEL{ANEW}BONJOUR"
    assert reply.text == reply.session.messages[-1]["content"] == "BONJOUR"
