"""Requests that are too long: in whose words it is said, and what is learned from the numbers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.llm.conftest import KEY, QUICK, SOON

from crow.core.errors import ModelError
from crow.core.messages import user
from crow.llm.chat import ChatCompletions
from crow.testing.endpoint import END, answer, delta, respond, stream

LLAMA = {
    "code": 400,
    "message": "request (1510 tokens) exceeds the available context size (512 tokens)",
    "type": "exceed_context_size_error",
    "n_prompt_tokens": 1510,
    "n_ctx": 512,
}
OPENAI = (
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 "
    "tokens. Please reduce the length of the messages."
)
ROUTER = (
    "This endpoint's maximum context length is 8192 tokens. However, you requested about 9001 "
    "tokens (8000 of text input, 1001 in the output)."
)
SAID: list[tuple[str, int | None, int | None]] = [
    ("prompt is too long: 208310 tokens > 200000 maximum", 208310, 200000),
    ("input length and `max_tokens` exceed context limit: 190 + 64 > 200", 190, 200),
    (OPENAI, 9001, 8192),
    (ROUTER, 9001, 8192),
    ("Your input exceeds the context window of this model.", None, None),
    (
        "The input token count (1,196,265) exceeds the maximum number of tokens allowed (1048575)",
        1196265,
        1048575,
    ),
    (
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        537812,
        131072,
    ),
    ("Please reduce the length of the messages or completion.", None, None),
    ("Your request exceeded model token limit: 8192 (requested: 9001)", 9001, 8192),
    ("Prompt contains 9 tokens, too large for model with 8192 maximum context length", None, 8192),
    ("`inputs` tokens are longer than the model's context length (8192 tokens).", None, 8192),
    ("Range of input length should be [1, 98304]", None, 98304),
    ("invalid params, context window exceeds limit", None, None),
]


@pytest.mark.parametrize("said, sent, window", SAID, ids=[each[0][:30] for each in SAID])
async def test_every_server_is_understood_and_its_numbers_are_said(
    endpoint, ask, model, said: str, sent: int | None, window: int | None
):
    endpoint.play(respond(400, {"error": {"message": said}}))
    with pytest.raises(ModelError) as caught:
        await ask()
    assert caught.value.kind == "context_length"
    assert model.context_window == window
    for number in filter(None, (sent, window)):
        assert f"{number:,}" in str(caught.value)


@pytest.mark.parametrize("body", [{"error": LLAMA}, {"error": {**LLAMA, "message": "too long"}}])
async def test_C15_the_numbers_of_llama_cpp_are_learned(endpoint, ask, body: Any):
    llm = ChatCompletions(
        "gpt-4o", endpoint.url, KEY, context_window=128_000, timeouts=QUICK, retries=SOON
    )
    endpoint.play(respond(400, body))
    with pytest.raises(ModelError, match="1,510 tokens were sent, and 512 fit"):
        await ask(llm=llm)
    assert llm.context_window == 512


async def test_a_larger_window_than_the_known_one_is_not_believed(endpoint, ask):
    llm = ChatCompletions("m", endpoint.url, KEY, context_window=100, timeouts=QUICK, retries=SOON)
    endpoint.play(respond(400, {"error": LLAMA}))
    with pytest.raises(ModelError):
        await ask(llm=llm)
    assert llm.context_window == 100


@pytest.mark.parametrize(
    "status, body",
    [(400, {"error": {"code": 1261, "message": "Prompt exceeds max length"}}), (413, "")],
    ids=["GLM", "Cerebras"],
)
async def test_C16_an_overflow_without_numbers_is_one_all_the_same(endpoint, ask, status, body):
    endpoint.play(respond(status, body))
    with pytest.raises(ModelError) as caught:
        await ask()
    assert caught.value.kind == "context_length"


@pytest.mark.parametrize(
    "said", ["Too many tokens, please wait before trying again.", "Rate limit: too many tokens"]
)
async def test_too_many_tokens_in_too_short_a_time_is_no_overflow(endpoint, ask, said: str):
    endpoint.play(respond(429, {"message": said}), answer("Hi."))
    heard = await ask()
    assert (heard.text, len(heard.retries)) == ("Hi.", 1)


NOTHING = [
    pytest.param(stream(), id="no event"),
    pytest.param(stream(delta(finish="stop")), id="a reason alone"),
    pytest.param(respond(200, ""), id="no body"),
]


@pytest.mark.parametrize("empty", NOTHING)
async def test_C16_nothing_in_answer_to_a_request_that_fills_the_window_is_an_overflow(
    endpoint, ask, empty: Any
):
    llm = ChatCompletions("m", endpoint.url, KEY, context_window=900, timeouts=QUICK, retries=SOON)
    endpoint.play(empty)
    with pytest.raises(ModelError, match="fills its window") as caught:
        await ask(user("word " * 800), llm=llm)
    assert caught.value.kind == "context_length"


@pytest.mark.parametrize("empty", [NOTHING[0], NOTHING[2]])
async def test_nothing_in_answer_to_a_short_request_is_asked_for_again(endpoint, ask, empty: Any):
    llm = ChatCompletions("m", endpoint.url, KEY, context_window=900, timeouts=QUICK, retries=SOON)
    endpoint.play(empty, answer("Hi."))
    assert (await ask(llm=llm)).text == "Hi."


async def test_an_answer_that_had_no_room_is_an_overflow(endpoint, ask):
    endpoint.play(stream(delta(finish="length"), END))
    with pytest.raises(ModelError, match="no room") as caught:
        await ask()
    assert caught.value.kind == "context_length"
