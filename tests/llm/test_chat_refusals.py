"""Rules of endpoints for chat completions, in a double that refuses what breaks them (C02-C09)."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from crow.core.messages import Message, user
from crow.core.ports.llm import Request
from crow.llm import resolve
from crow.testing.endpoint import Endpoint, Received, Response, answer, respond

LONG = "call_" + "x" * 50
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aWYK"}}


def history(call_id: str = "call_1", result: Any = "Sunny.", **fields: Any) -> list[Message]:
    """A call, its result and the user's next words."""
    function = {"name": "look", "arguments": "{}"}
    call = {"id": call_id, "type": "function", "function": function}
    said: Any = {"role": "assistant", "content": None, "tool_calls": [call], **fields}
    back: Any = {"role": "tool", "tool_call_id": call_id, "content": result}
    return [user("Look"), said, back, user("And now?")]


def ids(body: dict[str, Any]) -> list[str]:
    called = [call["id"] for each in body["messages"] for call in each.get("tool_calls") or ()]
    return called + [each["tool_call_id"] for each in body["messages"] if each["role"] == "tool"]


def mistral(body: dict[str, Any]) -> str | None:
    """C08, C09."""
    for each in ids(body):
        if not re.fullmatch("[a-zA-Z0-9]{9}", each):
            return f"Tool call id was {each} but must be a-z, A-Z, 0-9, with a length of 9."
    roles = [each["role"] for each in body["messages"]]
    if ("tool", "user") in pairwise(roles):
        return "Unexpected role 'user' after role 'tool'"
    return None


def openai(body: dict[str, Any]) -> str | None:
    """C02, C04."""
    if "max_tokens" in body:
        return "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    if any(len(each) > 40 for each in ids(body)):
        return "Expected a string with maximum length 40, but got a string with length 55 instead."
    return None


def deepseek(body: dict[str, Any]) -> str | None:
    """C05."""
    if all("reasoning_content" in each for each in body["messages"] if "tool_calls" in each):
        return None
    return "The `reasoning_content` in the thinking mode must be passed back to the API."


def kimi(body: dict[str, Any]) -> str | None:
    """C06."""
    said = "thinking is enabled but reasoning_content is missing in assistant tool call message"
    return said if deepseek(body) else None


class Strict(Endpoint):
    """An endpoint that refuses what breaks its provider's rules, and else says hello."""

    rule: Callable[[dict[str, Any]], str | None] = staticmethod(lambda body: None)

    def _steps(self, received: Received) -> Response:
        if received.path.endswith("/models"):
            return super()._steps(received)
        self.requests.append(received)
        fault = self.rule(received.body)
        return respond(400, {"error": {"message": fault}}) if fault else answer("Hello.")


@pytest.fixture
async def endpoint():
    async with Strict() as endpoint:
        yield endpoint


@pytest.mark.parametrize("result", ["Sunny.", [IMAGE]], ids=["text", "image"])
@pytest.mark.parametrize("rule", [mistral, openai, deepseek, kimi])
async def test_a_refusal_is_learned_from_once(endpoint: Any, ask: Any, rule: Any, result: Any):
    endpoint.rule = rule
    params = {"max_tokens": 100}
    assert (await ask(*history(LONG, result), params=params)).text == "Hello."
    refused = len(endpoint.requests) - 1
    assert refused > 0
    heard = await ask(*history(LONG, result), params=params)
    assert (heard.text, heard.retries) == ("Hello.", [])
    assert len(endpoint.requests) == refused + 2
    called, answered = ids(endpoint.requests[-1].body)
    assert called == answered


async def test_ids_and_parameters_stay_as_they_are_for_everybody_else(endpoint: Any, ask: Any):
    await ask(*history(LONG), params={"max_tokens": 100})
    body = endpoint.requests[0].body
    assert ids(body) == [LONG, LONG]
    assert body["max_tokens"] == 100
    assert [each["role"] for each in body["messages"]] == ["user", "assistant", "tool", "user"]


def field(name: str, says: str) -> Callable[[dict[str, Any]], str | None]:
    """Refuses a field of the body."""
    return lambda body: says if name in body else None


def of_tools(body: dict[str, Any]) -> str | None:
    """C01."""
    if body.get("tools") and body.get("reasoning_effort") != "none":
        return "Function tools with reasoning_effort are not supported for m-1"
    return None


def strict(body: dict[str, Any]) -> str | None:
    """R09."""
    if any("strict" in tool["function"] for tool in body.get("tools", ())):
        return "Invalid schema for function 'f': 'additionalProperties' is required to be supplied and to be false."
    return None


