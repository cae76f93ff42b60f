"""What a request carries, and how connections are used."""

from __future__ import annotations

import asyncio
import copy
import subprocess
import sys
from typing import Any

import pytest

from crow.core.errors import ModelError
from crow.core.events import CallDelta, TextDelta
from crow.core.messages import tool_answer, user
from crow.core.ports.llm import Request
from crow.llm import ChatCompletions, HttpModel, Retries, Timeouts
from crow.llm.chat import ChatWire
from crow.llm.http import NO_RETRIES
from crow.llm.http.request_format import RequestFormat
from crow.testing import Endpoint
from crow.testing.endpoint import (
    HANG,
    USAGE,
    answer,
    begin,
    delta,
    event,
    piece,
    respond,
    stream,
)  # fmt: skip

TOOL: Any = {
    "type": "function",
    "function": {"name": "Read", "description": "Reads.", "parameters": {"type": "object"}},
}
IMAGE: Any = user(
    [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]
)


async def test_a_request_carries_model_messages_tools_and_parameters(endpoint: Endpoint, ask: Any):
    llm = ChatCompletions(
        "m-1",
        f"{endpoint.url}/",
        params={"temperature": 0, "top_p": 1},
        headers={"X-Title": "crow"},
        cache_key="prompt_cache_key",
    )
    endpoint.play(answer("Hi."), answer("Hi."))
    await ask(IMAGE, llm=llm, tools=[TOOL], params={"temperature": 1}, session_id="s-1")
    await ask(llm=llm, model="m-2")
    first, second = endpoint.requests
    assert first.body == {
        "model": "m-1",
        "stream": True,
        "stream_options": {"include_usage": True},
        "prompt_cache_key": "s-1",
        "temperature": 1,
        "top_p": 1,
        "tools": [TOOL],
        "messages": [IMAGE],
    }
    assert first.headers["x-title"] == "crow"
    assert first.path == "/v1/chat/completions"
    assert second.body["model"] == "m-2"
    assert "prompt_cache_key" not in second.body
    assert "tools" not in second.body
    assert repr(llm) == f"ChatCompletions('m-1', '{endpoint.url}')"


async def test_megabytes_arrive_letter_by_letter_beside_other_conversations(
    endpoint: Endpoint, ask: Any, model: HttpModel
) -> None:
    """What is long is written in slices and in a thread, and what was written before is known."""
    long = 'ä "quoted" line\n 😀' * 60_000
    torn = "a" * 65_535 + "\ud83d\ude00" * 40_000 + "\ud83d"  # a pair would be cut in two
    parts: Any = user([{"type": "text", "text": long}, {"type": "text", "text": "short"}])
    endpoint.play(*[answer("Hi.")] * 6)
    wanted: list[Any] = [user(long), parts, user(torn)]
    await asyncio.gather(
        *(ask(each, llm=model, session_id=f"s-{at}") for at, each in enumerate(wanted)),
        *(ask(user(name), llm=model, session_id=name) for name in ("one", "two")),
    )
    await ask(wanted[0], user("and?"), llm=model, session_id="s-0")
    sent = [each.body["messages"] for each in endpoint.requests]
    sound = user("a" * 65_535 + "😀" * 40_000 + "\ufffd")
    first = [[user(long)], [parts], [sound], [user("one")], [user("two")]]
    assert all(each in sent[:5] for each in first)
    assert sent[5] == [user(long), user("and?")]


async def test_the_conversation_arrives_as_it_is_turn_after_turn(endpoint: Endpoint, ask: Any):
    call = {"id": "c1", "type": "function", "function": {"name": "Read", "arguments": "{}"}}
    history: list[Any] = [{"role": "system", "content": "Be brief."}, user("Überall ‘quotes’ \t\n")]
    endpoint.play(*[answer("Hi.")] * 8)

    async def sent(**fields: Any) -> None:
        before = copy.deepcopy(history)
        await ask(*history, **fields)
        assert endpoint.requests[-1].body["messages"] == before
        assert endpoint.requests[-1].body["tools"] == [TOOL]

    await sent(tools=[TOOL], session_id="s")
    history += [{"role": "assistant", "content": None, "tool_calls": [call]}]
    history += [tool_answer("c1", "result")]
    await sent(tools=[copy.deepcopy(TOOL)], session_id="s")
    history[1]["content"] = "changed in place after all"
    call["function"]["arguments"] = '{"a": 1}'
    await sent(tools=[TOOL], session_id="s")
    history.insert(1, user("inserted"))
    await sent(tools=[TOOL], session_id="s")
    del history[2:]
    await sent(tools=[TOOL], session_id="s")
    history.clear()
    history.append(user("another conversation"))
    await sent(tools=[TOOL], session_id="t")
    await sent(tools=[TOOL], session_id="s")


