"""Cost: tokens become dollars, by the settings, the price list, or what the provider says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.extensions.tools import step
from tests.watching import Watching

from crow import Agent
from crow.core.events import UsageReported
from crow.core.messages import Usage
from crow.extensions import CompactionHook, CostHook, LimitsHook, PersistenceHook
from crow.extensions.cost import Price
from crow.llm import resolve
from crow.testing import ScriptedModel, call, text

PRICES: dict[str, Price] = {"scripted": {"input": 2.0, "output": 10.0, "cached": 0.5}}
USAGE: Usage = {
    "input_tokens": 100_000,
    "cached_tokens": 80_000,
    "output_tokens": 1_000,
    "total_tokens": 101_000,
}
COST = 0.02 * 2 + 0.08 * 0.5 + 0.001 * 10


class Endpoint(ScriptedModel):
    """A scripted model that stands at an address."""

    def __init__(self, *script: Any, model: str, base_url: str) -> None:
        super().__init__(*script, model=model)
        self.base_url = base_url


async def test_a_run_and_a_session_know_what_they_cost():
    client = Watching()
    model = ScriptedModel(call("step", usage=USAGE), text("1", usage=USAGE), text("2", usage=USAGE))
    agent = Agent(model, hooks=[CostHook(PRICES)], tools=[step])
    session = await agent.new_session(client=client)
    first = await agent.run("Go", session=session)
    second = await agent.run("On", session=session)
    assert first.usage.get("cost") == pytest.approx(2 * COST)
    assert second.usage.get("cost") == pytest.approx(COST)
    assert session.usage.get("cost") == pytest.approx(3 * COST)
    reported = [event for event in client.events if isinstance(event, UsageReported)]
    assert [event.total.get("cost") for event in reported] == pytest.approx(
        [COST, 2 * COST, 3 * COST]
    )


async def test_cached_tokens_cost_like_others_where_no_price_says_otherwise():
    hook = CostHook({"scripted": {"input": 2, "output": 10}})
    reply = await Agent(ScriptedModel(text("1", usage=USAGE)), hooks=[hook], tools=[]).run("Go")
    assert reply.usage.get("cost") == pytest.approx(0.1 * 2 + 0.001 * 10)


async def test_what_the_provider_says_stays():
    model = ScriptedModel(text("1", usage={**USAGE, "cost": 0.5}))
    reply = await Agent(model, hooks=[CostHook(PRICES)], tools=[]).run("Go")
    assert reply.usage.get("cost") == 0.5


async def test_the_model_that_the_session_chose_has_its_own_price():
    prices: dict[str, Price] = {**PRICES, "other": {"input": 20.0, "output": 100.0, "cached": 5.0}}
    agent = Agent(ScriptedModel(text("1", usage=USAGE)), hooks=[CostHook(prices)], tools=[])
    session = await agent.new_session()
    await agent.configure(session, model="other")
    reply = await agent.run("Go", session=session)
    assert reply.usage.get("cost") == pytest.approx(10 * COST)


async def test_a_model_costs_what_is_known_of_it():
    """The settings' price, else the table's: what `crow models` shows, the cache's writes too."""
    usage: Usage = {**USAGE, "cache_write_tokens": 10_000}
    for name, settings, cost in (
        ("anthropic/claude-opus-5", {}, 0.01 * 5 + 0.08 * 0.5 + 0.01 * 6.25 + 0.001 * 25),
        ("mine/m", {"m": {"prices": {"input": 1, "output": 2}}}, 0.1 * 1 + 0.001 * 2),
    ):
        provider, _, model = name.partition("/")
        table = {"base_url": "http://127.0.0.1:9/v1", "api_key": "k", "models": settings}
        known: Any = resolve(name, {"providers": {provider: table}}, {})
        script = text("1", usage=usage), text("2", usage=usage)
        llm: Any = Endpoint(*script, model=model, base_url=known.base_url)
        llm.info = known.info
        reply = await Agent(llm, hooks=[CostHook()], tools=[]).run("Go")
        assert reply.usage.get("cost") == pytest.approx(cost)
        unpriced = await Agent(llm, hooks=[CostHook(catalogue=False)], tools=[]).run("Go")
        assert "cost" not in unpriced.usage


async def test_a_summary_beside_the_conversation_costs_as_well():
    model = ScriptedModel(
        text("One.", usage=USAGE), text("SUMMARY", usage=USAGE), context_window=10**6
    )
    agent = Agent(model, hooks=[CostHook(PRICES), CompactionHook()], tools=[])
    session = (await agent.run("Go")).session
    reply = await agent.run("/compact", session=session)
    assert reply.usage.get("cost") == pytest.approx(COST)
    assert session.usage.get("cost") == pytest.approx(2 * COST)
    await agent.run("/cost", session=session)
    assert session.usage.get("cost") == pytest.approx(2 * COST)


