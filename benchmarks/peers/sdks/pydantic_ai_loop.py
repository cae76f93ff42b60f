"""pydantic-ai."""

from __future__ import annotations

import asyncio

from pydantic_ai import Agent  # type: ignore[import-not-found]
from pydantic_ai.models.openai import OpenAIChatModel  # type: ignore[import-not-found]
from pydantic_ai.usage import UsageLimits  # type: ignore[import-not-found]
from shell import LIMIT, PROMPT, run_command  # type: ignore[import-not-found]


async def main() -> None:
    agent = Agent(OpenAIChatModel("double"), tools=[run_command])
    async with agent.iter(PROMPT, usage_limits=UsageLimits(request_limit=LIMIT)) as run:
        async for node in run:
            if Agent.is_model_request_node(node):
                async with node.stream(run.ctx) as stream:
                    async for _ in stream:
                        pass
    print(run.result.output)


asyncio.run(main())
