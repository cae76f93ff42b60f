"""The window that a server has is what counts: learnt from its lists, and from what it refuses."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from crow.core.errors import ModelError
from crow.core.messages import user
from crow.core.ports.llm import Request
from crow.llm import ChatCompletions, resolve
from crow.llm.http import NO_RETRIES
from crow.testing import Endpoint
from crow.testing.endpoint import answer, respond


async def learnt(endpoint: Endpoint, model: str, **settings: Any) -> tuple[int | None, int | None]:
    """The window before the first answer, and when all that it set off has ended."""
    endpoint.play(answer("Hi."), answer("Hi."))
    llm: Any = resolve(model, settings, {})
    before = llm.context_window
    for _ in range(2):
        async for _ in llm.stream(Request([user("hello")])):
            pass
    asking = [task for task in asyncio.all_tasks() if task.get_name() == "window"]
    await asyncio.gather(*asking)
    await llm.aclose()
    return before, llm.context_window


@pytest.mark.parametrize(
    "row",
    [
        {"id": "m", "meta": {"n_ctx": 4096, "n_ctx_train": 32768}},
        {"id": "m", "max_model_len": 4096},
        {"id": "m", "context_length": 4096},
        {"id": "m", "max_input_tokens": 4096, "max_tokens": 100},
    ],
)
async def test_a_list_of_models_says_the_window(endpoint: Endpoint, row: dict[str, Any]):
    endpoint.models = ["other", row]
    assert await learnt(endpoint, "m", base_url=endpoint.url) == (None, 4096)
    own = {"mine": {"base_url": endpoint.url}}
    assert await learnt(endpoint, "mine/m", providers=own) == (None, 4096)


async def test_what_a_name_says_is_less_than_what_the_server_says(endpoint: Endpoint):
    endpoint.models = [{"id": "qwen3-8b", "meta": {"n_ctx": 2048}}]
    assert await learnt(endpoint, "qwen3-8b", base_url=endpoint.url) == (262144, 2048)


async def test_what_settings_say_is_more_and_nobody_is_asked(endpoint: Endpoint):
    endpoint.models = [{"id": "m", "context_length": 4096}]
    said = {"base_url": endpoint.url, "context_window": 999}
    assert await learnt(endpoint, "m", **said) == (999, 999)
    table = {"base_url": endpoint.url, "models": {"m": {"context_window": 888}}}
    assert await learnt(endpoint, "mine/m", providers={"mine": table}) == (888, 888)


@pytest.mark.parametrize("models", [[], ["m"], [{"id": "m", "meta": None, "context_length": "4k"}]])
async def test_a_server_that_says_nothing_changes_nothing(endpoint: Endpoint, models: list[Any]):
    endpoint.models = models
    assert await learnt(endpoint, "m", base_url=endpoint.url) == (None, None)


async def test_ollama_and_lm_studio_say_it_of_loaded_models(endpoint: Endpoint):
    endpoint.others["/api/ps"] = {"models": [{"name": "m:latest", "context_length": 4096}]}
    endpoint.others["/api/v0/models"] = {"data": [{"id": "m", "loaded_context_length": 8192}]}
    places = {name: {"base_url": endpoint.url} for name in ("ollama", "lmstudio")}
    assert await learnt(endpoint, "ollama/m", providers=places) == (None, 4096)
    assert await learnt(endpoint, "lmstudio/m", providers=places) == (None, 8192)


OVERFLOWS = [
    "prompt is too long: 250000 tokens > 4096 maximum",
    "input length and `max_tokens` exceed context limit: 4000 + 1000 > 4096",
    "This model's maximum context length is 4096 tokens. However, you requested about 9000",
    "The input token count (9000) exceeds the maximum number of tokens allowed (4096).",
    "This model's maximum prompt length is 4096 but the request contains 9000 tokens.",
    "Invalid request: Your request exceeded model token limit: 4096 (requested: 9000)",
    "Prompt contains 9000 tokens, too large for model with 4096 maximum context length",
    "The input is longer than the model's context length (4096 tokens).",
    "Range of input length should be [1, 4096]: prompt is too long",
]


@pytest.mark.parametrize("said", OVERFLOWS)
async def test_a_refusal_says_the_window(endpoint: Endpoint, said: str):
    assert await refused(endpoint, {"message": said}, None) == 4096
    assert await refused(endpoint, {"message": said}, 200_000) == 4096
    assert await refused(endpoint, {"message": said}, 1000) == 1000


async def test_llama_cpp_says_it_in_a_field(endpoint: Endpoint):
    error = {"type": "exceed_context_size_error", "message": "too long", "n_ctx": 512}
    assert await refused(endpoint, error, None) == 512


async def test_other_numbers_are_no_window(endpoint: Endpoint):
    error = {"message": "rate limit: maximum context length is 4096 tokens a minute"}
    endpoint.play(respond(429, json.dumps({"error": error})))
    llm = ChatCompletions("m", endpoint.url, retries=NO_RETRIES)
    with pytest.raises(ModelError):
        async for _ in llm.stream(Request([user("hello")])):
            pass
    assert llm.context_window is None


async def refused(endpoint: Endpoint, error: dict[str, Any], known: int | None) -> int | None:
    endpoint.play(respond(400, json.dumps({"error": error})))
    llm = ChatCompletions("m", endpoint.url, context_window=known, retries=NO_RETRIES)
    with pytest.raises(ModelError) as caught:
        async for _ in llm.stream(Request([user("hello")])):
            pass
    await llm.aclose()
    assert caught.value.kind == "context_length"
    return llm.context_window
