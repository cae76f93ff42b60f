"""Models repeat the ids of their calls; in a session no two calls have the same."""

from __future__ import annotations

from typing import Any

import pytest

from crow.core.agent import Agent
from crow.core.events import CallDelta, ToolEnded, ToolPending
from crow.core.history import flaw
from crow.core.hooks.context import Context
from crow.core.messages import Message
from crow.core.ports.llm import Completion
from crow.core.tools import Call
from crow.testing import ScriptedModel, call


def ids_in(messages: list[Message]) -> list[str]:
    """The ids of the calls, each of which has one result behind it."""
    assert flaw(messages) is None
    called = [each["id"] for message in messages for each in message.get("tool_calls", ())]
    answered = [m["tool_call_id"] for m in messages if m["role"] == "tool"]
    assert called == answered
    return called


def again(count: int, *, call_id: str = "call_0") -> list[Any]:
    return [*[call("echo", text="a", call_id=call_id)] * count, "Done."]


def earlier(call_id: str) -> list[Message]:
    function = {"name": "echo", "arguments": "{}"}
    made = {"id": call_id, "type": "function", "function": function}
    return [
        {"role": "user", "content": "before"},
        {"role": "assistant", "content": None, "tool_calls": [made]},  # type: ignore[list-item]
        {"role": "tool", "tool_call_id": call_id, "content": "echo"},
        {"role": "assistant", "content": "Done."},
    ]


async def test_a_model_that_repeats_an_id_makes_calls_that_have_their_own(echo, watcher):
    told: list[str] = []
    agent = Agent(ScriptedModel(*again(3)), tools=[echo])
    agent.hooks.register("after_tool", lambda call: told.append(call.id))
    session = await agent.new_session(client=watcher)
    await agent.prompt(session, "go")
    ids = ids_in(session.messages)
    assert len(set(ids)) == 3
    assert ids[0] == "call_0"
    assert told == ids


async def test_everybody_knows_a_call_by_the_same_id_from_its_first_piece_on(echo, watcher):
    seen: dict[str, list[str]] = {}
    agent = Agent(ScriptedModel(*again(3)), tools=[echo])

    def note(name: str) -> Any:
        return lambda call: seen.setdefault(name, []).append(call.id)

    async def around_llm_request(call_next: Any) -> Any:
        reply = await call_next()
        seen.setdefault("wrap", []).extend(each.id for each in reply.calls)
        return reply

    def after_llm_response(reply: Any) -> None:
        seen.setdefault("reply", []).extend(each.id for each in reply.calls)

    agent.hooks.register("around_llm_request", around_llm_request)
    agent.hooks.register("after_llm_response", after_llm_response)
    for event in ("before_tool", "around_tool", "after_tool"):
        if event != "around_tool":
            agent.hooks.register(event, note(event))
    session = await agent.new_session(client=watcher)
    await agent.prompt(session, "go")
    ids = ids_in(session.messages)
    pieces = [event.call_id for event in watcher.events if isinstance(event, CallDelta)]
    begun = [event.call.id for event in watcher.events if isinstance(event, ToolPending)]
    ended = [event.call.id for event in watcher.events if isinstance(event, ToolEnded)]
    assert pieces == begun == ended == ids
    assert len(set(ids)) == 3
    assert seen == dict.fromkeys(["wrap", "reply", "before_tool", "after_tool"], ids)


async def test_pieces_that_a_hook_makes_belong_to_the_call_that_it_makes(echo, watcher):
    async def around_llm_request(call_next: Any) -> Any:
        async for piece in call_next():
            if not isinstance(piece, Completion):
                yield piece
            elif piece.text == "more":
                yield CallDelta("own", "echo", '{"text": "x"}')
                yield Completion(calls=(Call("own", "echo", {"text": "x"}),))
            else:
                yield piece

    agent = Agent(ScriptedModel("more", "more", "Done."), tools=[echo])
    agent.hooks.register("around_llm_request", around_llm_request)
    session = await agent.new_session(client=watcher)
    await agent.prompt(session, "go")
    pieces = [event.call_id for event in watcher.events if isinstance(event, CallDelta)]
    assert pieces == ids_in(session.messages)
    assert len(set(pieces)) == 2


async def test_what_a_hook_makes_of_each_reply_has_new_ids_each_time(echo):
    def rewrites(reply: Any) -> Any:
        if reply.text == "Done.":
            return None
        return Completion(calls=(Call("made_up", "echo", {"text": "x"}),) * 2)

    agent = Agent(ScriptedModel("one", "two", "Done."), tools=[echo])
    agent.hooks.register("after_llm_response", rewrites)
    reply = await agent.run("go")
    assert len(set(ids_in(reply.session.messages))) == 4


async def test_a_second_attempt_at_a_request_keeps_the_id_that_the_first_one_showed(echo, watcher):
    async def twice(call_next: Any) -> Any:
        await call_next()
        return await call_next()

    agent = Agent(ScriptedModel(*[each for each in again(2) for _ in "ab"]), tools=[echo])
    agent.hooks.register("around_llm_request", twice)
    session = await agent.new_session(client=watcher)
    await agent.prompt(session, "go")
    pieces = [event.call_id for event in watcher.events if isinstance(event, CallDelta)]
    assert list(dict.fromkeys(pieces)) == ids_in(session.messages)


@pytest.mark.parametrize("how", ["loaded", "assigned", "restarted", "compacted", "appended"])
async def test_ids_of_what_was_said_before_are_known_however_it_got_there(echo, how: str):
    agent = Agent(ScriptedModel(*again(1, call_id="old")), tools=[echo])
    session = await agent.new_session(messages=[] if how == "assigned" else earlier("old"))
    match how:
        case "assigned":
            session.messages = earlier("old")
        case "restarted":
            session.restart([{"role": "user", "content": "anew"}])
        case "compacted":
            await Context(agent, session).compact(session.messages[-1:], "so far")
        case "appended":
            session.messages.append({"role": "user", "content": "more"})
        case _:
            pass
    await agent.prompt(session, "go")
    assert "old" not in ids_in(session.messages)[-1:]


async def test_calls_that_are_made_for_an_extension_have_ids_of_their_own(echo, watcher):
    made: list[str] = []
    agent = Agent(ScriptedModel(*again(2)), tools=[echo])

    async def after_turn(ctx: Any) -> None:
        calls = [Call("call_0", "echo", {"text": "mine"})] * 2
        made.extend(each.call.id for each in await ctx.agent.call_tools(ctx.run, calls))

    agent.hooks.register("after_turn", after_turn)
    session = await agent.new_session(client=watcher)
    await agent.prompt(session, "go")
    begun = [event.call.id for event in watcher.events if isinstance(event, ToolPending)]
    assert len(set(begun)) == len(begun) == len(made) + 2
    assert set(made) < set(begun)