async def test_reasoning_goes_back_only_where_it_is_wanted(endpoint: Endpoint, ask: Any):
    said: Any = {"role": "assistant", "content": "Hi.", "reasoning_content": "Hm."}
    endpoint.play(answer("Hi."), answer("Hi."))
    await ask(user("hello"), said)
    wants = ChatCompletions("m-1", endpoint.url, echo_reasoning=True)
    await ask(user("hello"), said, llm=wants)
    first, second = (request.body["messages"][1] for request in endpoint.requests)
    assert first == {"role": "assistant", "content": "Hi."}
    assert second == said


@pytest.mark.parametrize("status", [400, 422])
async def test_an_endpoint_that_knows_no_stream_options_is_asked_once_more_without(
    endpoint: Endpoint, ask: Any, status: int
):
    refusal = respond(status, {"error": {"message": "Unrecognized argument: stream_options"}})
    endpoint.play(refusal, answer("Hi."), answer("Again."))
    heard = await ask()
    assert heard.text == "Hi."
    assert heard.retries == []
    await ask()
    assert ["stream_options" in request.body for request in endpoint.requests] == [
        True, False, False,
    ]  # fmt: skip


async def test_a_refusal_of_stream_options_without_them_is_an_error(endpoint: Endpoint, ask: Any):
    endpoint.play(*[respond(400, "no stream_options please")] * 2)
    with pytest.raises(ModelError, match="no stream_options please"):
        await ask()
    assert len(endpoint.requests) == 2


async def test_turns_share_one_connection(endpoint: Endpoint, ask: Any):
    endpoint.play(*[answer("Hi.")] * 5)
    for _ in range(5):
        await ask()
    assert endpoint.connections == 1


async def test_an_answer_is_there_before_its_body_has_ended(endpoint: Endpoint, ask: Any):
    late = [
        begin(),
        piece(event(delta(content="Hi", finish="stop"))),
        piece(event(USAGE)),
        HANG,
    ]
    endpoint.play(late, answer("Again."))
    assert (await ask()).text == "Hi"
    assert (await ask()).text == "Again."
    assert endpoint.connections == 2


async def test_a_body_that_never_ends_is_let_go_of(endpoint: Endpoint, ask: Any):
    endpoint.play([*stream("Hi", delta(finish="stop"), USAGE, done=False), HANG])
    assert (await ask()).text == "Hi"
    await asyncio.wait_for(endpoint.hung_up.wait(), 30)


async def test_several_conversations_at_once_do_not_mix(endpoint: Endpoint, model: HttpModel):
    endpoint.play(*[stream("one ", 0.05, "two", delta(finish="stop"))] * 5)

    async def talk(number: int) -> str:
        request = Request([user(f"{number}")], session_id=f"{number}")
        items = [item async for item in model.stream(request)]
        return "".join(item.text for item in items if isinstance(item, TextDelta))

    assert await asyncio.gather(*(talk(number) for number in range(5))) == ["one two"] * 5
    said = {request.body["messages"][0]["content"] for request in endpoint.requests}
    assert said == {"0", "1", "2", "3", "4"}


async def test_a_closed_model_opens_again(endpoint: Endpoint, model: HttpModel, ask: Any):
    endpoint.play(answer("Hi."), answer("Again."))
    await ask()
    await model.aclose()
    await model.aclose()
    assert (await ask()).text == "Again."
    assert endpoint.connections == 2


def test_a_model_survives_its_event_loop_and_leaves_nothing_open(tmp_path: Any):
    script = tmp_path / "script.py"
    script.write_text(
        "import asyncio, gc\n"
        "from crow.core.messages import user\n"
        "from crow.core.ports.llm import Request\n"
        "from crow.llm import ChatCompletions\n"
        "from crow.testing import Endpoint\n"
        "from crow.testing.endpoint import answer\n"
        "model = None\n"
        "async def main():\n"
        "    global model\n"
        "    async with Endpoint() as endpoint:\n"
        "        endpoint.play(answer('Hi.'))\n"
        "        model = model or ChatCompletions('m', endpoint.url)\n"
        "        model._connection.url = endpoint.url\n"
        "        async for item in model.stream(Request([user('hello')])): pass\n"
        "        print(item.text)\n"
        "asyncio.run(main()); asyncio.run(main()); gc.collect()\n"
    )
    run = subprocess.run(
        [sys.executable, "-W", "error", str(script)], capture_output=True, text=True
    )
    assert (run.stdout, run.stderr) == ("Hi.\nHi.\n", "")


