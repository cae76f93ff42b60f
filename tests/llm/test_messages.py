"""Claude over its own protocol: what it says, calls and thinks, and what goes back."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from tests.watching import Watching

from crow import Agent, tool
from crow.core.errors import ModelError
from crow.core.events import ThoughtDelta
from crow.core.messages import user
from crow.core.ports.llm import Completion, Request
from crow.core.tools import ToolResult
from crow.extensions import SystemPromptHook
from crow.llm import AnthropicMessages, HttpModel, Retries, Timeouts
from crow.testing import Endpoint, StrictMessages
from crow.testing.endpoint import END, RESET, begin, piece, respond, stream
from crow.testing.messages import redacted, search, thought, use

CLAUDES = ["claude-haiku-4-5", "claude-opus-4-6", "claude-opus-4-8", "claude-sonnet-5", "claude-opus-5", "claude-opus-5-5", "claude-fable-5-2"]  # fmt: skip
LONG = "You are careful. " * 1000
SOON = Retries(limit=3, base=0.01)
PNG = "data:image/png;base64," + base64.b64encode(b"\x89PNG").decode()
PART: Any = {"type": "image_url", "image_url": {"url": PNG}}


@tool
async def ls(path: str = ".") -> str:
    """List."""
    return f"{path}: a b"


@tool
async def look() -> ToolResult:
    """Look at a picture."""
    return ToolResult([{"type": "text", "text": "seen"}, PART])


@pytest.fixture
async def endpoint() -> AsyncGenerator[StrictMessages, None]:
    async with StrictMessages() as endpoint:
        yield endpoint


def claude(endpoint: StrictMessages, model: str = "claude-opus-4-8", **options: Any) -> HttpModel:
    options = {"retries": SOON, "timeouts": Timeouts(idle=30, total=60), **options}
    return AnthropicMessages(model, endpoint.url, "sk-key-0123456789", **options)


def bodies(endpoint: StrictMessages) -> list[dict[str, Any]]:
    return [request.body for request in endpoint.requests]


async def asked(llm: HttpModel, *messages: Any, **fields: Any) -> list[Any]:
    request = Request(list(messages) or [user("hello")], **fields)
    return [item async for item in llm.stream(request)]


@pytest.mark.parametrize("model", CLAUDES)
async def test_a_turn_with_thoughts_and_calls_goes_back_as_it_came(
    endpoint: StrictMessages, model: str
):
    endpoint.say(thought("I look."), "Let me look.", use("ls", path="/a"), use("ls", path="/b"))
    endpoint.say(thought(""), redacted(), use("ls"))
    endpoint.say("Two files.")
    endpoint.say("Still two.")
    async with Agent(
        llm=claude(endpoint, model), tools=[ls], hooks=[SystemPromptHook(LONG)]
    ) as agent:
        reply = await agent.run("what is there?")
        assert reply.text == "Two files."
        assert (await agent.run("sure?", session=reply.session)).text == "Still two."
    assert endpoint.refused == []
    sent = bodies(endpoint)[-1]["messages"]
    assert [each["role"] for each in sent] == ["user", "assistant"] * 3 + ["user"]
    kinds = [[block["type"] for block in each["content"]] for each in sent]
    assert kinds[1] == ["thinking", "text", "tool_use", "tool_use"]
    assert kinds[2] == ["tool_result", "tool_result"]
    assert kinds[3] == ["thinking", "redacted_thinking", "tool_use"]


@pytest.mark.parametrize("model", CLAUDES)
async def test_every_request_finds_all_of_the_one_before_in_the_cache(
    endpoint: StrictMessages, model: str
):
    for number in range(4):
        endpoint.say(thought(), *(use("ls", path=f"/{number}/{at}") for at in range(15)))
    endpoint.say("Done.")
    async with Agent(
        llm=claude(endpoint, model), tools=[ls], hooks=[SystemPromptHook(LONG)]
    ) as agent:
        reply = await agent.run("look everywhere")
    assert endpoint.cached[0] == 0
    assert endpoint.cached == sorted(set(endpoint.cached))
    usage = reply.session.usage
    assert usage["cached_tokens"] == sum(endpoint.cached)
    assert usage["input_tokens"] > usage["cached_tokens"] + usage["cache_write_tokens"] - 1 > 0


async def test_a_prompt_that_is_too_short_for_the_cache_is_not_marked(endpoint: StrictMessages):
    endpoint.say("Hi.")
    await asked(claude(endpoint, "claude-haiku-4-5"))
    assert "cache_control" not in str(bodies(endpoint))


async def test_a_cache_may_be_kept_for_an_hour(endpoint: StrictMessages):
    endpoint.say("Hi.")
    await asked(claude(endpoint, cache_ttl="1h"), user(LONG))
    mark = bodies(endpoint)[0]["messages"][0]["content"][0]["cache_control"]
    assert mark == {"type": "ephemeral", "ttl": "1h"}


async def test_thoughts_are_shown(endpoint: StrictMessages):
    endpoint.say(thought("First."), "So.", thought("Second."), use("ls"))
    items = await asked(claude(endpoint))
    shown = "".join(item.text for item in items if isinstance(item, ThoughtDelta))
    assert shown == items[-1].reasoning == "First.\n\nSecond."
    assert bodies(endpoint)[0]["thinking"] == {"type": "adaptive", "display": "summarized"}


@pytest.mark.parametrize(
    "model, level, thinking, effort",
    [
        ("claude-haiku-4-5", None, {"type": "enabled", "budget_tokens": 12288}, None),
        ("claude-haiku-4-5", "low", {"type": "enabled", "budget_tokens": 4096}, None),
        ("claude-haiku-4-5", "off", None, None),
        ("claude-opus-4-6", "high", {"type": "adaptive", "display": "summarized"}, "high"),
        ("claude-opus-5", "off", {"type": "disabled"}, None),
        ("claude-opus-5-5", "off", {"type": "adaptive", "display": "summarized"}, "low"),
        ("claude-opus-5-5", "max", {"type": "adaptive", "display": "summarized"}, "max"),
        ("claude-3-haiku-20240307", "high", None, None),
    ],
)
async def test_how_hard_it_thinks_is_said_in_the_model_s_words(
    endpoint: StrictMessages, model: str, level: str | None, thinking: Any, effort: str | None
):
    endpoint.say("Hi.")
    params = {"reasoning_effort": level} if level else {}
    await asked(claude(endpoint, model), params=params)
    body = bodies(endpoint)[0]
    assert body.get("thinking") == thinking
    assert body.get("output_config", {}).get("effort") == effort
    assert "reasoning_effort" not in body


@pytest.mark.parametrize("model", CLAUDES)
async def test_parameters_of_others_are_said_in_its_words(endpoint: StrictMessages, model: str):
    endpoint.say(use("ls"))
    spec: Any = {"type": "function", "function": {"name": "ls", "description": "List.", "parameters": {"oneOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"required": ["a"]}]}}}  # fmt: skip
    params = {"temperature": 0.2, "tool_choice": "required", "parallel_tool_calls": False, "max_completion_tokens": 500, "stop": ["x"]}  # fmt: skip
    await asked(claude(endpoint, model), tools=[spec], params=params)
    assert endpoint.refused == []
    body = bodies(endpoint)[0]
    assert (body["max_tokens"], body["stop_sequences"]) == (500, ["x"])
    assert body["tool_choice"]["disable_parallel_tool_use"] is True
    assert body["tools"][0]["input_schema"] == {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}  # fmt: skip


async def test_an_image_stays_in_the_result(endpoint: StrictMessages):
    endpoint.say(use("look"))
    endpoint.say("Red.")
    async with Agent(llm=claude(endpoint), tools=[look]) as agent:
        await agent.run([{"type": "text", "text": "see"}, PART])
    source = {"type": "base64", "media_type": "image/png", "data": PNG.partition(",")[2]}
    sent = bodies(endpoint)[1]["messages"]
    assert sent[0]["content"][1] == {"type": "image", "source": source}
    assert sent[2]["content"][0]["content"][1] == {"type": "image", "source": source}
    assert endpoint.refused == []


@pytest.mark.parametrize(
    "key, options, expected",
    [
        ("sk-ant-api03-0123456789", {}, ("x-api-key", "sk-ant-api03-0123456789", None)),
        ("sk-ant-oat01-0123456789", {}, ("authorization", "Bearer sk-ant-oat01-0123456789", "oauth-2025-04-20")),
        ("sk-kimi-0123456789", {"bearer": True}, ("authorization", "Bearer sk-kimi-0123456789", None)),
        ("sk-ant-api03-0123456789", {"headers": {"Anthropic-Beta": "a-1, b-2"}}, ("x-api-key", "sk-ant-api03-0123456789", "a-1,b-2")),
    ],
)  # fmt: skip
async def test_the_key_goes_where_it_belongs(
    endpoint: StrictMessages, key: str, options: Any, expected: tuple[str, str, str | None]
):
    endpoint.say("Hi.")
    await asked(AnthropicMessages("claude-opus-4-8", endpoint.url, key, **options))
    headers = endpoint.requests[0].headers
    name, value, beta = expected
    assert (headers[name], headers.get("anthropic-beta")) == (value, beta)
    assert len({"x-api-key", "authorization"} & headers.keys()) == 1


async def test_a_pause_is_gone_on_from(endpoint: StrictMessages):
    endpoint.say(thought(), "I search.", search("crows"), stop="pause_turn")
    endpoint.say(search("ravens"), stop="pause_turn")
    endpoint.say("Both are birds.", use("ls"))
    endpoint.say("Done.")
    async with Agent(llm=claude(endpoint), tools=[ls]) as agent:
        reply = await agent.run("crows?")
    assert endpoint.refused == []
    assert reply.text == "Done."
    first, *others = bodies(endpoint)
    kinds = [[block["type"] for block in body["messages"][1]["content"]] for body in others]
    assert kinds[0] == ["thinking", "text", "server_tool_use"]
    assert kinds[1] == [*kinds[0], "server_tool_use"]
    assert kinds[2] == [*kinds[1], "text", "tool_use"]
    assert len(first["messages"]) == 1
    assert reply.session.messages[1]["content"] == "I search.Both are birds."


@pytest.mark.parametrize(
    "details, text",
    [
        ({"type": "refusal", "category": "cyber", "explanation": "No malware."}, "No malware."),
        ({"type": "refusal", "category": "bio", "explanation": None}, "[refused: bio]"),
        (None, "[refused: refusal]"),
    ],
)
async def test_a_refusal_says_why(endpoint: StrictMessages, details: Any, text: str):
    endpoint.say(stop="refusal", details=details)
    done: Completion = (await asked(claude(endpoint)))[-1]
    assert (done.text, done.finish, done.opaque) == (text, "content_filter", {})


@pytest.mark.parametrize(
    "stop, finish",
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("sensitive", "content_filter"),
        ("something_new", "stop"),
    ],
)
async def test_why_it_ended(endpoint: StrictMessages, stop: str, finish: str):
    endpoint.say("Hi.", stop=stop)
    assert (await asked(claude(endpoint)))[-1].finish == finish


async def test_a_call_that_was_cut_off_is_not_made_and_its_thought_goes_back(
    endpoint: StrictMessages,
):
    endpoint.say(thought(), use("ls", path="/"), stop="max_tokens")
    endpoint.say("Hm.")
    async with Agent(llm=claude(endpoint), tools=[ls]) as agent:
        await agent.run("look")
    _, said, result = bodies(endpoint)[1]["messages"]
    assert [block["type"] for block in said["content"]] == ["thinking", "tool_use"]
    assert said["content"][1]["input"] == {}
    assert "cut off" in str(result)
    assert endpoint.refused == []


async def test_A04_a_thought_that_is_refused_stays_away_and_later_ones_go_back(
    endpoint: StrictMessages,
):
    endpoint.say(thought("First."), "One.")
    endpoint.say(thought("Second."), "Two.")
    endpoint.say("Three.")
    async with Agent(llm=claude(endpoint, "claude-opus-4-8"), tools=[]) as agent:
        session = (await agent.run("look")).session
        items = [{**session.messages[1]["output_items"][0], "signature": "c2ln"}]
        items += session.messages[1]["output_items"][1:]
        session.messages[1] = {**session.messages[1], "output_items": items}
        await agent.run("on", session=session)
        await agent.run("and on", session=session)
    assert endpoint.refused == ["A04"]
    sent = str(endpoint.requests[-1].body["messages"])
    assert ("First." in sent, "Second." in sent) == (False, True)


@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-fable-5-2"])
async def test_thoughts_behind_a_changed_prefix_are_dropped_and_that_is_said_once(
    endpoint: StrictMessages, model: str
):
    endpoint.say(thought(), use("ls"))
    for text in ("Two.", "Three.", "Four."):
        endpoint.say(thought("Count."), text)
    client = Watching()
    async with Agent(llm=claude(endpoint, model), tools=[ls]) as agent:
        session = await agent.new_session(client=client)
        await agent.run("look", session=session)
        session.messages[0] = user("look well")
        assert (await agent.run("sure?", session=session)).text == "Three."
        assert (await agent.run("really?", session=session)).text == "Four."
    assert endpoint.refused == ["A05"]
    notices = client.notices
    assert len([text for text in notices if "left out 2 thoughts" in text]) == 1
    assert endpoint.requests[-1].headers["anthropic-beta"] == "thinking-binding-controls-2026-08-01"


@pytest.mark.parametrize(
    "odd",
    [
        {"type": "something_new", "data": 1},
        {"type": ["x"]},
        {"type": "content_block_delta", "index": [0], "delta": {"type": ["x"], "text": 1}},
        {"type": "content_block_delta", "index": 7, "delta": {"type": "text_delta", "text": "x"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "new_delta", "new": "x"}},
        {"type": "content_block_start", "index": 3, "content_block": None},
        {"type": "message_delta", "delta": None, "usage": {"output_tokens": None}},
        {"type": "ping"},
    ],
)
async def test_what_is_not_known_in_a_stream_says_nothing(endpoint: StrictMessages, odd: Any):
    events: list[Any] = [
        {"type": "message_start", "message": {"usage": {"input_tokens": 3}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi."}},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 2},
        },
        {"type": "message_stop"},
    ]
    for at in range(len(events)):
        endpoint.play(stream(*events[:at], odd, *events[at:], done=False))
        done = (await asked(claude(endpoint)))[-1]
        assert (done.text, done.finish) == ("Hi.", "stop")
        assert done.usage == {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}


async def test_an_answer_that_is_not_streamed_is_read_as_well(endpoint: StrictMessages):
    blocks: list[Any] = [thought("Hm."), {"type": "text", "text": "Hi."}, use("ls", "t1", path="/")]
    whole = {"type": "message", "role": "assistant", "content": blocks, "stop_reason": "tool_use", "usage": {"input_tokens": 3, "output_tokens": 2}}  # fmt: skip
    endpoint.play(respond(200, whole))
    done = (await asked(claude(endpoint)))[-1]
    assert (done.text, done.reasoning, done.calls[0].args) == ("Hi.", "Hm.", {"path": "/"})


@pytest.mark.parametrize("model", ["kimi-k3", "glm-5", "deepseek-v4"])
async def test_a_server_that_signs_nothing_gets_its_thoughts_back(
    model: str,
):
    call = {"type": "tool_use", "id": "functions.ls:0", "name": "ls", "input": {"path": "/"}}
    blocks: list[Any] = [{"type": "thinking", "thinking": "Hm."}, call]
    first = {"type": "message", "content": blocks, "stop_reason": "tool_use"}
    last = {
        "type": "message",
        "content": [{"type": "text", "text": "Two."}],
        "stop_reason": "end_turn",
    }
    async with Endpoint() as plain:
        plain.play(respond(200, first), respond(200, last))
        llm = AnthropicMessages(model, plain.url, "k", retries=SOON)
        async with Agent(llm=llm, tools=[ls]) as agent:
            await agent.run("look")
    said, result = plain.requests[1].body["messages"][1:]
    assert said["content"][0] == {"type": "thinking", "thinking": "Hm.", "signature": ""}
    assert said["content"][1]["id"] == result["content"][0]["tool_use_id"]
    assert said["content"][1]["id"].replace("_", "").isalnum()


async def test_an_overloaded_stream_is_asked_again(endpoint: StrictMessages):
    error = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
    endpoint.play([begin(), piece(error), END])
    endpoint.play(
        respond(
            529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
        )
    )
    endpoint.play([begin(), RESET])
    endpoint.say("Hi.")
    items = await asked(claude(endpoint))
    assert items[-1].text == "Hi."
    assert len(endpoint.requests) == 4


@pytest.mark.parametrize(
    "status, kind, said, expected",
    [
        (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", "context_length"),
        (400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000", "context_length"),
        (413, "request_too_large", "Request exceeds the maximum size", "context_length"),
        (401, "authentication_error", "invalid x-api-key", "authentication"),
        (402, "billing_error", "Your credit balance is too low", "billing"),
        (400, "invalid_request_error", "You have reached your specified API usage limits.", "billing"),
        (403, "permission_error", "not allowed", "authentication"),
        (404, "not_found_error", "model: claude-x", "model_not_found"),
    ],
)  # fmt: skip
async def test_every_error_is_of_its_kind_and_not_retried(
    endpoint: StrictMessages, status: int, kind: str, said: str, expected: str
):
    error = {"type": "error", "error": {"type": kind, "message": said}, "request_id": "req_1"}
    endpoint.play(respond(status, error))
    with pytest.raises(ModelError, match=said.partition(":")[0].partition("`")[0]) as raised:
        await asked(claude(endpoint))
    assert raised.value.kind == expected
    assert len(endpoint.requests) == 1
