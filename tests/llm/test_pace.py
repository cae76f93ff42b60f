"""Answers that come faster than they can be worked on: the event loop goes on to something else."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.llm.conftest import KEY

from crow.core.events import TextDelta
from crow.core.messages import user
from crow.core.ports.llm import LLM, Request
from crow.llm import ChatCompletions
from crow.llm.client import ClientModel
from crow.testing import Endpoint
from crow.testing.endpoint import END, USAGE, begin, delta, event, piece

MANY = 1000
SAID = event(delta(content="w ")) * MANY
FLOOD = [begin(), piece(SAID), piece(event(delta(finish="stop")) + event(USAGE) + event("[DONE]"))]
MOST = 100
"""Pieces that may be worked on in one turn of the loop, whoever said them."""


@asynccontextmanager
async def turns() -> AsyncGenerator[list[int], None]:
    """Counts the turns of the event loop."""
    count = [0]

    async def tick() -> None:
        while True:
            count[0] += 1
            await asyncio.sleep(0)

    ticking = asyncio.create_task(tick())
    yield count
    ticking.cancel()
    await asyncio.wait({ticking})


async def listen(llm: LLM, turn: list[int], heard: Counter[int]) -> None:
    async for each in llm.stream(Request([user("Hi")])):
        if isinstance(each, TextDelta):
            heard[turn[0]] += 1


@pytest.mark.parametrize("many", [1, 5])
async def test_only_so_much_is_worked_on_in_one_turn_of_the_loop(
    endpoint: Endpoint, many: int
) -> None:
    """Also where the answers are several, and all that they say is there already."""
    endpoint.play(*[[*FLOOD, END]] * many)
    llm, heard = ChatCompletions("m-1", endpoint.url, KEY), Counter[int]()
    async with turns() as turn:
        await asyncio.gather(*(listen(llm, turn, heard) for _ in range(many)))
    await llm.aclose()
    assert heard.total() == many * MANY
    assert max(heard.values()) <= MOST


async def test_answers_that_all_have_much_to_say_go_on_side_by_side(endpoint: Endpoint) -> None:
    endpoint.play(*[[*FLOOD, END]] * 4)
    llm = ChatCompletions("m-1", endpoint.url, KEY)
    heard = [Counter[int]() for _ in range(4)]
    async with turns() as turn:
        await asyncio.gather(*(listen(llm, turn, each) for each in heard))
    await llm.aclose()
    begun, ended = max(min(each) for each in heard), min(max(each) for each in heard)
    assert begun < ended


class Chunks:
    """A client of somebody else's that has got all of an answer already."""

    def __init__(self) -> None:
        self.chat = self.completions = self

    async def create(self, **_: Any) -> AsyncGenerator[Any, None]:
        async def chunks() -> AsyncGenerator[Any, None]:
            for _ in range(MANY):
                yield delta(content="w ")
            yield delta(finish="stop")

        return chunks()


async def test_a_client_of_somebody_elses_does_not_keep_the_loop_either() -> None:
    heard = Counter[int]()
    async with turns() as turn:
        await listen(ClientModel(Chunks(), "m-1"), turn, heard)
    assert heard.total() == MANY
    assert max(heard.values()) <= MOST
