"""Rules of endpoints for chat completions, in a double that refuses what breaks them (C02-C09)."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from crow.core.messages import Message, user
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


async def test_the_words_between_are_the_assistants(endpoint: Any, ask: Any):
    endpoint.rule = mistral
    await ask(*history())
    roles = [each["role"] for each in endpoint.requests[-1].body["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]
