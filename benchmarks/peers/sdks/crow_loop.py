"""Crow's bare agent: no extension, one tool."""

from __future__ import annotations

import asyncio

from shell import PROMPT, run_command  # type: ignore[import-not-found]

from crow import Agent, tool


async def main() -> None:
    agent = Agent(model="openai/double", tools=[tool(run_command)])
    print((await agent.run(PROMPT)).text)


asyncio.run(main())