def neither(body: dict[str, Any]) -> str | None:
    """C07."""
    both = "thinking" in body and "reasoning_effort" in body
    return "cannot specify both 'thinking' and 'reasoning_effort'" if both else None


def null(body: dict[str, Any]) -> str | None:
    if all(each["content"] is not None for each in body["messages"]):
        return None
    return "messages[1].content: invalid type: null, expected a string"


def tools_wanted(body: dict[str, Any]) -> str | None:
    if "tools" in body or not ids(body):
        return None
    return "Anthropic expects the `tools=` param to be passed in when there are tool calls."


def no_developer(body: dict[str, Any]) -> str | None:
    if all(each["role"] != "developer" for each in body["messages"]):
        return None
    return "Invalid role: developer"


TOOL: Any = {
    "type": "function",
    "function": {"name": "f", "parameters": {"type": "object"}, "strict": True},
}
TOLD: Any = {"role": "developer", "content": "Be brief."}
TWICE = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
QUIRKS: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "tools_on_chat": (of_tools, {"reasoning_effort": "high"}, {"reasoning_effort": "none"}),
    "strict": (strict, {}, {}),
    "store": (
        field("store", "Unrecognized request argument supplied: 'store'"),
        {"store": True},
        {},
    ),
    "temperature": (
        field("temperature", "Unsupported parameter: 'temperature' is not supported."),
        {"temperature": 0.2, "top_p": 0.9, "seed": 1},
        {"seed": 1},
    ),
    "max_tokens": (field("max_tokens", TWICE), {"max_tokens": 9}, {"max_completion_tokens": 9}),
    "max_completion_tokens": (
        field("max_completion_tokens", "max_completion_tokens: Extra inputs are not permitted"),
        {"max_completion_tokens": 9},
        {"max_tokens": 9},
    ),
    "developer": (no_developer, {}, {}),
    "null_content": (null, {}, {}),
    "absent_tools": (tools_wanted, {}, {"tools": []}),
}


@pytest.mark.parametrize("name", QUIRKS)
@pytest.mark.parametrize("known", [False, True], ids=["learned", "known"])
async def test_what_is_refused_is_not_sent_in_advance_where_that_is_known(
    endpoint: Any, name: str, known: bool
) -> None:
    endpoint.rule, given, sent = QUIRKS[name]
    tools = [] if name == "absent_tools" else [TOOL]
    refuses = {"refuses": [name]} if known else {}
    settings = {"providers": {"mine": {"base_url": endpoint.url, **refuses}}}
    llm: Any = resolve("mine/m-1", settings, {})
    for _ in range(2):
        request = Request([TOLD, *history()], tools, params=given)
        async for _ in llm.stream(request):
            pass
    await llm.aclose()
    assert len(endpoint.requests) == (2 if known else 3)
    body = endpoint.requests[-1].body
    rest = {
        key: value
        for key, value in body.items()
        if key not in ("messages", "model", "stream", "stream_options")
    }
    if tools:
        rest.pop("tools")
    assert rest == sent


async def test_what_is_said_of_thinking_in_two_ways_is_said_in_one(endpoint: Any, ask: Any):
    endpoint.rule = neither
    params = {"thinking": {"type": "enabled"}, "reasoning_effort": "low"}
    await ask(params=params)
    await ask(params=params)
    assert len(endpoint.requests) == 3
    assert "reasoning_effort" not in endpoint.requests[-1].body


async def test_a_limit_that_has_no_name_is_left_out(endpoint: Any, ask: Any):
    def fussy(body: dict[str, Any]) -> str | None:
        refused = field("max_completion_tokens", "Unknown parameter: max_completion_tokens")
        return refused(body) or field("max_tokens", TWICE)(body)

    endpoint.rule = fussy
    assert (await ask(params={"max_tokens": 5})).text == "Hello."
    assert len(endpoint.requests) == 3


async def test_whether_a_gateway_takes_thinking_beside_tools_is_learned() -> None:
    async with Strict() as openai:
        openai.rule = of_tools
        settings = {"providers": {"openai": {"base_url": openai.url, "api_key": "k"}}}
        llm: Any = resolve("openai/gpt-5.4", settings, {})
        async for _ in llm.stream(
            Request([user("hi")], [TOOL], params={"reasoning_effort": "low"})
        ):
            pass
        await llm.aclose()
        efforts = [each.body["reasoning_effort"] for each in openai.requests]
    assert efforts == ["low", "none"]


async def test_the_words_between_are_the_assistants(endpoint: Any, ask: Any):
    endpoint.rule = mistral
    await ask(*history())
    roles = [each["role"] for each in endpoint.requests[-1].body["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]
