"""No hook keeps a run going without an end, by whatever means.

Who answers in the model's place is the model: what it calls for is done as the model's calls are.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.conftest import Echo

from crow.core.agent import Agent
from crow.core.messages import user
from crow.testing import ScriptedModel

MANY = 60
"""More requests than a run may have that only hooks keep going."""


def steers(ctx: Any) -> None:
    ctx.agent.steer(ctx.session, "go on")


def adds_to_what_waits(ctx: Any) -> None:
    ctx.session.pending.append(user("go on"))


def begins_to_count_anew(ctx: Any) -> str:
    ctx.run.count = ctx.run.count_in_row = 0
    return "go on"


@pytest.mark.parametrize(
    ("event", "hook"),
    [
        ("on_stop", steers),
        ("after_turn", steers),
        ("on_stop", adds_to_what_waits),
        ("on_stop", begins_to_count_anew),
    ],
)
async def test_a_run_that_only_a_hook_keeps_going_ends(event: str, hook: Any):
    model = ScriptedModel(*["x"] * MANY, leftover="allow")
    async with Agent(model, tools=[Echo()]) as agent:
        agent.hooks.register(event, hook)
        reply = await agent.prompt(await agent.new_session(), "go")
    assert reply.error is None
    assert len(model.asked) < MANY