async def test_the_model_that_answered_is_named(endpoint: Endpoint, ask: Any):
    endpoint.play(answer("Hi."))
    assert (await ask()).completion.model == "scripted"


async def test_message_ids_are_those_of_the_request(endpoint: Endpoint, ask: Any):
    endpoint.play(stream(delta(reasoning="Hm."), "Hi", delta(finish="stop")))
    heard = await ask(message_id="m-7")
    assert {item.message_id for item in heard.items[:-1]} == {"m-7"}


@pytest.mark.parametrize(
    "usage, told",
    [
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "total_tokens": 15,
                "prompt_tokens_details": {"cached_tokens": 8, "audio_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 3},
                "cost": 0.0125,
            },
            {
                "input_tokens": 10,
                "output_tokens": 5,
                "total_tokens": 15,
                "cached_tokens": 8,
                "reasoning_tokens": 3,
                "cost": 0.0125,
            },
        ),
        (
            {"input_tokens": 4, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 1}},
            {"input_tokens": 4, "output_tokens": 2, "total_tokens": 6, "cached_tokens": 1},
        ),
        (
            {"prompt_tokens": 3, "completion_tokens": None, "prompt_cache_hit_tokens": 2},
            {"input_tokens": 3, "output_tokens": 0, "total_tokens": 3, "cached_tokens": 2},
        ),
        (
            {"prompt_tokens": 3.0, "cached_tokens": 1, "prompt_tokens_details": None},
            {"input_tokens": 3, "output_tokens": 0, "total_tokens": 3, "cached_tokens": 1},
        ),
        ({"total_tokens": 9}, {"input_tokens": 0, "output_tokens": 0, "total_tokens": 9}),
        ({"odd": 1}, None),
        ([1], None),
    ],
)
async def test_usage_is_told_in_one_shape(endpoint: Endpoint, ask: Any, usage: Any, told: Any):
    early = {"choices": [], "usage": {"prompt_tokens": 1}}
    endpoint.play(stream(early, "Hi", delta(finish="stop"), {"choices": [], "usage": usage}))
    assert (await ask()).completion.usage == told


async def test_typed_parts_of_text_and_thinking_are_read(endpoint: Endpoint, ask: Any):
    thinking = [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}, 3]}]
    text = [{"type": "text", "text": "Hi."}, {"type": "odd"}, None]
    parts = [delta(content=thinking), delta(content=text), delta(content=7)]
    endpoint.play(stream(*parts, delta(finish="stop")))
    completion = (await ask()).completion
    assert (completion.reasoning, completion.text) == ("Hm.", "Hi.")


async def test_calls_are_shown_while_they_are_written(endpoint: Endpoint, ask: Any):
    pieces = ["", '{"file', '_path": ', '"a"}']
    first = {"index": 0, "id": "c1", "function": {"name": "Read", "arguments": pieces[0]}}
    rest = [{"index": 0, "function": {"arguments": text}} for text in pieces[1:]]
    endpoint.play(stream(*(delta(tool_calls=[each]) for each in (first, *rest)), delta(finish="x")))
    heard = await ask()
    shown = [item for item in heard.items if isinstance(item, CallDelta)]
    assert [(item.call_id, item.name) for item in shown] == [("c1", "Read")] * 3
    assert [item.text for item in shown] == pieces[1:]


async def test_a_call_without_a_name_comes_out_without_one(endpoint: Endpoint, ask: Any):
    odd = [{"index": 0, "id": "c1", "function": {"arguments": "{}"}}, {"index": 5}, 7]
    endpoint.play(stream(delta(tool_calls=odd), delta(finish="tool_calls")))
    (call,) = (await ask()).completion.calls
    assert (call.id, call.name, call.args) == ("c1", "", {})


@pytest.mark.parametrize(
    "secret, said",
    [
        ("sk-0123456789abcdef", "key sk-0123456789abcdef is wrong"),
        ("abcd", "abcd abcd"),
        (None, "Incorrect API key provided: sk-proj-****wxyz"),
    ],
)
async def test_no_error_tells_a_key(endpoint: Endpoint, ask: Any, secret: Any, said: str):
    llm = ChatCompletions("m-1", endpoint.url, secret, retries=Retries(1, 0.01))
    endpoint.play(
        respond(503, {"error": said}),
        respond(401, {"error": {"message": said}}),
    )
    items = llm.stream(Request([user("hello")]))
    retrying: Any = await anext(items)
    with pytest.raises(ModelError) as caught:
        await anext(items)
    told = f"{retrying.reason} {caught.value}"
    assert "***" in told
    assert (secret or "sk-proj") not in told
    assert "wxyz" not in told


