"""The faults of an endpoint, by the ids that the project gives them."""

from __future__ import annotations

import asyncio
import json
import resource
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from crow.core.errors import ModelError
from crow.core.events import CallDelta, Retrying, TextDelta, ThoughtDelta
from crow.core.messages import tool_answer, user
from crow.core.ports.llm import Completion, Request
from crow.llm import ChatCompletions, Retries, Timeouts
from crow.llm.http.assembly import SEPARATOR, SHORTER
from crow.testing.endpoint import (
    CLOSE,
    END,
    HANG,
    RESET,
    USAGE,
    answer,
    begin,
    delta,
    event,
    piece,
    respond,
    stream,
)  # fmt: skip

KEY = "sk-secret-0123456789"
QUICK = Timeouts(connect=1, first_byte=2, idle=1, total=20, closing=0.3)
SOON = Retries(limit=3, base=0.01)


def calls(*entries: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return delta(tool_calls=list(entries), finish=finish)


def tool(
    arguments: Any = None, name: str | None = None, call_id: str | None = None, index: Any = 0
) -> dict[str, Any]:
    """A piece of a tool call; what is None is not there at all."""
    function = {"name": name, "arguments": arguments}
    entry: dict[str, Any] = {
        "function": {key: value for key, value in function.items() if value is not None},
        "id": call_id,
        "index": index,
    }
    return {key: value for key, value in entry.items() if value is not None}


def asked(heard: Any) -> list[tuple[str, str, dict[str, Any]]]:
    return [(call.id, call.name, call.args) for call in heard.completion.calls]


# L01, L02: rate limits


async def test_L01_a_rate_limit_is_waited_out_and_retry_after_is_the_least(endpoint, ask):
    endpoint.play(respond(429, {"error": {"message": "slow down"}}, retry_after=1), answer("Hi."))
    heard = await ask()
    first, second = endpoint.requests
    assert second.at - first.at >= 1
    assert isinstance(heard.items[0], Retrying)
    assert heard.items[0].delay >= 1
    assert "slow down" in heard.items[0].reason
    assert heard.completion.text == heard.text == "Hi."
    assert second.body == first.body


async def test_L01_a_small_retry_after_does_not_burn_the_attempts(endpoint):
    retries = Retries(limit=4, base=8)
    assert [retries.delay(limited(0.001), 1) for _ in range(50)] != [0.001] * 50
    assert max(retries.delay(limited(0.001), 3) or 0 for _ in range(200)) > 8


def limited(seconds: float) -> ModelError:
    return ModelError("slow down", kind="rate_limit", retry_after=seconds)


async def test_L01_cancelling_ends_the_wait_at_once(endpoint, model):
    endpoint.play(respond(429, {}, retry_after=60))
    items = model.stream(Request([user("hello")]))
    assert isinstance(await anext(items), Retrying)
    waiting = asyncio.ensure_future(anext(items))
    await asyncio.sleep(0)
    await cancel_at_once(waiting)


async def test_L02_retry_after_as_a_date_is_understood(endpoint):
    llm = ChatCompletions("m-1", endpoint.url, retries=SOON)
    moment = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    endpoint.play(respond(503, {}, retry_after=moment))
    items = llm.stream(Request([user("hello")]))
    retrying = await anext(items)
    await items.aclose()
    assert isinstance(retrying, Retrying)
    assert 30 < retrying.delay <= 100


@pytest.mark.parametrize("garbage", ["soon", "-5", "nan", "inf", "", "Mon, 99 Foo 2026"])
async def test_L02_garbage_in_retry_after_means_the_own_backoff(endpoint, ask, garbage):
    endpoint.play(respond(429, {}, retry_after=garbage), answer("Hi."))
    heard = await ask()
    assert heard.retries[0].delay <= 0.01


async def test_L02_a_retry_after_in_milliseconds_is_understood(endpoint, ask):
    endpoint.play(respond(429, {}, retry_after_ms=200), answer("Hi."))
    heard = await ask()
    assert 0.2 <= heard.retries[0].delay < 0.3


async def test_L02_a_day_of_waiting_fails_at_once(endpoint, ask):
    endpoint.play(respond(429, {"error": {"message": "come back tomorrow"}}, retry_after=86400))
    with pytest.raises(ModelError, match="come back tomorrow") as caught:
        await ask()
    assert caught.value.kind == "rate_limit"
    assert caught.value.retry_after == 86400
    assert len(endpoint.requests) == 1


# L03, L04, L05: status codes


@pytest.mark.parametrize(
    "status, kind", [(500, "server"), (502, "server"), (503, "overloaded"), (529, "overloaded")]
)
async def test_L03_a_failing_server_is_retried_so_often_and_the_next_request_works(
    endpoint, ask, status, kind
):
    endpoint.play(*[respond(status, {"error": "down"})] * 4, answer("Back."))
    with pytest.raises(ModelError, match=f"m-1 at .*HTTP {status}: down") as caught:
        await ask()
    assert (caught.value.kind, caught.value.status) == (kind, status)
    assert len(endpoint.requests) == 4
    assert (await ask()).text == "Back."


@pytest.mark.parametrize(
    "status, body, kind",
    [
        (401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}, "authentication"),
        (403, {"detail": "not yours"}, "authentication"),
        (404, {"error": {"message": "The model `m-1` does not exist"}}, "model_not_found"),
        (400, {"error": {"message": "Unknown model: m-1"}}, "model_not_found"),
        (402, {"message": "no credit"}, "billing"),
        (429, {"error": {"code": "insufficient_quota", "message": "quota"}}, "billing"),
        (400, [{"error": {"message": "bad schema"}}], "invalid_request"),
        (418, "I am a teapot", "invalid_request"),
        (307, "", "invalid_request"),
    ],
)
async def test_L04_what_cannot_get_better_is_not_retried_and_the_key_is_not_told(
    endpoint, ask, status, body, kind
):
    endpoint.play(respond(status, body))
    with pytest.raises(ModelError) as caught:
        await ask()
    assert caught.value.kind == kind
    assert "m-1" in str(caught.value)
    assert endpoint.url in str(caught.value)
    assert KEY not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    "status, body",
    [
        (400, {"error": {"code": "context_length_exceeded", "message": "too long"}}),
        (400, {"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}}),
        (400, {"error": {"type": "exceed_context_size_error", "message": "the request exceeds"}}),
        (400, {"error": "This model's maximum context length is 8192 tokens."}),
        (413, "Payload Too Large"),
        (500, {"error": {"message": "context window is full"}}),
    ],
)
async def test_L05_a_context_that_is_too_long_is_told_apart(endpoint, ask, status, body):
    endpoint.play(*[respond(status, body)] * 4)
    with pytest.raises(ModelError) as caught:
        await ask()
    assert caught.value.kind == "context_length"
    assert len(endpoint.requests) == 1


# L06, L07: broken connections


@pytest.mark.parametrize(
    "start",
    [[RESET], [CLOSE], [b"HTTP/1.1 200 OK\r\ncontent-ty", RESET], [b"HTTP/1.1 20", CLOSE]],
    ids=["reset", "close", "reset inside headers", "close inside headers"],
)
async def test_L06_a_reset_before_headers_is_retried(endpoint, ask, start):
    endpoint.play(start, answer("Hi."))
    heard = await ask()
    assert heard.text == "Hi."
    assert len(heard.retries) == 1


async def test_L06_an_endpoint_that_is_not_there_is_told_after_few_attempts(endpoint, ask):
    llm = ChatCompletions("m-1", "http://127.0.0.1:9/v1", timeouts=Timeouts(load=0), retries=SOON)
    with pytest.raises(ModelError, match=r"could not be reached.*is it running") as caught:
        await ask(llm=llm)
    assert caught.value.kind == "network"


@pytest.mark.parametrize("end", [RESET, CLOSE], ids=["reset", "close"])
async def test_L07_text_that_broke_off_is_not_shown_twice(endpoint, ask, end):
    broken = stream("Hel", "lo wo", end, done=False)
    endpoint.play(broken, answer("Hello world, again."))
    heard = await ask()
    assert heard.text == heard.completion.text == "Hello world, again."
    assert len(heard.retries) == 1


async def test_L07_the_end_of_the_body_without_a_reason_is_no_end_of_the_answer(endpoint, ask):
    endpoint.play(stream("Half", END, done=False), answer("Half and whole."))
    heard = await ask()
    assert heard.text == heard.completion.text == "Half and whole."


async def test_L07_an_answer_that_goes_another_way_says_so(endpoint, ask):
    endpoint.play(
        stream(delta(reasoning="Let me think"), "Hello wor", CLOSE, done=False),
        stream(delta(reasoning="Let us see"), "Hello there", CLOSE, done=False),
        stream(delta(reasoning="Let us see."), "Hello there!", delta(finish="stop")),
    )
    heard = await ask()
    assert heard.text == f"Hello wor{SEPARATOR}there!"
    thought = "".join(item.text for item in heard.items if isinstance(item, ThoughtDelta))
    assert thought == f"Let me think{SEPARATOR}us see."
    assert heard.completion.text == "Hello there!"
    assert heard.completion.reasoning == "Let us see."


async def test_L07_an_answer_that_ends_before_what_was_shown_says_so(endpoint, ask):
    endpoint.play(stream("Hello world", CLOSE, done=False), answer("Hello"))
    heard = await ask()
    assert heard.text == f"Hello world{SHORTER}"
    assert heard.completion.text == "Hello"


async def test_L07_a_call_that_broke_off_keeps_its_id_and_is_not_shown_twice(endpoint, ask):
    endpoint.play(
        stream(calls(tool('{"a": ', "Read", "x1")), RESET, done=False),
        stream(calls(tool('{"a"', "Read", "y1")), calls(tool(": 1}")), delta(finish="tool_calls")),
    )
    heard = await ask()
    shown = [item for item in heard.items if isinstance(item, CallDelta)]
    assert {item.call_id for item in shown} == {"x1"}
    assert "".join(item.text for item in shown) == '{"a": 1}'
    assert asked(heard) == [("x1", "Read", {"a": 1})]


async def test_L07_other_calls_in_the_new_answer_get_ids_of_their_own(endpoint, ask):
    endpoint.play(
        stream(calls(tool('{"a": 1', "Read", "x1")), CLOSE, done=False),
        stream(calls(tool('{"b": 2}', "Bash", "x1")), delta(finish="tool_calls")),
    )
    assert asked(await ask()) == [("x1", "Bash", {"b": 2})]


async def test_L07_endless_breaks_end(endpoint, ask):
    endpoint.play(*[stream("Hello", CLOSE, done=False)] * 4)
    with pytest.raises(ModelError, match=r"middle of its answer|broke the connection") as caught:
        await ask()
    assert caught.value.kind == "network"
    assert len(endpoint.requests) == 4


# L08: what is no stream


@pytest.mark.parametrize(
    "response, said",
    [
        (stream(b'data: {"choices": [{"del', END, done=False), 'not JSON: {"choices'),
        (stream(b"data: {nonsense}\n\n", done=False), "not JSON: {nonsense}"),
        (respond(200, "<html>\n<h1>Sign in</h1>", content_type="text/html"), "(text/html): <html>"),
        (respond(200, ""), "empty answer"),
        (stream(), "empty answer"),
        (stream({"choices": []}), "empty answer"),
        (respond(200, "[1, 2]"), "no chat completion"),
        (respond(200, "x" * 1000), "x" * 190),
        ([b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\n\r\nabc"], "decoded"),
    ],
)
async def test_L08_what_is_no_stream_is_retried_and_quoted(endpoint, ask, response, said):
    endpoint.play(*[response] * 4)
    with pytest.raises(ModelError) as caught:
        await ask()
    assert caught.value.kind == "protocol"
    assert said in str(caught.value)
    assert len(str(caught.value).encode()) < 400
    assert len(endpoint.requests) == 4


async def test_L08_after_a_protocol_fault_the_next_attempt_counts(endpoint, ask):
    endpoint.play(stream("Hel", b"data: {broken\n\n"), answer("Hello."))
    assert (await ask()).text == "Hello."


async def test_L08_nesting_without_end_is_no_crash(endpoint, ask):
    deep = b'data: {"a":' + b"[" * 100_000 + b"\n\n"
    endpoint.play(stream(deep), answer("Hello."))
    assert (await ask()).text == "Hello."


# L09: dialects


async def test_L09_bytes_split_anywhere_are_put_together(endpoint, ask):
    said = "Zürich — 日本語 \U0001f426‍⬛ e\u0301"
    raw = event(delta(content=said)).decode().encode()
    text = json.dumps(delta(content=said), ensure_ascii=False)
    raw = f"data: {text}\r\n\r\n: keep-alive\r\n\r\n".encode()
    pieces = [raw[i : i + 1] for i in range(len(raw))]
    endpoint.play(stream(*pieces, delta(finish="stop"), USAGE))
    assert (await ask()).completion.text == said


@pytest.mark.parametrize(
    "tail",
    [
        [delta(finish="stop"), USAGE, END],
        [delta(finish="stop"), END],
        [delta(finish="stop"), CLOSE],
        [delta(finish="stop"), RESET],
        [delta(finish="stop"), HANG],
        [delta(finish="stop"), USAGE, HANG],
        [delta(finish="stop"), b"data: [DONE]\n\n", HANG],
        [b"data: [DONE]\n\n", HANG],
        [delta(finish="stop", usage=USAGE["usage"]), HANG],
        [b"data: " + json.dumps(delta(finish="stop")).encode(), END],
    ],
    ids=str,
)
async def test_L09_a_stream_may_end_in_many_ways(endpoint, ask, tail):
    endpoint.play(stream("Hi", *tail, done=False))
    heard = await ask()
    assert heard.completion.text == "Hi"
    assert heard.retries == []


async def test_L09_empty_choices_and_deltas_are_no_harm(endpoint, ask):
    odd = [
        {"choices": []},
        {"choices": None},
        {"choices": [{"index": 0, "delta": None}]},
        {"choices": [{"index": 0}]},
        {"choices": [None]},
        {"choices": "x"},
        {"choices": [{"index": 0, "delta": {"content": None, "tool_calls": None}}]},
        {"id": "x", "error": None, "usage": None},
        b"event: ping\ndata: \n\nid: 7\nretry: 10\n\n",
        b"data: 17\n\n",
    ]
    endpoint.play(stream(*odd, "Hi", *odd, delta(finish="stop"), *odd))
    assert (await ask()).completion == Completion(text="Hi", model="scripted")


@pytest.mark.parametrize(
    "raw",
    [
        b'\xef\xbb\xbfdata: {"choices":[{"delta":{"content":"Hi"}}]}\n\n',
        b'data:{"choices":[{"delta":{"content":"Hi"}}]}\n',
        b'data: {"choices":\ndata: [{"delta":{"content":"Hi"}}]}\n\n',
        b'data:   {"choices":[{"index":null,"delta":{"content":"Hi"}}]}  \r\n\r\n',
        b'event: message\ndata: {"choices":[{"delta":{"content":[{"type":"text","text":"Hi"}]}}]}\n\n',
    ],
)
async def test_L09_events_are_read_however_they_are_written(endpoint, ask, raw):
    endpoint.play(stream(raw, delta(finish="stop")))
    assert (await ask()).completion.text == "Hi"


async def test_L09_only_the_first_choice_counts(endpoint, ask):
    def choice(index: int, text: str) -> dict[str, Any]:
        return {"index": index, "delta": {"content": text}}

    both = {"choices": [choice(1, "no"), choice(0, "yes")]}
    other = {"choices": [choice(1, "no")]}
    endpoint.play(stream(both, other, delta(finish="stop")))
    assert (await ask()).completion.text == "yes"


@pytest.mark.parametrize("kind", ["application/json", "text/plain"])
async def test_L09_an_answer_in_one_piece_of_json_is_taken(endpoint, ask, kind):
    message = {"role": "assistant", "content": "Hi", "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "Read", "arguments": "{}"}},
        {"id": "b", "type": "function", "function": {"name": "Read", "arguments": "{}"}},
    ]}  # fmt: skip
    body = {
        "choices": [{"message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 1},
    }
    endpoint.play(respond(200, json.dumps(body, indent=1), content_type=kind))
    heard = await ask()
    assert heard.completion.text == heard.text == "Hi"
    assert asked(heard) == [("a", "Read", {}), ("b", "Read", {})]
    assert heard.completion.usage == {"input_tokens": 1, "output_tokens": 0, "total_tokens": 1}


# L10: errors inside the stream


@pytest.mark.parametrize(
    "error, kind",
    [
        ({"error": {"message": "Overloaded", "code": 529}}, "overloaded"),
        ({"error": {"message": "provider went away", "code": "502"}}, "server"),
        ({"error": "rate limit reached"}, "rate_limit"),
        ({"type": "error", "message": "out of memory"}, "server"),
        ({"object": "error", "message": "maximum context length is 10 tokens", "code": 400}, "context_length"),
        (b'event: error\ndata: {"message": "it broke"}\n\n', "server"),
        (b"event: error\ndata: it broke\n\n", "protocol"),
        (delta(finish="error"), "server"),
        ({"choices": [{"delta": {}, "finish_reason": "error"}], "error": {"message": "x", "code": 503}}, "overloaded"),
    ],
    ids=str,
)  # fmt: skip
async def test_L10_an_error_in_the_stream_is_acted_on_while_the_socket_is_open(
    endpoint, ask, error, kind
):
    endpoint.play(*[stream("Hi", error, HANG, done=False)] * 4)
    with pytest.raises(ModelError) as caught:
        await ask()
    assert caught.value.kind == kind
    assert "idle" not in str(caught.value)


async def test_L10_after_an_error_in_the_stream_the_request_is_sent_again(endpoint, ask):
    endpoint.play(stream("Hel", {"error": {"code": 503}}, HANG, done=False), answer("Hello."))
    heard = await ask()
    assert heard.text == "Hello."
    assert [retry.attempt for retry in heard.retries] == [1]


# L11: stalls


ONCE = Retries(limit=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "response, said",
    [
        ([HANG], "no response"),
        ([b"HTTP/1.1 200 OK\r\n", HANG], "no response"),
        (stream(HANG, done=False), "nothing new in 0.3 s"),
        (stream("Hi", HANG, done=False), "nothing new in 0.3 s"),
        (stream("Hi", *[b": still here\n\n", 0.1] * 30, done=False), "nothing new in 0.3 s"),
        (stream("Hi", *[delta(content=""), 0.1] * 30, done=False), "nothing new in 0.3 s"),
        (stream(*[b"d", 0.1] * 30, done=False), "nothing new in 0.3 s"),
    ],
    ids=["no headers", "half headers", "no event", "after an event", "comments", "empty", "bytes"],
)
async def test_L11_a_stall_is_noticed_by_what_it_says_not_by_its_bytes(
    endpoint, ask, response, said
):
    first_byte = 0.3 if said == "no response" else 30
    times = Timeouts(connect=30, first_byte=first_byte, idle=0.3, total=3600)
    llm = ChatCompletions("m-1", endpoint.url, timeouts=times, retries=ONCE)
    endpoint.play(response)
    with pytest.raises(ModelError, match=said) as caught:
        await ask(llm=llm)
    assert caught.value.kind == "timeout"


async def test_L11_a_header_a_while_is_no_response(endpoint, ask):
    times = Timeouts(connect=0.2, first_byte=0.3, idle=0.3, total=10)
    llm = ChatCompletions("m-1", endpoint.url, timeouts=times, retries=ONCE)
    endpoint.play([b"HTTP/1.1 200 OK\r\n", *[b"x-more: yes\r\n", 0.1] * 30])
    with pytest.raises(ModelError, match=r"no response in 0\.5 s"):
        await ask(llm=llm)


@pytest.mark.slow
async def test_L11_a_stall_is_retried(endpoint, ask):
    times = Timeouts(first_byte=0.5, idle=0.5)
    llm = ChatCompletions("m-1", endpoint.url, timeouts=times, retries=SOON)
    endpoint.play([HANG], stream("Hel", HANG, done=False), answer("Hello."))
    heard = await ask(llm=llm)
    assert heard.text == "Hello."
    assert len(heard.retries) == 2


async def test_L11_a_slow_but_steady_answer_is_waited_for(endpoint, ask):
    times = Timeouts(idle=1)
    llm = ChatCompletions("m-1", endpoint.url, timeouts=times, retries=ONCE)
    endpoint.play(stream(*["a", 0.2] * 6, delta(finish="stop")))
    assert (await ask(llm=llm)).text == "a" * 6


async def test_L11_all_attempts_together_have_a_ceiling(endpoint, ask):
    times = Timeouts(idle=0.3, total=0.5)
    llm = ChatCompletions("m-1", endpoint.url, timeouts=times, retries=Retries(limit=50, base=0.01))
    endpoint.play(*[stream(HANG, done=False)] * 50)
    with pytest.raises(ModelError, match=r"longer than 0\.5 s in total"):
        await ask(llm=llm)
    assert len(endpoint.requests) <= 2


async def test_L11_the_ceiling_ends_an_answer_without_end(endpoint, ask):
    times = Timeouts(idle=30, total=0.5)
    llm = ChatCompletions("m-1", endpoint.url, timeouts=times, retries=SOON)
    endpoint.play(stream(*["a", 0.05] * 100))
    with pytest.raises(ModelError, match=r"longer than 0\.5 s in total"):
        await ask(llm=llm)


async def test_L11_the_ceiling_ends_the_wait_between_attempts(endpoint, ask):
    times = Timeouts(total=0.3)
    llm = ChatCompletions("m-1", endpoint.url, timeouts=times, retries=SOON)
    endpoint.play(respond(429, {}, retry_after=60))
    with pytest.raises(ModelError, match=r"longer than 0\.3 s in total"):
        await ask(llm=llm)


async def test_L11_what_the_reader_takes_is_not_the_endpoint_s_fault(endpoint):
    times = Timeouts(idle=1, total=1)
    llm = ChatCompletions("m-1", endpoint.url, timeouts=times, retries=ONCE)
    endpoint.play(stream("a", 0.01, "b", 0.01, "c", delta(finish="stop")))
    said = ""
    async for item in llm.stream(Request([user("hello")])):
        await asyncio.sleep(0 if said else 1.2)
        said += item.text if isinstance(item, TextDelta) else ""
    assert said == "abc"


async def test_L11_cancelling_the_wait_for_headers_is_immediate_and_hangs_up(endpoint, ask):
    endpoint.play([HANG])
    task = asyncio.create_task(ask())
    await endpoint.asked.wait()
    await cancel_at_once(task)
    await asyncio.wait_for(endpoint.hung_up.wait(), 30)


async def test_L11_cancelling_a_stall_is_immediate_and_hangs_up(endpoint, model):
    endpoint.play(stream("Hi", HANG, done=False))
    items = model.stream(Request([user("hello")]))
    assert await anext(items) == TextDelta("Hi")
    task = asyncio.ensure_future(anext(items))
    await asyncio.sleep(0)
    await cancel_at_once(task)
    await asyncio.wait_for(endpoint.hung_up.wait(), 30)


async def cancel_at_once(task: asyncio.Future[Any]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(30):
            await task


async def test_L11_closing_the_iterator_hangs_up(endpoint, model):
    endpoint.play(stream("Hi", HANG, done=False))
    items = model.stream(Request([user("hello")]))
    assert await anext(items) == TextDelta("Hi")
    await items.aclose()
    await asyncio.wait_for(endpoint.hung_up.wait(), 30)


# L12: too much


async def test_L12_an_endless_answer_is_cut_off_and_hung_up_on(endpoint, ask):
    llm = ChatCompletions("m-1", endpoint.url, timeouts=QUICK, retries=ONCE, max_output=10_000)
    endpoint.play(stream(*["word " * 100] * 50, HANG, done=False))
    heard = await ask(llm=llm)
    assert heard.completion.finish == "length"
    assert 10_000 < len(heard.completion.text) <= 25_000
    await asyncio.wait_for(endpoint.hung_up.wait(), 30)


async def test_L12_endless_arguments_are_cut_off_and_not_executed(endpoint, ask):
    llm = ChatCompletions("m-1", endpoint.url, timeouts=QUICK, retries=ONCE, max_output=1000)
    head = calls(tool('{"a": "', "Write", "c1"))
    endpoint.play(stream(head, *[calls(tool("x" * 100))] * 20, HANG, done=False))
    heard = await ask(llm=llm)
    (call,) = heard.completion.calls
    assert "cut off" in call.fault
    assert call.as_message_part()["function"]["arguments"] == "{}"


async def test_L12_an_event_without_end_does_not_fill_the_memory(endpoint, ask, model):
    endpoint.play(stream(b'data: {"x": "', *[b"x" * 1_000_000] * 40, HANG, done=False))
    llm = ChatCompletions("m-1", endpoint.url, timeouts=Timeouts(idle=30), retries=ONCE)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ModelError, match="event of more than"):
        await ask(llm=llm)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024 * 3


async def test_L12_a_slow_reader_slows_the_endpoint_down(endpoint, model):
    words = 4000
    endpoint.play(stream(*["x" * 10_000] * words, delta(finish="stop")))
    items = model.stream(Request([user("hello")]))
    await anext(items)
    await asyncio.sleep(0.3)
    assert endpoint.sent < words * 10_000 * 0.8
    await items.aclose()


# L13 - L17: tool calls


@pytest.mark.parametrize("finish", ["length", "max_tokens", "content_filter"])
async def test_L13_a_reply_that_was_cut_off_executes_nothing(endpoint, ask, finish):
    whole, half = tool('{"a": 1}', "Read", "c1"), tool('{"b": ', "Write", "c2", 1)
    endpoint.play(stream(calls(whole), calls(half), delta(finish=finish)))
    heard = await ask()
    assert len(heard.completion.calls) == 2
    assert all("cut off" in call.fault for call in heard.completion.calls)


async def test_L13_a_router_that_lies_about_a_partial_call_executes_nothing(endpoint, ask):
    endpoint.play(stream(calls(tool('{"b": "rm', "Bash", "c1")), delta(finish="tool_calls")))
    (call,) = (await ask()).completion.calls
    assert "not valid JSON" in call.fault
    assert call.args == {}
    assert call.raw == '{"b": "rm'


async def test_L13_a_stream_cut_after_arguments_that_look_complete_executes_nothing(endpoint, ask):
    endpoint.play(*[stream(calls(tool('{"a": 1}', "Bash", "c1")), CLOSE, done=False)] * 4)
    with pytest.raises(ModelError):
        await ask()


@pytest.mark.parametrize(
    "arguments, said",
    [
        ("nonsense", "not valid JSON"),
        ("[1, 2]", "must be one JSON object"),
        ('"text"', "not valid JSON"),
        ("null", "must be one JSON object"),
        ('{"a": NaN}', "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
async def test_L14_arguments_that_are_no_object_are_a_fault(endpoint, ask, arguments, said):
    endpoint.play(stream(calls(tool(arguments, "Read", "c1")), delta(finish="tool_calls")))
    (call,) = (await ask()).completion.calls
    assert said in call.fault
    assert call.as_message_part()["function"]["arguments"] == "{}"


@pytest.mark.parametrize(
    "pieces",
    [
        ['{"a": "b\\n"}'],
        ["{", '"a"', ": ", '"b\\', 'n"', "}"],
        [{"a": "b\n"}],
        ['{"a": "b\n"}'],
        ['"{\\"a\\": \\"b\\\\n\\"}"'],
    ],
    ids=["one piece", "many", "object", "raw newline", "encoded twice"],
)
async def test_L14_arguments_come_in_many_forms(endpoint, ask, pieces):
    first, *rest = pieces
    events = [calls(tool(first, "Read", "c1")), *(calls(tool(piece)) for piece in rest)]
    endpoint.play(stream(*events, delta(finish="tool_calls")))
    heard = await ask()
    (call,) = heard.completion.calls
    assert (call.args, call.fault) == ({"a": "b\n"}, None)
    assert json.loads(call.raw) == {"a": "b\n"}


@pytest.mark.parametrize("arguments", [None, "", " ", "{}"])
async def test_L14_no_arguments_are_an_empty_object(endpoint, ask, arguments):
    endpoint.play(stream(calls(tool(arguments, "Now", "c1")), delta(finish="tool_calls")))
    heard = await ask()
    assert asked(heard) == [("c1", "Now", {})]
    assert [item.call_id for item in heard.items if isinstance(item, CallDelta)] == ["c1"]
    assert heard.completion.calls[0].as_message_part()["function"]["arguments"].strip() == "{}"


GLUED = {
    "by index": [tool("{", "A", "x"), tool("{", "B", "y", 1), tool("}", index=1), tool("}")],
    "same index, other ids": [tool("{}", "A", "x"), tool("{}", "B", "y")],
    "same index, other ids, pieces": [
        tool("{", "A", "x"), tool("}"), tool("", "B", "y"), tool("{}"),
    ],
    "no index, ids": [tool("{}", "A", "x", None), tool("{}", "B", "y", None)],
    "no index, ids repeated": [
        tool("{", "A", "x", None), tool("}", None, "x", None), tool("{}", "B", "y", None),
    ],
    "no index, pieces": [
        tool("", "A", "x", None), tool("{}", None, None, None), tool("", "B", "y", None),
        tool("{", None, None, None), tool("}", None, None, None),
    ],
    "name in every piece": [
        tool("{", "A", "x"), tool("}", "A", "x"), tool("{", "B", "y", 1), tool("}", "B", "y", 1),
    ],
    "whole call repeated": [
        tool("{}", "A", "x"), tool("{}", "B", "y", 1), tool("{}", "A", "x"), tool("{}", "B", "y", 1),
    ],
    "index as text": [tool("{}", "A", "x", "0"), tool("{", "B", "y", "1"), tool("}", index="1")],
    "another id in every piece": [tool("{", "A", "x"), tool("}", None, "z"), tool("{}", "B", "y", 1)],
    "id before name": [tool(None, None, "x"), tool("{}", "A"), tool("{}", "B", "y", 1)],
    "name in pieces": [tool("", "A", "x"), tool("", "B", "y", 1), tool("{}"), tool("{}", index=1)],
}  # fmt: skip


@pytest.mark.parametrize("pieces", GLUED.values(), ids=GLUED)
@pytest.mark.parametrize("together", [False, True], ids=["apart", "together"])
async def test_L16_every_call_comes_out_once(endpoint, ask, pieces, together):
    events = [calls(*pieces)] if together else [calls(each) for each in pieces]
    endpoint.play(stream(*events, delta(finish="tool_calls")))
    assert asked(await ask()) == [("x", "A", {}), ("y", "B", {})]


@pytest.mark.parametrize("given", [None, ""])
@pytest.mark.parametrize("index", [0, None])
async def test_L16_calls_without_ids_get_ids_that_are_always_the_same(endpoint, ask, given, index):
    same = [tool('{"a": 1}', "A", given, index), tool('{"b": 2}', "A", given, index)]
    heard = []
    for events in ([calls(*same)], [calls(each) for each in same]):
        endpoint.play(stream(*events, delta(finish="tool_calls")))
        heard.append(await ask())
        shown = [item for item in heard[-1].items if isinstance(item, CallDelta)]
        assert [item.call_id for item in shown] == ["call00001", "call00002"]
    assert asked(heard[0]) == asked(heard[1])
    assert asked(heard[0]) == [("call00001", "A", {"a": 1}), ("call00002", "A", {"b": 2})]


async def test_L16_two_calls_with_one_id_get_two(endpoint, ask):
    twins = [tool('{"a": 1}', "A", "x", 0), tool('{"a": 1}', "A", "x", 1)]
    endpoint.play(stream(*map(calls, twins), delta(finish="tool_calls")))
    ids = [call_id for call_id, _, _ in asked(await ask())]
    assert ids == ["x", "call00002"]


async def test_L16_an_id_of_an_earlier_turn_is_not_used_again(endpoint, ask):
    call = {"id": "call_0", "type": "function", "function": {"name": "A", "arguments": "{}"}}
    history = [
        user("go"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        tool_answer("call_0", "ok"),
    ]
    endpoint.play(stream(calls(tool("{}", "A", "call_0")), delta(finish="tool_calls")))
    heard = await ask(*history)
    assert asked(heard) == [("call00002", "A", {})]


async def test_L17_calls_count_whatever_the_reason_to_end(endpoint, ask):
    endpoint.play(stream(calls(tool("{}", "A", "x")), delta(finish="stop")))
    heard = await ask()
    assert asked(heard) == [("x", "A", {})]
    assert heard.completion.calls[0].fault is None


async def test_L17_the_old_function_call_is_a_call(endpoint, ask):
    parts = [delta(function_call={"name": "A", "arguments": '{"a":'})]
    parts += [delta(function_call={"arguments": " 1}"}), delta(finish="function_call")]
    endpoint.play(stream(*parts))
    heard = await ask()
    assert asked(heard) == [("call00001", "A", {"a": 1})]
    assert heard.completion.finish == "tool_calls"


# L18, L19: odd content


@pytest.mark.parametrize(
    "events",
    [
        ["No.", delta(finish="content_filter")],
        [delta(refusal="No."), delta(finish="stop")],
        ["No.", delta(finish="refusal")],
    ],
)
async def test_L18_a_refusal_is_told_as_one(endpoint, ask, events):
    endpoint.play(stream(*events))
    completion = (await ask()).completion
    assert (completion.text, completion.finish) == ("No.", "content_filter")


async def test_L18_an_empty_message_is_none_for_the_history(endpoint, ask):
    endpoint.play(stream(delta(role="assistant", content=""), delta(finish="stop"), USAGE))
    assert (await ask()).completion.message() is None


async def test_L19_half_a_surrogate_pair_never_comes_out(endpoint, ask):
    raw = [
        rb'data: {"choices":[{"delta":{"content":"a\ud83d"}}]}' + b"\n\n",
        rb'data: {"choices":[{"delta":{"content":"\ude00b \udc00 \u0000"}}]}' + b"\n\n",
        rb'data: {"choices":[{"delta":{"content":"c\ud83d"}}]}' + b"\n\n",
    ]
    endpoint.play(stream(*raw, delta(finish="stop")))
    heard = await ask()
    assert heard.completion.text == heard.text == "a😀b � �c�"


async def test_L19_half_a_surrogate_pair_in_arguments_never_comes_out(endpoint, ask):
    arguments = '{"a": "x\\ud800\\u0000", "b\\udc00": ["\\ud83d\\ude00"]}'
    endpoint.play(stream(calls(tool(arguments, "A", "x\0")), delta(finish="tool_calls")))
    heard = await ask()
    assert asked(heard) == [("x�", "A", {"a": "x��", "b�": ["😀"]})]
    assert json.loads(heard.completion.calls[0].raw) == heard.completion.calls[0].args


async def test_L19_what_is_sent_is_clean_too(endpoint, ask):
    endpoint.play(answer("Hi."))
    await ask(user("a\ud800b\0c"), user("a\\u0000b"), user("a\ud83d\ude00b"), user("\0"))
    sent = [message["content"] for message in endpoint.requests[0].body["messages"]]
    assert sent == ["a�b�c", "a\\u0000b", "a😀b", "�"]


async def test_L19_two_megabytes_in_one_chunk_come_through(endpoint, ask):
    said = "ü" * 1_000_000
    endpoint.play(stream(said, delta(finish="stop")))
    assert (await ask()).completion.text == said


async def test_L19_events_of_two_megabytes_in_small_packets_come_through(endpoint, ask):
    raw = event(delta(content="x" * 2_000_000))
    pieces = [raw[i : i + 1400] for i in range(0, len(raw), 1400)]
    endpoint.play([begin(), *map(piece, pieces), piece(event(delta(finish="stop"))), END])
    assert len((await ask()).completion.text) == 2_000_000
