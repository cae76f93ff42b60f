"""Prompts that come at once are not one turn of the event loop."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from crow.core.agent import Agent
from crow.core.ports.llm import Completion
from crow.extensions import PersistenceHook
from crow.testing import ScriptedModel

MANY = 40


class Turns:
    """Counts what begins in each turn of the event loop."""

    def __init__(self) -> None:
        self.begun: Counter[tuple[str, int]] = Counter()
        self._turn = 0

    def before_run(self) -> None:
        """A prompt is looked at."""
        self.begun["prompt", self._turn] += 1

    async def around_llm_request(self) -> Completion:
        """A model is about to be asked."""
        self.begun["request", self._turn] += 1
        return Completion("Done.")

    async def watch(self) -> None:
        """Number the turns."""
        while True:
            self._turn += 1
            await asyncio.sleep(0)

    def most(self, what: str) -> int:
        """How many of a kind were begun in one turn."""
        return max(count for (kind, _), count in self.begun.items() if kind == what)


@pytest.mark.parametrize("store", [True, False], ids=["stored", "not stored"])
async def test_each_has_a_turn_of_the_loop_to_begin_and_one_to_ask(
    tmp_path: Path, store: bool
) -> None:
    """Those that are stored together, too."""
    turns = Turns()
    hooks = [turns, *([PersistenceHook(tmp_path / "crow.db")] if store else [])]
    async with Agent(ScriptedModel(), hooks=hooks, tools=()) as agent:
        sessions = [await agent.new_session(tmp_path) for _ in range(MANY)]
        watching = asyncio.create_task(turns.watch())
        replies = await asyncio.gather(*(agent.prompt(each, "hello") for each in sessions))
        watching.cancel()
    assert [reply.text for reply in replies] == ["Done."] * MANY
    assert (turns.most("prompt"), turns.most("request")) == (1, 1)


async def test_who_is_cancelled_in_the_line_holds_up_nobody(tmp_path: Path) -> None:
    turns = Turns()
    async with Agent(ScriptedModel(), hooks=[turns], tools=()) as agent:
        sessions = [await agent.new_session(tmp_path) for _ in range(MANY)]
        prompts = [asyncio.create_task(agent.prompt(each, "hello")) for each in sessions]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for session in sessions[1::2]:
            agent.cancel(session)
        reasons = [(await each).stop_reason for each in prompts]
    assert reasons == ["end_turn", "cancelled"] * (MANY // 2)


def test_an_agent_of_several_loops_lets_prompts_through_in_each(tmp_path: Path) -> None:
    agent = Agent(ScriptedModel(), hooks=[Turns()], tools=())
    for _ in range(2):
        assert asyncio.run(agent.run("hello", cwd=tmp_path)).text == "Done."
