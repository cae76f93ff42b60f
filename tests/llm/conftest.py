from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest

from crow.core.events import Retrying, TextDelta
from crow.core.messages import user
from crow.core.ports.llm import LLM, Completion, Request
from crow.llm import ChatCompletions, HttpModel, Retries, Timeouts
from crow.llm.client import ClientModel
from crow.testing import Endpoint

QUICK = Timeouts(connect=30, first_byte=30, idle=30, load=0.1, total=100, closing=0.3)
SOON = Retries(limit=3, base=0.01)
KEY = "sk-secret-0123456789"


class Heard:
    """What came of one request."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    @property
    def completion(self) -> Completion:
        assert isinstance(self.items[-1], Completion)
        assert not any(isinstance(item, Completion) for item in self.items[:-1])
        return self.items[-1]

    @property
    def text(self) -> str:
        return "".join(item.text for item in self.items if isinstance(item, TextDelta))

    @property
    def retries(self) -> list[Retrying]:
        return [item for item in self.items if isinstance(item, Retrying)]


Ask = Callable[..., Awaitable[Heard]]


@pytest.fixture
async def endpoint() -> AsyncGenerator[Endpoint, None]:
    async with Endpoint() as endpoint:
        yield endpoint


@pytest.fixture
def model(endpoint: Endpoint) -> HttpModel:
    return ChatCompletions("m-1", endpoint.url, KEY, timeouts=QUICK, retries=SOON)


Make = Callable[..., LLM]


@pytest.fixture(params=["own", "AsyncOpenAI", "OpenAI"])
async def make(request: pytest.FixtureRequest, endpoint: Endpoint) -> AsyncGenerator[Make, None]:
    """Models at the endpoint, over Crow's own client and over those of the openai library."""
    opened: list[Any] = []

    def made(name: str = "m-1", **options: Any) -> LLM:
        options = {"retries": SOON, **options}
        if request.param == "own":
            opened.append(llm := ChatCompletions(name, endpoint.url, **options))
            return llm
        openai = pytest.importorskip("openai")
        client = getattr(openai, request.param)(base_url=endpoint.url, api_key="k", max_retries=0)
        opened.append(client)
        return ClientModel(client, name, **options)

    yield made
    for each in opened:
        closing = each.aclose() if hasattr(each, "aclose") else each.close()
        if closing is not None:
            await closing


@pytest.fixture
def ask(model: HttpModel) -> Ask:
    async def ask(*messages: Any, llm: LLM = model, **fields: Any) -> Heard:
        request = Request(list(messages) or [user("hello")], **fields)
        return Heard([item async for item in llm.stream(request)])

    return ask
