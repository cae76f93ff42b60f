"""Responses: what is sent, what comes back, and what of it returns to the endpoint as it came."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from itertools import dropwhile
from typing import Any

import httpx2
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.llm.conftest import KEY, QUICK, SOON, Ask, Heard
from tests.properties import examples

from crow import Agent, tool
from crow.core.errors import ModelError
from crow.core.events import ThoughtDelta
from crow.core.messages import Message, tool_answer, user
from crow.core.ports.llm import Completion, Request
from crow.llm import HttpModel, Responses, Retries
from crow.llm.models import ModelInfo
from crow.testing import StrictResponses
from crow.testing.endpoint import CLOSE, begin, event, piece, respond
from crow.testing.responses import RULES, called, events, response, stream, text_item, thought

PNG = "data:image/png;base64,iVBORw0KGgo="
SYSTEM: Message = {"role": "system", "content": "You are Crow."}
LS: Any = {
    "type": "function",
    "function": {
        "name": "ls",
        "description": "List.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    },
}


@pytest.fixture
async def strict() -> AsyncGenerator[StrictResponses, None]:
    async with StrictResponses() as endpoint:
        yield endpoint


@pytest.fixture
def model(strict: StrictResponses) -> HttpModel:
    return at(strict)


def at(endpoint: StrictResponses, name: str = "gpt-5.6", **options: Any) -> HttpModel:
    options = {"timeouts": QUICK, "retries": SOON, **options}
    return Responses(name, endpoint.url, KEY, **options)


def sent(strict: StrictResponses) -> list[Any]:
    return strict.requests[-1].body["input"]


def message_of(heard: Heard) -> Message:
    message = heard.completion.message()
    assert message is not None
    return message


def items_of(message: Message) -> list[Any]:
    return message.get("output_items") or []


def thoughts(heard: Heard) -> str:
    return "".join(item.text for item in heard.items if isinstance(item, ThoughtDelta))


async def test_a_request_is_stored_nowhere_and_says_what_it_wants(
    strict: StrictResponses, ask: Ask
) -> None:
    strict.reply(text_item("hello"))
    await ask(
        SYSTEM,
        user([{"type": "text", "text": "See"}, {"type": "image_url", "image_url": {"url": PNG}}]),
        tools=[LS],
        params={"reasoning_effort": "high", "max_tokens": 5},
        session_id="s-1",
    )
    [received] = strict.requests
    assert received.path == "/v1/responses"
    assert received.headers["authorization"] == f"Bearer {KEY}"
    assert received.body == {
        "model": "gpt-5.6",
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "s-1",
        "reasoning": {"effort": "high", "summary": "auto"},
        "max_output_tokens": 16,
        "tools": [{"type": "function", "strict": False, **LS["function"]}],
        "input": [
            {"role": "developer", "content": "You are Crow."},
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "See"},
                    {"type": "input_image", "image_url": PNG, "detail": "auto"},
                ],
            },
        ],
    }


async def test_parameters_of_chat_completions_get_their_names_of_here(
    strict: StrictResponses, ask: Ask
) -> None:
    strict.reply(text_item("{}"))
    shape = {"name": "x", "schema": {"type": "object"}, "strict": False}
    await ask(
        params={
            "max_completion_tokens": 100,
            "tool_choice": {"type": "function", "function": {"name": "ls"}},
            "response_format": {"type": "json_schema", "json_schema": shape},
            "verbosity": "low",
            "reasoning": {"summary": "detailed"},
        }
    )
    body = strict.requests[0].body
    assert body["max_output_tokens"] == 100
    assert body["tool_choice"] == {"type": "function", "name": "ls"}
    assert body["text"] == {"format": {"type": "json_schema", **shape}, "verbosity": "low"}
    assert body["reasoning"] == {"summary": "detailed"}


async def test_the_table_of_models_says_how_hard_a_model_thinks_and_who_speaks_for_the_system(
    strict: StrictResponses, ask: Ask
) -> None:
    info = ModelInfo(
        model="m", levels={"low": "low", "max": "max"}, refuses=frozenset({"developer"})
    )
    strict.reply(text_item("hello"))
    await ask(SYSTEM, params={"reasoning_effort": "xhigh"}, llm=at(strict, info=info))
    body = strict.requests[0].body
    assert body["reasoning"]["effort"] == "max"
    assert body["input"][0]["role"] == "system"


async def test_R08_what_a_model_refuses_of_sampling_is_not_sent(
    strict: StrictResponses, ask: Ask
) -> None:
    strict.reply(text_item("hello"))
    llm = at(strict, "gpt-6-astra", info=ModelInfo(refuses=frozenset({"temperature"})))
    await ask(params={"temperature": 0.2}, llm=llm)
    assert strict.refused == []
    assert "temperature" not in strict.requests[0].body


async def test_a_long_id_of_a_session_becomes_a_key_that_fits(
    strict: StrictResponses, ask: Ask
) -> None:
    for name in ("a" * 65, "a" * 65, "a" * 66):
        strict.reply(text_item("hello"))
        await ask(session_id=name)
    keys = [received.body["prompt_cache_key"] for received in strict.requests]
    assert len(keys[0]) == 64
    assert keys[0] == keys[1] != keys[2]


async def test_text_thoughts_and_calls_are_heard(strict: StrictResponses, ask: Ask) -> None:
    items = [
        thought("I look at the directory first."),
        text_item("I look first.", phase="commentary"),
        called("ls", "c1", path="a"),
        called("ls", "c2", path="b"),
    ]
    strict.reply(*items)
    heard = await ask()
    completion = heard.completion
    assert heard.text == completion.text == "I look first."
    assert thoughts(heard) == completion.reasoning == "I look at the directory first."
    assert [(call.id, call.args) for call in completion.calls] == [
        ("c1", {"path": "a"}),
        ("c2", {"path": "b"}),
    ]
    assert completion.finish == "tool_calls"
    assert completion.model == "scripted"
    assert completion.usage == {
        "input_tokens": 7,
        "output_tokens": 2,
        "total_tokens": 9,
        "cached_tokens": 4,
        "cache_write_tokens": 1,
        "reasoning_tokens": 1,
    }
    assert items_of(message_of(heard)) == items


async def test_messages_and_parts_of_thoughts_do_not_run_together(
    strict: StrictResponses, ask: Ask
) -> None:
    two = thought("First.")
    two["summary"].append({"type": "summary_text", "text": "Second."})
    strict.reply(two, text_item("One.", phase="commentary"), thought("Third."), text_item("Two."))
    heard = await ask()
    assert thoughts(heard) == "First.\n\nSecond.\n\nThird."
    assert heard.text == "One.\n\nTwo."
    strict.reply(text_item("More."))
    await ask(user("hello"), message_of(heard), user("more"))
    assert [item.get("id") for item in sent(strict)[1:5]] == [
        item["id"] for item in items_of(message_of(heard))
    ]


@tool
async def ls(path: str) -> str:
    """List."""
    return f"{path}: a b"


@tool
async def look() -> list[Any]:
    """Look."""
    return [
        {"type": "text", "text": "a dot"},
        {"type": "image_url", "image_url": {"url": PNG}},
    ]


async def test_all_items_return_in_order_as_they_came(
    strict: StrictResponses, model: HttpModel
) -> None:
    first = [
        thought("Look."),
        text_item("I look.", phase="commentary"),
        called("ls", "c1", path="a"),
    ]
    second = [thought(), called("ls", "c2", path="b"), called("ls", "c3", path="c")]
    strict.reply(*first)
    strict.reply(*second)
    strict.reply(thought("Done."), text_item("That is all.", phase="final_answer"))
    agent = Agent(model, tools=[ls])
    reply = await agent.run("list")
    assert reply.text.endswith("That is all.")
    assert strict.refused == []
    items = sent(strict)
    results = [item for item in items if item.get("type") == "function_call_output"]
    assert [item for item in items if "id" in item] == first + second
    assert [result["output"] for result in results] == ["a: a b", "b: a b", "c: a b"]


async def test_the_items_of_a_stored_session_return_after_it_was_read_again(
    strict: StrictResponses, ask: Ask
) -> None:
    strict.reply(thought("Hm."), text_item("hello \u00e9 \U0001f600"))
    message = json.loads(json.dumps(message_of(await ask())))
    strict.reply(text_item("again"))
    await ask(user("hello"), message, user("again"), llm=at(strict))
    assert sent(strict)[1:3] == items_of(message)
    assert strict.refused == []


async def test_an_image_of_a_tool_stands_in_its_result(strict: StrictResponses, ask: Ask) -> None:
    strict.reply(called("look", "c1"))
    message = message_of(await ask())
    strict.reply(text_item("a dot"))
    content: Any = [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": PNG}}]
    await ask(user("hello"), message, tool_answer("c1", content))
    assert sent(strict)[-1] == {
        "type": "function_call_output",
        "call_id": "c1",
        "output": [
            {"type": "input_text", "text": "a"},
            {"type": "input_image", "image_url": PNG, "detail": "auto"},
        ],
    }


async def test_a_model_without_eyes_is_told_of_the_image(strict: StrictResponses, ask: Ask) -> None:
    strict.reply(text_item("a dot"))
    picture: Any = [{"type": "image_url", "image_url": {"url": PNG}}]
    await ask(user(picture), llm=at(strict, inputs=()))
    assert "left out, because this model takes no images" in sent(strict)[0]["content"]


async def test_thoughts_that_azure_encrypts_only_at_the_end_return(ask: Ask) -> None:
    async with StrictResponses(late_thoughts=True) as strict:
        items = [thought("Hm."), called("ls", "c1")]
        strict.reply(*items)
        message = message_of(await ask(llm=at(strict)))
        strict.reply(text_item("hello"))
        await ask(user("hello"), message, tool_answer("c1", "a"), llm=at(strict))
        assert strict.refused == []
        assert sent(strict)[1:3] == items


async def history(ask: Ask, strict: StrictResponses) -> Message:
    strict.reply(
        thought("Hm."), text_item("hello", phase="commentary"), called("ls", "c1", path="a")
    )
    message = message_of(await ask())
    strict.reply(text_item("done"))
    return message


async def test_what_a_hook_has_rewritten_counts_and_its_thoughts_are_dropped(
    strict: StrictResponses, ask: Ask
) -> None:
    message = await history(ask, strict)
    await ask(user("hello"), {**message, "content": "edited"}, tool_answer("c1", "a"))
    assert strict.refused == []
    assert sent(strict)[1:3] == [
        {"role": "assistant", "content": "edited", "phase": "commentary"},
        {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": '{"path": "a"}'},
    ]


@pytest.mark.parametrize("change", [{"name": "cat"}, {"arguments": '{"path": "b"}'}])
async def test_a_call_that_was_rewritten_counts(
    strict: StrictResponses, ask: Ask, change: dict[str, Any]
) -> None:
    message: Any = await history(ask, strict)
    [call] = message["tool_calls"]
    edited: Any = {**message, "tool_calls": [{**call, "function": {**call["function"], **change}}]}
    await ask(user("hello"), edited, tool_answer("c1", "a"))
    assert strict.refused == []
    assert {**sent(strict)[2], **change} == sent(strict)[2]
    assert not any("encrypted_content" in item for item in sent(strict))


async def test_a_call_that_was_given_another_id_returns_with_it(
    strict: StrictResponses, ask: Ask
) -> None:
    message: Any = await history(ask, strict)
    [call] = message["tool_calls"]
    renamed: Any = {**message, "tool_calls": [{**call, "id": "call00001"}]}
    await ask(user("hello"), renamed, tool_answer("call00001", "a"))
    assert strict.refused == []
    wanted = message["output_items"]
    assert sent(strict)[1:4] == [*wanted[:2], {**wanted[2], "call_id": "call00001"}]


async def test_another_model_gets_neither_thoughts_nor_ids(
    strict: StrictResponses, ask: Ask
) -> None:
    message = await history(ask, strict)
    await ask(user("hello"), message, tool_answer("c1", "a"), llm=at(strict, "gpt-6-astra"))
    assert strict.refused == []
    assert [sorted(item) for item in sent(strict)[1:3]] == [
        ["content", "role"],
        ["arguments", "call_id", "name", "type"],
    ]


async def test_a_foreign_id_that_is_too_long_is_the_same_in_call_and_result(
    strict: StrictResponses, ask: Ask
) -> None:
    name = "functions.ls:" + "x" * 80
    call: Any = {"id": name, "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    strict.reply(text_item("done"))
    foreign: Message = {"role": "assistant", "content": None, "tool_calls": [call]}
    await ask(user("hello"), foreign, tool_answer(name, "a"))
    assert strict.refused == []
    assert sent(strict)[1]["call_id"] == sent(strict)[2]["call_id"]


async def test_thoughts_that_nothing_came_of_are_not_sent(
    strict: StrictResponses, ask: Ask
) -> None:
    strict.reply(
        text_item("half"),
        thought("Hm."),
        status="incomplete",
        incomplete_details={"reason": "max_output_tokens"},
    )
    heard = await ask()
    assert heard.completion.finish == "length"
    strict.reply(text_item("whole"))
    await ask(user("hello"), message_of(heard), user("go on"))
    assert strict.refused == []
    assert [item.get("type") for item in sent(strict)] == [None, "message", None]


async def test_encrypted_thoughts_that_cannot_be_read_are_left_out_once_refused(
    strict: StrictResponses, ask: Ask
) -> None:
    message: Any = await history(ask, strict)
    message["output_items"][0]["encrypted_content"] += "x"
    heard = await ask(user("hello"), message, tool_answer("c1", "a"))
    assert heard.text == "done"
    assert strict.refused == ["R05"]
    assert not any("id" in item for item in sent(strict))
    strict.reply(thought("new"), text_item("again"))
    before = user("hello"), message, tool_answer("c1", "a"), user("again")
    heard = await ask(*before)
    assert strict.refused == ["R05"]
    strict.reply(text_item("and again"))
    await ask(*before, message_of(heard), user("once more"))
    assert strict.refused == ["R05"]
    kept = [item for item in sent(strict) if item.get("type") == "reasoning"]
    assert [item["summary"] for item in kept] == [thought("new")["summary"]]


async def test_thoughts_that_are_refused_again_and_again_are_not_sent_any_more(
    strict: StrictResponses, ask: Ask
) -> None:
    told: list[Any] = [user("hello")]
    for count in range(6):
        strict.reply(thought(f"t{count}"), text_item(f"a{count}"))
        message: Any = message_of(await ask(*told))
        message["output_items"][0]["encrypted_content"] += "x"
        told += [message, user("on")]
    assert strict.refused == ["R05"] * 4


@pytest.mark.parametrize(
    ("said_of_it", "gone"),
    [
        ("Encrypted content is not supported with this model.", "include"),
        (
            "Unsupported parameter: 'reasoning.summary' is not supported with this model.",
            "reasoning",
        ),
        ("Your organization must be verified to generate reasoning summaries.", "reasoning"),
        ("Unknown parameter: 'prompt_cache_key'.", "prompt_cache_key"),
    ],
)
async def test_what_an_endpoint_does_not_take_is_left_out_from_then_on(
    strict: StrictResponses, ask: Ask, said_of_it: str, gone: str
) -> None:
    strict.play(respond(400, {"error": {"message": said_of_it, "code": "unsupported_parameter"}}))
    for _ in range(2):
        strict.reply(text_item("hello"))
        assert (await ask(session_id="s")).text == "hello"
    assert [gone in received.body for received in strict.requests] == [True, False, False]


async def test_a_refusal_is_said_and_told(strict: StrictResponses, ask: Ask) -> None:
    strict.reply(text_item("I cannot help with that.", refusal=True))
    heard = await ask()
    assert heard.text == "I cannot help with that."
    assert heard.completion.finish == "content_filter"
    strict.reply(text_item("hello"))
    await ask(user("hello"), message_of(heard), user("else"))
    assert sent(strict)[1] == items_of(message_of(heard))[0]


@pytest.mark.parametrize(
    ("reason", "finish"), [("max_output_tokens", "length"), ("content_filter", "content_filter")]
)
async def test_the_calls_of_an_answer_that_was_cut_off_are_marked(
    strict: StrictResponses, ask: Ask, reason: str, finish: str
) -> None:
    cut = {**called("ls", "c1"), "arguments": '{"pa', "status": "incomplete"}
    strict.reply(
        text_item("I look."), cut, status="incomplete", incomplete_details={"reason": reason}
    )
    completion = (await ask()).completion
    assert completion.finish == finish
    assert completion.calls[0].fault
    strict.reply(text_item("hello"))
    await ask(user("hello"), message_of(Heard([completion])), tool_answer("c1", "not executed"))
    assert sent(strict)[2]["arguments"] == "{}"
    assert strict.refused == []


FAILURES = (
    ("rate_limit_exceeded", "Rate limit reached for gpt-5.6", "rate_limit", True),
    ("server_error", "The server had an error processing your request.", "server", True),
    ("server_is_overloaded", "Our servers are currently overloaded.", "overloaded", True),
    ("insufficient_quota", "You exceeded your current quota.", "billing", False),
    ("context_length_exceeded", "Your input exceeds the context window.", "context_length", False),
    ("invalid_prompt", "Your prompt was flagged.", "invalid_request", False),
    ("image_too_large", "The image is too large.", "invalid_request", False),
)


@pytest.mark.parametrize(("code", "words", "kind", "retried"), FAILURES)
@pytest.mark.parametrize("shape", ["failed", "error", "nested"])
async def test_a_failure_in_the_stream_has_its_kind(
    strict: StrictResponses, ask: Ask, shape: str, code: str, words: str, kind: str, retried: bool
) -> None:
    fault: Any = {"code": code, "message": words}
    for _ in range(1 + 3 * retried):
        match shape:
            case "failed":
                strict.fail(code, words)
            case "error":
                strict.play(stream({"type": "error", **fault, "param": None}))
            case _:
                strict.play(stream({"type": "error", "error": fault}))
    with pytest.raises(ModelError, match=words[:20]) as caught:
        await ask()
    assert caught.value.kind == kind
    assert len(strict.requests) == 1 + 3 * retried


async def test_a_busy_moment_passes(strict: StrictResponses, ask: Ask) -> None:
    strict.fail("rate_limit_exceeded", "Please try again in 1 s.")
    strict.reply(text_item("hello"))
    assert (await ask()).text == "hello"


async def test_too_long_a_request_is_told_as_such(ask: Ask) -> None:
    async with StrictResponses(window=500) as strict:
        with pytest.raises(ModelError) as caught:
            await ask(user("x" * 600), llm=at(strict))
        assert caught.value.kind == "context_length"
        assert strict.refused == ["R11"]


WHOLE = [
    thought("I look."),
    text_item("Hello to you, dear friend."),
    called("ls", "c1", path="a" * 20),
]


@pytest.mark.parametrize("cut", range(len(events(WHOLE))))
async def test_an_answer_that_breaks_off_anywhere_comes_again_and_is_shown_once(
    strict: StrictResponses, ask: Ask, cut: int
) -> None:
    told = stream(*events(WHOLE))
    strict.play([*told[: cut + 1], CLOSE])
    strict.reply(*WHOLE)
    heard = await ask()
    assert heard.text == "Hello to you, dear friend."
    assert thoughts(heard) == "I look."
    assert len(heard.completion.calls) == 1
    assert len(strict.requests) == 2


@pytest.mark.parametrize("missing", ["response.completed", "response.output_item.done"])
async def test_an_answer_without_its_end_is_none(
    strict: StrictResponses, ask: Ask, missing: str
) -> None:
    told = [{**each} for each in events([text_item("hello")]) if each["type"] != missing]
    if missing != "response.completed":
        told[-1] = {**told[-1], "response": response([])}
    strict.play([*stream(*told)[:-1], piece(event("[DONE]")), b"0\r\n\r\n"])
    strict.reply(text_item("hello"))
    heard = await ask()
    assert heard.text == "hello"
    assert len(strict.requests) == 2


async def test_what_comes_in_no_pieces_is_shown_all_the_same(
    strict: StrictResponses, ask: Ask
) -> None:
    items = [thought("Hm."), text_item("hello"), called("ls", "c1", path="a")]
    told = [each for each in events(items) if not each["type"].endswith(("delta", "added"))]
    strict.play(stream(*told))
    heard = await ask()
    assert (heard.text, thoughts(heard)) == ("hello", "Hm.")
    assert heard.completion.calls[0].args == {"path": "a"}


async def test_a_whole_response_in_place_of_a_stream_is_read(
    strict: StrictResponses, ask: Ask
) -> None:
    items = [thought("Hm."), text_item("hello"), called("ls", "c1", path="a")]
    strict.play(respond(200, response(items)))
    heard = await ask()
    assert heard.text == "hello"
    assert items_of(message_of(heard)) == items


async def test_comments_and_unknown_events_are_nothing(strict: StrictResponses, ask: Ask) -> None:
    """As OpenRouter has it: comments before, events of its own between, ``[DONE]`` behind."""
    told = events([text_item("hello")])
    unknown = {"type": "response.something.new", "delta": "x", "output_index": 0}
    steps = [begin(), piece(b": OPENROUTER PROCESSING\n\n")]
    for each in told:
        steps += [piece(event(each)), piece(event(unknown))]
    strict.play([*steps, piece(event("[DONE]")), b"0\r\n\r\n"])
    assert (await ask()).text == "hello"


async def test_the_open_thoughts_of_open_models_are_shown_once_and_return(
    strict: StrictResponses, ask: Ask
) -> None:
    strict.reply(thought(text="I look at it."), called("ls", "c1"))
    heard = await ask()
    assert thoughts(heard) == "I look at it."
    strict.reply(text_item("done"))
    await ask(user("hello"), message_of(heard), tool_answer("c1", "a"))
    assert sent(strict)[1] == items_of(message_of(heard))[0]
    assert strict.refused == []


async def test_thoughts_that_nobody_encrypted_are_left_out_with_the_ids_beside_them(
    strict: StrictResponses, ask: Ask
) -> None:
    bare = thought("Hm.")
    del bare["encrypted_content"]
    strict.reply(bare, text_item("hello"))
    heard = await ask()
    strict.reply(text_item("done"))
    await ask(user("hello"), message_of(heard), user("more"))
    assert sent(strict)[1] == {"role": "assistant", "content": "hello"}
    assert strict.refused == []


HELLO: Any = {"role": "user", "content": "hello"}
CALL: Any = {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": "{}"}
RESULT: Any = {"type": "function_call_output", "call_id": "c1", "output": "a"}
WRONG: Any = (
    ("R00", {"messages": []}, "Unknown parameter: 'messages'"),
    ("R03", {"input": [RESULT]}, "No tool call found for function call output with call_id c1"),
    ("R04", {"input": [CALL]}, "No tool output found for function call c1"),
    ("R06", {"prompt_cache_key": "x" * 65}, "maximum length 64"),
    ("R06", {"input": [{**CALL, "call_id": "c" * 65}]}, "input[0].call_id"),
    ("R07", {"input": [{**CALL, "id": "c1"}, RESULT]}, "begins with 'fc'"),
    ("R07", {"max_output_tokens": 15}, ">= 16"),
    ("R08", {"model": "gpt-6-astra", "temperature": 0}, "'temperature' is not supported"),
    ("R09", {"tools": [{**LS["function"], "type": "function"}]}, "additionalProperties"),
    ("R13", {"tools": [{**LS, "strict": False}]}, "tools[0].name"),
    ("R14", {"input": [{"role": "user", "content": [{"type": "text"}]}]}, "holds 'text'"),
    ("R16", {"input": [{"type": "reasoning", "id": "rs_1", "summary": []}]}, "not persisted"),
)


async def refusal(strict: StrictResponses, body: Any) -> Any:
    async with httpx2.AsyncClient() as client:
        whole = {"model": "gpt-5.6", "input": [HELLO], **body}
        answered = await client.post(f"{strict.url}/responses", json=whole)
    assert answered.status_code == 400
    return answered.json()["error"]["message"]


@pytest.mark.parametrize(("rule", "body", "words"), WRONG)
async def test_the_double_refuses_what_the_protocol_does(
    strict: StrictResponses, rule: str, body: Any, words: str
) -> None:
    assert words in await refusal(strict, body)
    assert strict.refused == [rule]


OWN: Any = (
    ("R01", lambda a, b: [HELLO, a], "without its required following item"),
    ("R01", lambda a, b: [a, HELLO, b], "without its required following item"),
    ("R02", lambda a, b: [HELLO, b], "without its required 'reasoning' item"),
    ("R05", lambda a, b: [{**a, "encrypted_content": "gAAAAx"}, b], "could not be verified"),
    ("R15", lambda a, b: [a, b, a, b], "Duplicate item"),
)


@pytest.mark.parametrize(("rule", "wrong", "words"), OWN)
async def test_the_double_knows_what_it_has_said(
    strict: StrictResponses, ask: Ask, rule: str, wrong: Any, words: str
) -> None:
    items = [thought("Hm."), text_item("hello")]
    strict.reply(*items)
    await ask()
    assert words in await refusal(strict, {"input": wrong(*items)})
    assert strict.refused == [rule]


def test_every_rule_of_the_double_has_a_wrong_request() -> None:
    assert {rule.id for rule in RULES} == {row[0] for row in (*WRONG, *OWN)}


@pytest.mark.slow
async def test_the_official_client_and_the_double_understand_each_other(
    strict: StrictResponses,
) -> None:
    openai = pytest.importorskip("openai")
    items = [
        thought("I look."),
        text_item("Hello.", phase="commentary"),
        called("ls", "c1", path="a"),
    ]
    strict.reply(*items)
    strict.reply(text_item("no", refusal=True))
    client = openai.AsyncOpenAI(base_url=strict.url, api_key="k", max_retries=0)
    own: Any = {"model": "gpt-5.6", "store": False, "include": ["reasoning.encrypted_content"]}
    async with client:
        async with client.responses.stream(input="hello", **own) as told:
            seen = [each.type async for each in told]
            answered = await told.get_final_response()
        back = [item.to_dict() for item in answered.output]
        question = [HELLO, *back, RESULT]
        async with client.responses.stream(input=question, **own) as told:
            refused = await told.get_final_response()
    assert seen[0] == "response.created"
    assert answered.output_text == "Hello."
    assert refused.output[0].content[0].refusal == "no"
    assert strict.refused == []


async def test_the_official_types_take_what_is_sent(strict: StrictResponses, ask: Ask) -> None:
    params = pytest.importorskip("openai.types.responses.response_create_params")
    adapter: Any = pydantic.TypeAdapter(params.ResponseCreateParamsStreaming)
    message = await history(ask, strict)
    picture: Any = [{"type": "image_url", "image_url": {"url": PNG}}]
    edited = {**message, "content": "edited"}
    asked = [SYSTEM, user(picture), message, tool_answer("c1", picture), edited]
    await ask(*asked, tool_answer("c1", "a"), tools=[LS], session_id="s")
    body = strict.requests[-1].body
    taken = adapter.dump_python(adapter.validate_python(body), mode="json")
    assert {name: body[name] for name in taken if name != "input"} == {
        name: value for name, value in taken.items() if name != "input"
    }
    assert len(taken["input"]) == len(body["input"])


# Whatever has become of a conversation, no request breaks a rule.

TEXTS = st.text("ab \u00e9\ud83d\0", max_size=30)
CALLS = st.lists(st.sampled_from(["ls", "cat"]), max_size=3)
TURN = st.fixed_dictionaries(
    {
        "thoughts": st.booleans(),
        "text": TEXTS,
        "calls": CALLS,
        "model": st.sampled_from(["gpt-5.6", "gpt-6-astra"]),
        "edit": st.sampled_from(["", "", "text", "arguments", "id", "order", "compact"]),
        "image": st.booleans(),
    }
)


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(TURN, min_size=1, max_size=5))
async def test_no_history_leads_to_a_request_that_is_refused(turns: list[Any]) -> None:
    async with StrictResponses() as strict:
        models = {name: at(strict, name, retries=Retries(limit=0)) for name in MODELS}
        messages: list[Message] = [SYSTEM, user("hello")]
        for turn in turns:
            strict.reply(*items_in(turn))
            completion = await last(models[turn["model"]], messages)
            if (message := completion.message()) is not None:
                messages += edited(message, turn)
            if turn["edit"] == "compact":
                tail = dropwhile(lambda each: each["role"] == "tool", messages[-3:])
                messages = [SYSTEM, user("What was: ..."), *tail]
            messages.append(user("on"))
        for model in models.values():
            await model.aclose()
        assert strict.refused == []


MODELS = ("gpt-5.6", "gpt-6-astra")


def items_in(turn: Any) -> list[Any]:
    made = [text_item(turn["text"])] if turn["text"] else []
    made += [called(name, path=name) for name in turn["calls"]]
    if not turn["thoughts"]:
        return made
    return [item for each in made for item in (thought("Hm."), each)] or [thought("Hm.")]


def edited(message: Message, turn: Any) -> list[Message]:
    """The message as a hook may leave it, and the results of its calls."""
    changed: Any = json.loads(json.dumps(message))
    calls = changed.get("tool_calls", [])
    match turn["edit"]:
        case "text":
            changed["content"] = "edited"
        case "arguments" if calls:
            calls[0]["function"]["arguments"] = '{"path": "elsewhere"}'
        case "id" if calls:
            calls[0]["id"] = "renamed-" + calls[0]["id"] * 2
        case "order":
            calls.reverse()
        case _:
            pass
    picture: Any = [{"type": "image_url", "image_url": {"url": PNG}}]
    content = picture if turn["image"] else "a"
    return [changed, *(tool_answer(call["id"], content) for call in calls)]


async def last(model: HttpModel, messages: list[Message]) -> Completion:
    request = Request(list(messages), session_id="s")
    items = [item async for item in model.stream(request)]
    assert isinstance(items[-1], Completion)
    return items[-1]
