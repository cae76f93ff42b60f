from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest

from crow.core.errors import ModelError
from crow.core.events import CallDelta, TextDelta, ThoughtDelta
from crow.core.messages import user
from crow.core.ports.llm import Completion, Request
from crow.llm import Retries, Timeouts
from crow.llm.client import ClientModel
from crow.llm.http import NO_RETRIES
from crow.testing.endpoint import delta

SOON = Retries(limit=2, base=0.01)


class Client:
    """A client of somebody else's: plays answers, remembers what it was asked."""

    def __init__(self, *answers: Any, wait: float = 0.0) -> None:
        self.answers = list(answers)
        self.asked: list[dict[str, Any]] = []
        self.closed = 0
        self.wait = wait
        self.chat = SimpleNamespace(completions=self)

    def next(self, arguments: dict[str, Any]) -> Any:
        self.asked.append(arguments)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class AsyncClient(Client):
    async def create(self, **arguments: Any) -> Any:
        answer = self.next(arguments)
        return self.play(answer) if isinstance(answer, list) else answer

    async def play(self, chunks: list[Any]) -> Any:
        try:
            for chunk in chunks:
                await asyncio.sleep(self.wait)
                if isinstance(chunk, Exception):
                    raise chunk
                yield chunk
        finally:
            self.closed += 1


class SyncClient(Client):
    def create(self, **arguments: Any) -> Any:
        answer = self.next(arguments)
        return self.play(answer) if isinstance(answer, list) else answer

    def play(self, chunks: list[Any]) -> Any:
        try:
            for chunk in chunks:
                time.sleep(self.wait)
                yield chunk
        finally:
            self.closed += 1


def as_object(value: Any) -> Any:
    """JSON as objects with attributes, as typed libraries have it."""
    if isinstance(value, dict):
        return SimpleNamespace(**{key: as_object(item) for key, item in value.items()})
    return [as_object(item) for item in value] if isinstance(value, list) else value


FUNCTION = {"name": "Read", "arguments": '{"file_path": "a"}'}
CHUNKS = [
    delta(role="assistant", content=""),
    delta(reasoning_content="Hm."),
    delta(content="Look"),
    delta(content="ing."),
    delta(tool_calls=[{"index": 0, "id": "c1", "type": "function", "function": FUNCTION}]),
    delta(finish="tool_calls"),
    {
        "model": "m",
        "choices": [],
        "usage": {
            "prompt_tokens": 5,
            "completion_tokens": 2,
            "total_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 4},
            "completion_tokens_details": {"reasoning_tokens": 1},
        },
    },
]


async def ask(client: Client, request: Request | None = None, **options: Any) -> list[Any]:
    options = {"retries": NO_RETRIES, **options}
    model = ClientModel(client, "m-1", {"temperature": 0}, 1000, **options)
    assert (model.model, model.context_window) == ("m-1", 1000)
    return [item async for item in model.stream(request or Request([user("hello")]))]


@pytest.mark.parametrize("kind", [AsyncClient, SyncClient])
@pytest.mark.parametrize("shape", [as_object, lambda value: value], ids=["objects", "dicts"])
async def test_any_client_with_chat_completions_is_a_model(kind: Any, shape: Any):
    client = kind([shape(chunk) for chunk in CHUNKS])
    items = await ask(client)
    assert items[:4] == [
        ThoughtDelta("Hm."),
        TextDelta("Look"),
        TextDelta("ing."),
        CallDelta("c1", "Read", '{"file_path": "a"}'),
    ]
    completion: Completion = items[-1]
    assert (completion.text, completion.reasoning, completion.model) == (
        "Looking.", "Hm.", "scripted",
    )  # fmt: skip
    assert completion.calls[0].args == {"file_path": "a"}
    assert completion.usage == {
        "input_tokens": 5,
        "output_tokens": 2,
        "total_tokens": 7,
        "cached_tokens": 4,
        "reasoning_tokens": 1,
    }
    assert client.closed == 1
    assert client.asked == [
        {
            "model": "m-1",
            "messages": [{"role": "user", "content": "hello"}],
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": 0,
        }
    ]


@pytest.mark.parametrize("kind", [AsyncClient, SyncClient])
async def test_a_client_may_answer_with_a_whole_completion(kind: Any):
    message = {"content": "Hi.", "tool_calls": [{"id": "c", "function": FUNCTION}]}
    whole = {"model": "m", "choices": [{"message": message, "finish_reason": "stop"}]}
    for answer in (whole, as_object(whole)):
        completion = (await ask(kind(answer)))[-1]
        assert completion.text == "Hi."
        assert completion.calls[0].args == {"file_path": "a"}


