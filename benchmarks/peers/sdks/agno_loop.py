"""Agno."""

from __future__ import annotations

import asyncio

from agno.agent import Agent  # type: ignore[import-not-found]
from agno.models.openai import OpenAIChat  # type: ignore[import-not-found]
from shell import BASE, PROMPT, run_command  # type: ignore[import-not-found]


async def main() -> None:
    agent = Agent(
        model=OpenAIChat("double", base_url=BASE, api_key="x"), tools=[run_command], telemetry=False
    )
    said = None
    async for event in agent.arun(PROMPT, stream=True):
        said = getattr(event, "content", None)
    print(said)


asyncio.run(main())
