from __future__ import annotations

import asyncio
from typing import Any

import pytest

from crow.core.events import CallDelta, TextDelta, ThoughtDelta
from crow.core.messages import user
from crow.core.ports.llm import LLM, Completion, Request
from crow.testing import ScriptedModel, call, delay, text


async def ask(llm: LLM, /, *messages: Any, **fields: Any) -> list[Any]:
    asked = list(messages) or [user("hello")]
    return [item async for item in llm.stream(Request(asked, **fields))]


async def test_a_text_is_said_and_completes():
    model = ScriptedModel("Hello.")
    assert await ask(model, message_id="m1") == [
        TextDelta("Hello.", "m1"),
        Completion(text="Hello.", model="scripted"),
    ]
    model.verify()


async def test_a_call_names_its_arguments_and_gets_the_next_id():
    model = ScriptedModel(call("Read", file_path="a.txt"), call("Read", file_path="b.txt"))
    first, second = (await ask(model))[-1], (await ask(model))[-1]
    assert [each.id for each in (*first.calls, *second.calls)] == ["call_1", "call_2"]
    assert first.calls[0].args == {"file_path": "a.txt"}
    assert first.calls[0].raw == '{"file_path": "a.txt"}'
    assert first.finish == "tool_calls"


async def test_a_list_says_text_and_makes_several_calls_at_once():
    model = ScriptedModel(["Both.", call("Read", file_path="a"), call("Bash", command="ls")])
    items = await ask(model)
    assert [type(item) for item in items] == [TextDelta, CallDelta, CallDelta, Completion]
    assert [each.name for each in items[-1].calls] == ["Read", "Bash"]
    assert items[-1].text == "Both."


async def test_a_line_reports_the_usage_it_is_given():
    model = ScriptedModel(
        call("Bash", command="ls", usage={"total_tokens": 200_000}),
        text("Done.", usage={"total_tokens": 3}, reasoning="Hm.", finish="length"),
    )
    assert (await ask(model))[-1].usage == {"total_tokens": 200_000}
    items = await ask(model)
    assert items[0] == ThoughtDelta("Hm.")
    assert items[-1] == Completion(
        "Done.", (), "Hm.", "length", {"total_tokens": 3}, model="scripted"
    )


async def test_an_argument_of_any_name_can_be_given_to_a_call():
    model = ScriptedModel(call("Weird", name="x", id="y", self="z"))
    assert (await ask(model))[-1].calls[0].args == {"name": "x", "id": "y", "self": "z"}


@pytest.mark.parametrize("error", [TimeoutError(), TimeoutError])
async def test_an_error_is_raised_in_its_turn(error: Any):
    model = ScriptedModel(error, "Better.")
    with pytest.raises(TimeoutError):
        await ask(model)
    assert (await ask(model))[-1].text == "Better."
    model.verify()


async def test_a_delay_waits_before_its_line_and_can_be_cancelled():
    model = ScriptedModel(delay(3600), "Late.", ["Now,", delay(0.01), " then."])
    task = asyncio.create_task(ask(model))
    await asyncio.sleep(0)
    assert model.asked
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert model.left[0] == "Late."
    assert (await ask(model))[-1].text == "Late."
    assert [item.text for item in await ask(model)] == ["Now,", " then.", "Now, then."]


async def test_a_whole_completion_is_given_as_it_is():
    completion = Completion(text="x", finish="content_filter")
    assert await ask(ScriptedModel(completion)) == [completion]


async def test_what_was_asked_is_kept_as_it_was():
    model = ScriptedModel("One.")
    messages: list[Any] = [user("first")]
    await ask(model, *messages, params={"temperature": 0}, model="other", session_id="s")
    messages[0]["content"] = "changed"
    assert model.asked == [
        {
            "messages": [{"role": "user", "content": "first"}],
            "tools": [],
            "model": "other",
            "params": {"temperature": 0},
            "session_id": "s",
        }
    ]


async def test_asked_past_its_script_it_fails_and_says_what_it_was_asked():
    model = ScriptedModel("One.")
    await ask(model)
    with pytest.raises(AssertionError, match=r"has 1 lines and was asked 2 times.*the second"):
        await ask(model, user("the second"))
    with pytest.raises(AssertionError, match="asked 2 times"):
        model.verify()


async def test_lines_left_over_fail_unless_they_may_be_left():
    model = ScriptedModel("One.", "Two.")
    await ask(model)
    with pytest.raises(AssertionError, match=r"1 of its lines were left over.*\n  'Two.'"):
        model.verify()
    ScriptedModel("One.", leftover="allow").verify()


async def test_as_a_context_it_verifies_at_the_end_but_hides_no_other_error():
    with pytest.raises(AssertionError, match="left over"), ScriptedModel("One."):
        pass
    with pytest.raises(KeyError), ScriptedModel("One."):
        raise KeyError


async def test_more_lines_can_be_added_while_it_plays():
    with ScriptedModel() as model:
        model.extend("One.")
        assert (await ask(model))[-1].text == "One."


def test_an_unknown_name_is_no_attribute_of_the_package():
    with pytest.raises(ImportError, match="nonsense"):
        from crow.testing import nonsense  # type: ignore  # noqa: F401, PGH003