async def test_a_secret_in_a_header_is_not_told_either(endpoint: Endpoint, ask: Any):
    llm = ChatCompletions("m-1", endpoint.url, headers={"x-api-key": "hunter22"})
    endpoint.play(respond(403, "hunter22 may not"))
    with pytest.raises(ModelError, match=r"\*\*\* may not"):
        await ask(llm=llm)


async def test_an_error_page_is_told_by_its_title(endpoint: Endpoint, ask: Any):
    llm = ChatCompletions("m-1", endpoint.url, retries=NO_RETRIES)
    page = "<html><head><title>502 Bad Gateway</title></head><body>...</body></html>"
    endpoint.play(respond(502, page, content_type="text/html"))
    with pytest.raises(ModelError, match=r"HTTP 502: 502 Bad Gateway$"):
        await ask(llm=llm)
    endpoint.play(respond(502, "<html>", content_type="text/html"))
    with pytest.raises(ModelError, match=r"HTTP 502: an HTML page$"):
        await ask(llm=llm)


async def test_an_error_whose_body_stalls_is_told_without_it(endpoint: Endpoint, ask: Any):
    times = Timeouts(closing=0.1)
    llm = ChatCompletions("m-1", endpoint.url, timeouts=times, retries=NO_RETRIES)
    head = b"HTTP/1.1 500 Oops\r\ncontent-length: 100\r\n\r\n"
    endpoint.play([head, b"half", HANG])
    with pytest.raises(ModelError, match="HTTP 500: half"):
        await ask(llm=llm)


async def test_an_error_body_without_end_is_not_read_to_the_end(endpoint: Endpoint, ask: Any):
    head = b"HTTP/1.1 404 No\r\ntransfer-encoding: chunked\r\n\r\n"
    endpoint.play([head, *[piece(b"x" * 10_000)] * 100, HANG])
    with pytest.raises(ModelError, match="HTTP 404: xxx"):
        await ask()


@pytest.mark.parametrize("odd", [object(), float("nan"), {1, 2}])
async def test_what_is_no_json_cannot_be_asked(ask: Any, odd: Any):
    with pytest.raises(ModelError, match="the request is no JSON") as caught:
        await ask(params={"odd": odd})
    assert caught.value.kind == "invalid_request"


def test_conversations_that_are_long_ago_are_forgotten():
    wire = ChatWire(limit=1000)
    call: Any = {"id": "c1", "type": "function", "function": {"name": "A", "arguments": "{}"}}
    messages: list[Any] = [{"role": "assistant", "content": "x" * 600, "tool_calls": [call]}]
    one, two = (Request(messages, session_id=name) for name in ("one", "two"))
    first = wire.body(one, "m", {}, RequestFormat())
    wire.body(two, "m", {}, RequestFormat())
    assert wire.encoder.ids("one", messages) == wire.encoder.ids("two", messages) == {"c1"}
    assert wire.body(one, "m", {}, RequestFormat()) == first
    empty = Request([], session_id="one")
    assert wire.body(empty, "m", {}, RequestFormat(usage=False)) == (
        b'{"model":"m","stream":true,"messages":[]}'
    )


def test_the_wait_grows_and_is_bounded():
    retries = Retries(limit=10, base=1, ceiling=4)
    error = ModelError("busy", kind="overloaded")
    longest = [max(retries.delay(error, n) or 0 for _ in range(300)) for n in range(1, 11)]
    assert longest[0] <= 1 < longest[2] <= 4
    assert all(each <= 4 for each in longest)
    assert retries.delay(error, 11) is None
    assert retries.delay(ModelError("no", kind="billing"), 1) is None


def test_a_conversation_is_written_as_it_is_whatever_became_of_it_since_the_last_request():
    wire = ChatWire()
    image: Any = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    said: list[list[Any]] = [[{"role": "user", "content": str(number)}] for number in range(4)]
    said.insert(2, [said_call("c1"), {"role": "tool", "tool_call_id": "c1", "content": [image]}])
    whole = [message for each in said for message in each]
    changed = [*whole[:1], {"role": "user", "content": "another"}, *whole[2:]]
    for messages in (whole[:1], whole[:2], whole, whole[:2], changed[:2], changed, whole, []):
        request = Request(messages, session_id="one")
        for form in (RequestFormat(), RequestFormat(answered=True)):
            afresh = ChatWire().body(Request(messages), "m", {}, form)
            assert wire.body(request, "m", {}, form) == afresh


def said_call(call_id: str) -> Any:
    call = {"id": call_id, "type": "function", "function": {"name": "A", "arguments": "{}"}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}
