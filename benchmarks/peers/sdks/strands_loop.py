"""Strands Agents."""

from __future__ import annotations

import asyncio

from shell import BASE, PROMPT, run_command  # type: ignore[import-not-found]
from strands import Agent, tool  # type: ignore[import-not-found]
from strands.models.openai import OpenAIModel  # type: ignore[import-not-found]


async def main() -> None:
    model = OpenAIModel(client_args={"base_url": BASE, "api_key": "x"}, model_id="double")
    agent = Agent(model, tools=[tool(run_command)], callback_handler=None)
    async for _ in agent.stream_async(PROMPT):
        pass
    print(agent.messages[-1])


asyncio.run(main())