async def test_an_old_function_call_is_a_call():
    chunks = [delta(function_call=FUNCTION), delta(finish="function_call")]
    completion = (await ask(AsyncClient([as_object(chunk) for chunk in chunks])))[-1]
    assert completion.calls[0].name == "Read"


async def test_reasoning_is_sent_back_only_where_it_is_wanted():
    said: Any = {"role": "assistant", "content": "Hi", "reasoning_content": "Hm."}
    answer = [delta(content="x", finish="stop")]
    client = AsyncClient(answer, answer)
    tools: Any = [{"type": "function", "function": {"name": "Read"}}]
    request = Request([user("hello"), said], tools, model="m-2", params={"top_p": 1})
    await ask(client, request)
    await ask(client, request, echo_reasoning=True)
    first, second = client.asked
    assert first["messages"][1] == {"role": "assistant", "content": "Hi"}
    assert second["messages"][1] == said
    assert (first["model"], first["top_p"], first["tools"]) == ("m-2", 1, tools)


class StatusError(Exception):
    def __init__(self, status: int, said: str, **headers: str) -> None:
        super().__init__(said)
        self.status_code = status
        self.response = SimpleNamespace(headers=headers)


class ReadTimeout(Exception): ...  # noqa: N818


class APIConnectionError(Exception): ...


class APIError(Exception):
    @property
    def body(self) -> dict[str, str]:
        return {"code": "503"}


@pytest.mark.parametrize(
    "error, kind",
    [
        (StatusError(401, "bad key"), "authentication"),
        (StatusError(429, "slow down"), "rate_limit"),
        (StatusError(400, "maximum context length is 5 tokens"), "context_length"),
        (ReadTimeout(), "timeout"),
        (TimeoutError(), "timeout"),
        (APIConnectionError("gone"), "network"),
        (ConnectionResetError("gone"), "network"),
        (APIError("busy"), "overloaded"),
        (ValueError("Expecting value"), "protocol"),
        (RuntimeError("odd"), "unknown"),
    ],
)
async def test_exceptions_of_a_client_become_errors_of_a_kind(error: Exception, kind: str):
    for answer in (error, [error]):
        with pytest.raises(ModelError, match="m-1 at AsyncClient") as caught:
            await ask(AsyncClient(answer))
        assert caught.value.kind == kind
        assert caught.value.__cause__ is not None


async def test_an_answer_that_breaks_off_is_asked_for_again():
    client = AsyncClient([*CHUNKS[:3], ConnectionResetError("gone")], CHUNKS[:3], CHUNKS, wait=0)
    items = await ask(client, retries=SOON)
    assert "".join(item.text for item in items if isinstance(item, TextDelta)) == "Looking."
    assert len(client.asked) == 3
    assert client.closed == 3


async def test_an_empty_answer_is_no_answer():
    with pytest.raises(ModelError, match="empty answer"):
        await ask(AsyncClient([]))


async def test_what_comes_after_the_reason_to_end_may_fail_or_stall():
    done = delta(content="Hi", finish="stop")
    assert (await ask(AsyncClient([done, OSError()])))[-1].text == "Hi"
    times = Timeouts(closing=0.1)
    stall = AsyncClient([done, done], wait=0)
    stall.wait = 0.05
    assert (await ask(stall, timeouts=times))[-1].finish == "stop"


async def test_a_stall_of_a_client_is_noticed():
    with pytest.raises(ModelError, match=r"nothing new in 0\.1 s"):
        await ask(AsyncClient(CHUNKS, wait=5), timeouts=Timeouts(idle=0.1))


async def test_an_endless_answer_is_cut_off():
    client = AsyncClient([delta(content="word ")] * 1000)
    completion = (await ask(client, max_output=50))[-1]
    assert completion.finish == "length"
    assert len(completion.text) == 55
    assert client.closed == 1


async def test_a_client_that_knows_no_stream_options_is_asked_without():
    refusal = TypeError("create() got an unexpected keyword argument 'stream_options'")
    client = AsyncClient(refusal, CHUNKS)
    assert (await ask(client))[-1].text == "Looking."
    assert "stream_options" not in client.asked[1]


async def test_closing_the_iterator_closes_the_client_s_stream():
    client = AsyncClient(CHUNKS)
    items = ClientModel(client, "m-1").stream(Request([user("hello")]))
    await anext(items)
    await items.aclose()
    assert client.closed == 1


def test_it_says_what_it_is():
    assert repr(ClientModel(AsyncClient(), "m-1")) == "ClientModel(AsyncClient, 'm-1')"
