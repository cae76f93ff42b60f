"""What comparing every request with the one before costs, at any age of a session.

A turn is a request, one tool call and its result, with a model that answers at once; a hook puts a
system message of its own in front of each request, as the system prompt does. The time is that of
the extension's hooks, as the trace has it: the least and the median of many turns. The limit is 50
microseconds a turn at 2,000 turns.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
from collections.abc import AsyncGenerator
from typing import Any

from crow.core.agent import Agent
from crow.core.messages import Message
from crow.core.ports.llm import Completion, Delta, Request
from crow.core.session import Session
from crow.core.tools import Call
from crow.extensions import PromptCacheHook
from crow.tools import tool

AGES = (100, 500, 2000)
TURNS = 50
ROUNDS = 8
LIMIT = 50.0


class Caller:
    """A model that calls a tool until it has had its turns."""

    model = "caller"
    context_window = None

    def __init__(self) -> None:
        self.left = 0
        self.made = 0

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Completion, None]:
        self.left -= 1
        self.made += 1
        calls = (Call(f"call_{self.made}", "nothing", {}, "{}"),) if self.left else ()
        yield Completion("x" * 300, calls, usage={"input_tokens": 9, "total_tokens": 9})


@tool
async def nothing() -> str:
    """Do nothing."""
    return "x" * 300


def before_llm_request(messages: list[Message]) -> list[Message]:
    """What a system prompt does."""
    return [{"role": "system", "content": "Be careful."}, *messages]


async def take(agent: Agent, session: Session, turns: int) -> list[float]:
    """Microseconds of the extension's hooks in each of some turns."""
    model: Any = agent.llm
    model.left = turns
    before = session.trace.count
    await agent.prompt(session, "go")
    own = [record for record in session.trace.since(before) if record.owner == "prompt_cache"]
    sent = [record.seconds * 1e6 for record in own if record.event == "on_llm_request"]
    answered = [record.seconds * 1e6 for record in own if record.event == "after_llm_response"]
    return [sum(pair) for pair in zip(sent, answered, strict=True)]


async def main() -> int:
    """Measure, and say what is too slow."""
    agent = Agent(Caller(), hooks=[before_llm_request, PromptCacheHook()], tools=[nothing])
    session = await agent.new_session()
    least = 0.0
    for age in AGES:
        await take(agent, session, max(1, age - TURNS - len(session.messages) // 2))
        taken = [each for _ in range(ROUNDS) for each in await take(agent, session, TURNS)]
        least = min(taken)
        print(f"turn {age:5}: {least:3.0f} us, median {statistics.median(taken):3.0f} us")
    if least > LIMIT:
        print(f"too slow: at most {LIMIT:.0f} us")
    return int(least > LIMIT)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
