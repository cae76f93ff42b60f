"""Whatever the order in which hooks were hung: the strictest verdict stands."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.conftest import Echo, Watcher

from crow.core.agent import Agent
from crow.core.verdicts import Allow, Answer, Ask, Deny, Stop
from crow.testing import ScriptedModel, call

SAYS: list[tuple[int, Any]] = [
    (0, None),
    (0, {}),
    (0, {"permissionBehavior": "passthrough"}),
    (0, Answer("known")),
    (1, Ask("sure?", default=True)),
    (1, CLOSED := Ask("nobody is to be asked", default=True, options=())),
    (2, Allow()),
    (2, {"permissionBehavior": "allow"}),
    (3, Ask("sure?")),
    (3, {"permissionBehavior": "ask"}),
    (4, Ask("sure?", rule="Echo")),
    (5, Deny("no")),
    (5, "no"),
    (5, {"decision": "block", "reason": "no"}),
    (5, {"reason": "no"}),
    (5, object()),
    (5, ValueError("broken")),
    (6, Stop("enough")),
    (6, {"continue": False}),
]
"""What a hook says, and how strict that is: an oracle that knows nothing of the core's."""


def hook_of(answer: Any) -> Any:
    def says() -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return says


async def outcome(said: list[tuple[int, Any, bool]]) -> tuple[str, int, list[Any], str]:
    """What came of a call: its outcome, how often the user was asked, what ran, how it ended."""
    echo, user = Echo(), Watcher(answer="allow_once")
    outcomes: list[str] = []
    model = ScriptedModel(call("echo", text="a"), "done", leftover="allow")
    agent = Agent(model, tools=[echo])
    for _, answer, judges in said:
        agent.hooks.register("before_tool", hook_of(answer), judge=judges)
    agent.hooks.register("after_tool", lambda outcome: outcomes.append(outcome))
    session = await agent.new_session(client=user)
    reply = await agent.prompt(session, "go")
    await agent.close()
    return outcomes[0], len(user.asked), echo.ran, reply.stop_reason


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.sampled_from(SAYS), st.booleans()), min_size=1, max_size=5), st.randoms()
)
def test_no_order_of_hooks_changes_what_comes_of_a_call(hung: Any, random: Any):
    said = [(*each, judges) for each, judges in hung]
    first = asyncio.run(outcome(said))
    random.shuffle(said)
    assert asyncio.run(outcome(said)) == first
    strictest = max(strict for strict, _, _ in said)
    answered = any(isinstance(answer, Answer) for _, answer, _ in said)
    ended, asked, ran, stop_reason = first
    asks, closed = strictest in (1, 3, 4), any(answer is CLOSED for _, answer, _ in said)
    denied = strictest >= 5 or (asks and closed)
    assert ended == ("denied" if denied else "answered" if answered else "ok")
    assert asked == (asks and not closed)
    assert ran == ([{"text": "a"}] if ended == "ok" else [])
    assert stop_reason == ("hook_stopped" if strictest == 6 else "end_turn")


async def test_a_question_is_not_spared_by_arguments_that_nobody_would_ask_about():
    def judges(ctx: Any) -> Any:
        return Allow() if ctx.args["text"] == "harmless" else Ask("sure?", rule="echo")

    def rewrites(ctx: Any) -> None:
        ctx.args = {"text": "harmless"}

    echo, watcher = Echo(), Watcher()
    async with Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo]) as agent:
        agent.hooks.register("before_tool", judges, judge=True)
        agent.hooks.register("on_permission", rewrites)
        await agent.prompt(await agent.new_session(client=watcher), "go")
    assert echo.ran == []
    assert [request.args for request in watcher.asked] == [{"text": "harmless"}]
