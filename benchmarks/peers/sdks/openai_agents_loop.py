"""OpenAI's Agents SDK, over chat completions."""

from __future__ import annotations

import asyncio

from agents import Agent, Runner, function_tool, set_default_openai_api, set_tracing_disabled  # type: ignore[import-not-found]
from shell import LIMIT, PROMPT, run_command  # type: ignore[import-not-found]


async def main() -> None:
    set_tracing_disabled(True)
    set_default_openai_api("chat_completions")
    agent = Agent(name="bench", model="double", tools=[function_tool(run_command)])
    run = Runner.run_streamed(agent, PROMPT, max_turns=LIMIT)
    async for _ in run.stream_events():
        pass
    print(run.final_output)


asyncio.run(main())
