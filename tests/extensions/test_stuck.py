"""Stuck: what counts as going in circles, the word of warning, and the end."""

from __future__ import annotations

from typing import Any

from crow import Agent, tool
from crow.core.hooks.run_context import Reply
from crow.extensions import StuckHook
from crow.testing import ScriptedModel, call


class Tools:
    """Tools that answer the same, differently each time, or with an error."""

    def __init__(self) -> None:
        self.ran = 0

        @tool
        def same(of: str = "", and_of: str = "") -> str:
            """Answer the same."""
            return f"same {of}"

        @tool
        def new(of: str = "") -> str:
            """Answer differently each time."""
            self.ran += 1
            return f"new {self.ran}"

        @tool
        def fail(of: str = "") -> str:
            """Fail in the same way."""
            raise OSError("no such thing")

        self.all = [same, new, fail]


async def play(*script: Any, **options: Any) -> tuple[Reply, ScriptedModel]:
    """The reply, and the model, which may be left with lines that it never came to say."""
    model = ScriptedModel(*script, "Done.", leftover="allow")
    agent = Agent(llm=model, hooks=[StuckHook(**options)], tools=Tools().all)
    return await agent.run("Go"), model


def warnings(model: ScriptedModel) -> list[str]:
    """What the model was told about circles."""
    contents = [str(message.get("content")) for message in model.asked[-1]["messages"]]
    return [content for content in contents if "going in circles" in content]


async def test_a_warning_comes_first_and_then_the_end():
    reply, model = await play(*[call("same", of="a")] * 20)
    assert len(model.asked) == 5
    [warning] = warnings(model)
    assert "the same call of same returned the same 4 times in a row" in warning
    assert reply.stop_reason == "max_turn_requests"
    assert reply.detail.startswith("stopped by stuck: going in circles: the same call of same")


async def test_a_model_that_takes_the_hint_goes_on():
    reply, model = await play(*[call("same", of="a")] * 4, *[call("same", of=x) for x in "bcdefg"])
    assert (reply.stop_reason, reply.text) == ("end_turn", "Done.")
    assert len(warnings(model)) == 1


async def test_three_times_are_no_circle():
    _, model = await play(*[call("same", of="a")] * 3, call("same", of="b"))
    assert warnings(model) == []


async def test_the_order_of_the_arguments_makes_no_difference():
    one, other = call("same", of="a", and_of="b"), call("same", and_of="b", of="a")
    _, model = await play(one, other, one, other)
    assert "returned the same 4 times" in warnings(model)[0]


async def test_the_same_error_three_times_is_a_circle_whatever_was_asked():
    _, model = await play(*[call("fail", of=x) for x in "abc"])
    assert "fail gave the same error 3 times in a row" in warnings(model)[0]


async def test_a_denied_call_that_comes_again_is_a_circle():
    model = ScriptedModel(*[call("same", of=x) for x in "abc"], "Done.")
    agent = Agent(llm=model, hooks=[StuckHook()], tools=Tools().all)
    agent.hooks.register("PreToolUse", lambda block: "not here")
    await agent.run("Go")
    assert "same gave the same error 3 times in a row" in warnings(model)[0]


async def test_a_and_b_in_turns_are_a_circle_even_if_they_answer_differently():
    _, model = await play(*[call("new", of="a"), call("new", of="b")] * 3)
    assert "the same 2 calls (new, new) came round 3 times" in warnings(model)[0]


async def test_circles_of_up_to_five_are_seen_and_longer_ones_left_alone():
    for length in (3, 4, 5):
        _, model = await play(*[call("new", of=x) for x in "abcde"[:length]] * 3)
        assert f"the same {length} calls" in warnings(model)[0]
    _, model = await play(*[call("new", of=x) for x in "abcdef"] * 3)
    assert warnings(model) == []


async def test_waiting_for_something_that_changes_is_allowed_for_a_while():
    _, model = await play(*[call("new", of="a")] * 5)
    assert warnings(model) == []
    _, model = await play(*[call("new", of="a")] * 6)
    assert "the same call of new was made 6 times in a row" in warnings(model)[0]


async def test_calls_made_at_once_count_like_calls_made_in_a_row():
    _, model = await play([call("same")] * 4)
    assert "returned the same 4 times" in warnings(model)[0]


async def test_a_person_who_speaks_begins_it_anew():
    model = ScriptedModel(*[call("same")] * 3, "One.", *[call("same")] * 3, "Two.")
    agent = Agent(llm=model, hooks=[StuckHook()], tools=Tools().all)
    reply = await agent.run("Go")
    await agent.run("Again", session=reply.session)
    assert warnings(model) == []
