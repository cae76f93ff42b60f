"""The official client and the strict endpoint understand each other, and Crow's requests are its."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from crow.core.messages import tool_answer, user
from crow.core.ports.llm import Request
from crow.llm import Gemini
from crow.testing import StrictGemini
from crow.testing.gemini import wanted

genai: Any = pytest.importorskip("google.genai")
types: Any = pytest.importorskip("google.genai.types")


@pytest.fixture
async def google() -> AsyncGenerator[StrictGemini, None]:
    async with StrictGemini() as google:
        yield google


async def test_the_official_client_is_taken_and_served(google: StrictGemini):
    google.say("Let me look.", wanted("ls", path="a"), wanted("ls", path="b"), thought="Hm.")
    google.say("Two files.")
    http = types.HttpOptions(base_url=google.url.removesuffix("/v1"), api_version="v1")
    client = genai.Client(api_key="k", http_options=http)
    ls = {
        "name": "ls",
        "parameters_json_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
    }
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[ls])],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )  # fmt: skip
    chat = client.aio.chats.create(model="gemini-3-pro", config=config)
    chunks = [chunk async for chunk in await chat.send_message_stream("look")]
    calls = [call for chunk in chunks for call in chunk.function_calls or ()]
    assert [call.args for call in calls] == [{"path": "a"}, {"path": "b"}]
    results = [
        types.Part(
            function_response=types.FunctionResponse(id=call.id, name=call.name, response={})
        )
        for call in calls
    ]
    said = [chunk.text async for chunk in await chat.send_message_stream(results)]
    assert "".join(filter(None, said)) == "Two files."
    assert google.refused == []


async def test_crow_s_requests_are_what_the_official_client_s_types_say(google: StrictGemini):
    llm = Gemini("gemini-3-pro", google.url, "k")
    google.say(wanted("ls"), thought="Hm.")
    items = [item async for item in llm.stream(Request([user("look")]))]
    message: Any = items[-1].message()  # type: ignore[union-attr]
    image: Any = {"type": "image_url", "image_url": {"url": "data:image/png;base64,YQ=="}}
    result = tool_answer(message["tool_calls"][0]["id"], [{"type": "text", "text": "a"}, image])
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    tool: Any = {
        "type": "function",
        "function": {"name": "ls", "description": "", "parameters": schema},
    }
    google.say("Done.")
    history: Any = [{"role": "system", "content": "Be brief."}, user([image]), message, result]
    asked = Request(history, [tool], params={"reasoning_effort": "low", "temperature": 1})
    async for _ in llm.stream(asked):
        pass
    await llm.aclose()
    body = google.requests[-1].body
    for content in body["contents"]:
        assert types.Content.model_validate(content).parts
    types.Content.model_validate(body["systemInstruction"])
    types.GenerationConfig.model_validate(body["generationConfig"])
    (tools,) = body["tools"]
    assert (
        types.Tool.model_validate(tools).function_declarations[0].parameters_json_schema == schema
    )