@pytest.mark.parametrize(
    ("model", "url"),
    [
        ("gpt-4o", "https://api.openai.com/v1"),
        ("openai/gpt-4o", "https://openrouter.ai/api/v1"),
        ("openai/gpt-4o", "https://llm.gateway.example/v1"),
    ],
)
async def test_well_known_models_are_in_the_price_list(model: str, url: str):
    llm = Endpoint(text("1", usage=USAGE), model=model, base_url=url)
    reply = await Agent(llm, hooks=[CostHook()], tools=[]).run("Go")
    assert reply.usage.get("cost") == pytest.approx(0.02 * 2.5 + 0.08 * 1.25 + 0.001 * 10)


@pytest.mark.parametrize(
    ("model", "url", "options"),
    [
        ("gpt-4o", "http://localhost:11434/v1", {}),
        ("gpt-4o", "http://127.0.0.1:8080/v1", {}),
        ("gpt-4o", "http://[::1]:8080/v1", {}),
        ("gpt-4o", "http://192.168.1.20/v1", {}),
        ("gpt-4o", "http://box.local/v1", {}),
        ("gpt-4o", "https://api.openai.com/v1", {"catalogue": False}),
        ("no-such-model", "https://api.openai.com/v1", {}),
    ],
)
async def test_what_nobody_knows_the_price_of_has_none(
    model: str, url: str, options: dict[str, Any]
):
    llm = Endpoint(text("1", usage=USAGE), model=model, base_url=url)
    agent = Agent(llm, hooks=[CostHook(**options)], tools=[])
    reply = await agent.run("Go")
    assert reply.usage == USAGE
    reply = await agent.run("/cost", session=reply.session)
    assert f"The price of {model} is not known" in reply.text


def test_the_price_list_is_only_read_where_it_is_needed():
    program = """
import asyncio, sys
from crow import Agent
from crow.extensions import CostHook
from crow.testing import ScriptedModel, text
usage = {"input_tokens": 10, "output_tokens": 1, "total_tokens": 11}
agent = Agent(ScriptedModel(text("1", usage=usage)), hooks=[CostHook()], tools=[])
asyncio.run(agent.run("Go"))
print([name for name in sys.modules if "genai" in name])
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("[]\n", "")


async def test_a_loaded_session_goes_on_with_what_it_has_cost(tmp_path: Path):
    def agent_of() -> Agent:
        hooks = [PersistenceHook(tmp_path / "crow.db"), CostHook(PRICES)]
        return Agent(ScriptedModel(text("1", usage=USAGE)), hooks=hooks, tools=[])

    async with agent_of() as agent:
        session = (await agent.run("Go")).session
    async with agent_of() as agent:
        session = await agent.load_session(session.id)
        assert session.usage.get("cost") == pytest.approx(COST)
        await agent.run("Go", session=session)
        assert session.usage.get("cost") == pytest.approx(2 * COST)


async def test_the_command_shows_what_the_session_has_cost():
    agent = Agent(ScriptedModel(text("1", usage=USAGE)), hooks=[CostHook(PRICES)], tools=[])
    session = await agent.new_session()
    assert "no tokens yet" in (await agent.run("/cost", session=session)).text
    await agent.run("Go", session=session)
    assert (await agent.run("/cost", session=session)).text == (
        "This session has cost $0.0900 so far.\n"
        "- input: 100,000 tokens, 80,000 of them from a cache\n"
        "- output: 1,000 tokens"
    )


# limits of money


async def test_money_ends_a_run_and_a_session():
    model = ScriptedModel(*[call("step", usage=USAGE)] * 9, leftover="allow")
    hooks = [CostHook(PRICES), LimitsHook(cost=0.15)]
    agent = Agent(model, hooks=hooks, tools=[step])
    reply = await agent.run("Go")
    assert (len(model.asked), reply.stop_reason) == (2, "max_turn_requests")
    assert reply.detail == (
        "stopped by limits: the limit of $0.15 in one run is reached ($0.18 spent)"
    )
    agent.remove("limits")
    agent.use(LimitsHook(session_cost=0.3))
    reply = await agent.run("On", session=reply.session)
    assert len(model.asked) == 4
    assert "the limit of $0.30 in one session is reached ($0.36 spent)" in reply.detail


async def test_a_limit_of_money_says_once_that_nobody_knows_the_price():
    client = Watching()
    model = ScriptedModel(*[call("step", usage=USAGE)] * 3, "Done.")
    agent = Agent(model, hooks=[CostHook(), LimitsHook(cost=0.15)], tools=[step])
    reply = await agent.run("Go", client=client)
    assert reply.text == "Done."
    assert str(client.events).count("is not known, so the limit of money cannot be kept") == 1
