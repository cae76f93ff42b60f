"""Anthropic's own library reads what Crow sends to Claude, and what the strict double answers."""

from __future__ import annotations

from typing import Any

import pytest

from crow.core.messages import Message, tool_answer, user
from crow.core.ports.llm import Completion, Request
from crow.llm import AnthropicMessages
from crow.testing import StrictMessages
from crow.testing.messages import redacted, search, thought, use

anthropic = pytest.importorskip("anthropic")
TOOLS: Any = [{"type": "function", "function": {"name": "ls", "description": "List.", "parameters": {"type": "object"}}}]  # fmt: skip
PICTURE: Any = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


@pytest.mark.parametrize("model", ["claude-haiku-4-5", "claude-opus-5", "claude-fable-5-2"])
async def test_the_library_s_types_fit_what_crow_sends(model: str):
    from pydantic import TypeAdapter

    params: Any = anthropic.types.message_create_params.MessageCreateParamsStreaming
    messages: list[Message] = [
        {"role": "system", "content": "Be careful. " * 2000},
        user([PICTURE]),
    ]
    async with StrictMessages() as endpoint:
        llm = AnthropicMessages(model, endpoint.url, "k")
        for _ in range(2):
            endpoint.say(thought(), redacted(), "So.", use("ls", path="/"))
            *_, last = [each async for each in llm.stream(Request(list(messages), TOOLS))]
            assert isinstance(last, Completion)
            said = last.message()
            assert said is not None
            messages += [said, tool_answer(last.calls[0].id, [PICTURE])]
        await llm.aclose()
        for request in endpoint.requests:
            TypeAdapter(params).validate_python(request.body)
        assert "cache_control" in str(endpoint.requests[0].body)


async def test_the_library_understands_the_double_and_is_understood():
    async with StrictMessages() as endpoint:
        client = anthropic.AsyncAnthropic(api_key="k", base_url=endpoint.url.removesuffix("/v1"), max_retries=0)  # fmt: skip
        endpoint.say(thought("Hm."), redacted(), search("crows"), "So.", use("ls", path="/"))
        endpoint.say("Done.")
        tools: Any = [{"name": "ls", "description": "List.", "input_schema": {"type": "object"}}]
        options: Any = {"model": "claude-opus-5-5", "max_tokens": 2000, "tools": tools}
        history: list[Any] = [{"role": "user", "content": "look"}]
        async with client.messages.stream(messages=history, **options) as stream:
            message = await stream.get_final_message()
        kinds = ["thinking", "redacted_thinking", "server_tool_use", "text", "tool_use"]
        assert [block.type for block in message.content] == kinds
        assert message.stop_reason == "tool_use"
        said = [block.model_dump(exclude_none=True) for block in message.content]
        result = {"type": "tool_result", "tool_use_id": said[-1]["id"], "content": "a b"}
        history += [{"role": "assistant", "content": said}, {"role": "user", "content": [result]}]
        async with client.messages.stream(messages=history, **options) as stream:
            assert (await stream.get_final_message()).content[0].text == "Done."
        assert endpoint.refused == []
        history[0] = {"role": "user", "content": "look well"}
        with pytest.raises(anthropic.BadRequestError, match="bound to a different conversation"):
            async with client.messages.stream(messages=history, **options) as stream:
                await stream.get_final_message()
        await client.close()
