"""Servers that are slow, that are starting, and what they say of when to ask again."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from tests.llm.conftest import KEY, SOON

from crow.core.errors import ModelError
from crow.core.events import Retrying
from crow.core.messages import Usage, user
from crow.core.ports.llm import LLM, Request
from crow.llm.chat import ChatCompletions
from crow.llm.http import Timeouts
from crow.llm.http.retry import Clock
from crow.testing.endpoint import END, HANG, answer, delta, respond, stream

PING = b": still reading the prompt\n\n"
LOADING = {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}


def impatient(endpoint: Any, **times: float) -> Any:
    timeouts = Timeouts(**{"idle": 0.4, "pinged": 100, "closing": 0.2, **times})
    return ChatCompletions("m-1", endpoint.url, KEY, timeouts=timeouts, retries=SOON)


async def test_a_stream_that_pings_is_waited_for(endpoint, ask):
    endpoint.play(stream(*[PING, 0.15] * 6, "Hi.", delta(finish="stop")))
    heard = await ask(llm=impatient(endpoint))
    assert (heard.text, heard.retries) == ("Hi.", [])


async def test_a_ping_as_an_event_is_a_sign_of_life_as_well(endpoint, ask):
    endpoint.play(stream(*[{"type": "ping"}, 0.15] * 6, "Hi.", delta(finish="stop")))
    assert (await ask(llm=impatient(endpoint))).retries == []


async def test_what_is_there_at_once_is_taken_and_what_is_not_has_its_time_and_hears_of_a_cancel():
    ended: list[str] = []

    async def work(seconds: float) -> str:
        try:
            await asyncio.sleep(0)
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return "done"

    async def at_once() -> str:
        return "there"

    clock = Clock(Timeouts(idle=0.05))
    assert await clock.event(at_once()) == "there"
    assert clock.spent == 0.0
    assert await clock.event(work(0.0)) == "done"
    with pytest.raises(ModelError, match="nothing new in 0"):
        await clock.event(work(60))
    waiting = asyncio.create_task(Clock(Timeouts()).event(work(60)))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ended == ["cancelled", "cancelled"]


async def test_pings_alone_are_believed_for_a_while_only(endpoint, ask):
    endpoint.play(stream(*[PING, 0.15] * 12, HANG, done=False), answer("Hi."))
    heard = await ask(llm=impatient(endpoint, pinged=0.4))
    assert heard.text == "Hi."
    assert "stalled" in heard.retries[0].reason


async def test_a_server_that_loads_its_model_is_waited_for_and_told_of_once(endpoint, ask):
    endpoint.play(*[respond(503, LOADING)] * 8, answer("Hi."))
    heard = await ask(llm=impatient(endpoint, load=60))
    assert heard.text == "Hi."
    [told] = heard.retries
    assert "Loading model" in told.reason
    assert "it is waited for, up to 60 s" in told.reason


async def test_a_server_that_does_not_finish_loading_is_given_up(endpoint, ask):
    endpoint.play(*[respond(503, LOADING)] * 200)
    with pytest.raises(ModelError, match="Loading model"):
        await ask(llm=impatient(endpoint, load=0.1))


async def test_where_nobody_listens_on_this_machine_it_is_waited_for_and_told_of_once(ask):
    llm = ChatCompletions("m-1", "http://127.0.0.1:9/v1", timeouts=Timeouts(load=0.3), retries=SOON)
    began = time.monotonic()
    told = await told_before_failing(llm, "is it running")
    assert time.monotonic() - began > 0.3
    assert len(told) == 1
    assert "waited for, up to 0.3 s" in told[0]


async def test_a_server_that_listens_is_given_longer_than_one_that_does_not(endpoint, ask):
    endpoint.play(*[respond(503, LOADING)] * 8, answer("Hi."))
    assert (await ask(llm=impatient(endpoint, load=60, listen=0))).text == "Hi."
    llm = ChatCompletions("m-1", "http://127.0.0.1:9/v1", timeouts=Timeouts(listen=0), retries=SOON)
    assert await told_before_failing(llm, "is it running") == []


async def test_a_host_elsewhere_keeps_its_quick_failure():
    llm = ChatCompletions("m-1", "http://nowhere.invalid/v1", retries=SOON)
    told = await told_before_failing(llm, "could not be reached")
    assert len(told) == 2
    assert "waited for" not in told[0]


async def told_before_failing(llm: LLM, error: str) -> list[str]:
    """What a person is told until there is an error."""
    told: list[str] = []

    async def listen() -> None:
        async for item in llm.stream(Request([user("hello")])):
            assert isinstance(item, Retrying)
            told.append(item.reason)

    with pytest.raises(ModelError, match=error):
        await listen()
    return told


QUOTA = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}
RETRY_INFO = {
    "error": {
        "code": 429,
        "message": "Resource exhausted",
        "status": "RESOURCE_EXHAUSTED",
        "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.2s"}],
    }
}
OTHER = {"error": {"message": "no"}}


@pytest.mark.parametrize(
    "status, body, headers, again",
    [
        (429, OTHER, {}, True),
        (429, OTHER, {"x_should_retry": "false"}, False),
        (400, OTHER, {"x_should_retry": "true"}, True),
        (409, OTHER, {}, True),
        (429, QUOTA, {}, False),
        (429, {"error": {"message": "Insufficient balance"}}, {}, False),
        (429, {"error": {"code": "1308", "message": "Usage limit reached"}}, {}, False),
        (400, {"error": {"message": "You have reached your spend limit"}}, {}, False),
        (402, OTHER, {}, False),
        (402, OTHER, {"retry_after": "0"}, True),
        (403, OTHER, {}, False),
    ],
)
async def test_a_request_is_sent_again_where_that_can_help(
    endpoint, ask, status: int, body: Any, headers: dict[str, str], again: bool
):
    endpoint.play(respond(status, body, **headers), answer("Hi."))
    if again:
        assert (await ask()).text == "Hi."
    else:
        with pytest.raises(ModelError):
            await ask()
    assert len(endpoint.requests) == 1 + again


@pytest.mark.parametrize("body", [RETRY_INFO, [RETRY_INFO]], ids=["object", "array"])
async def test_the_wait_that_google_asks_for_is_kept(endpoint, ask, body: Any):
    endpoint.play(respond(429, body), answer("Hi."))
    heard = await ask()
    assert heard.retries[0].delay >= 0.2


async def test_milliseconds_go_before_seconds(endpoint, ask):
    endpoint.play(respond(429, OTHER, retry_after_ms="150", retry_after="100"), answer("Hi."))
    assert 0.15 <= (await ask()).retries[0].delay < 1


async def test_a_router_says_what_the_provider_said(endpoint, ask):
    metadata = {"raw": '{"error": {"message": "tool_x is no tool"}}', "provider_name": "Azure"}
    error = {"message": "Provider returned error", "code": 400, "metadata": metadata}
    endpoint.play(respond(400, {"error": error}))
    with pytest.raises(ModelError, match="Provider returned error: Azure: tool_x is no tool"):
        await ask()


async def test_C13_an_error_inside_an_answer_shows_its_cause(endpoint, ask):
    error = {"code": 400, "message": "Provider returned error", "metadata": {"raw": "bad schema"}}
    endpoint.play(stream({"error": error, "choices": [{"delta": {}, "finish_reason": "error"}]}))
    with pytest.raises(ModelError, match="Provider returned error: bad schema"):
        await ask()


async def test_an_error_behind_the_reason_to_end_is_an_error(endpoint, ask):
    late = {"error": {"message": "the slot was lost", "code": 500}}
    endpoint.play(stream("Half", delta(finish="length"), late), answer("Half of it."))
    heard = await ask()
    assert heard.text == "Half of it."
    assert "the slot was lost" in heard.retries[0].reason


async def test_tokens_written_to_the_cache_are_counted(endpoint, ask):
    details = {"cached_tokens": 5, "cache_write_tokens": 70}
    usage = {"prompt_tokens": 100, "completion_tokens": 1, "prompt_tokens_details": details}
    endpoint.play(stream("Hi.", delta(finish="stop", usage=usage), END))
    used: Usage = (await ask()).completion.usage
    assert (used["cached_tokens"], used["cache_write_tokens"]) == (5, 70)
