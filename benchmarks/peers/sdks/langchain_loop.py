"""LangChain's agent (LangGraph), streamed."""

from __future__ import annotations

import asyncio

from langchain.agents import create_agent  # type: ignore[import-not-found]
from langchain_openai import ChatOpenAI  # type: ignore[import-not-found]
from shell import LIMIT, PROMPT, run_command  # type: ignore[import-not-found]


async def main() -> None:
    agent = create_agent(ChatOpenAI(model="double", use_responses_api=False), [run_command])
    asked = {"messages": [{"role": "user", "content": PROMPT}]}
    said = ""
    async for piece, _ in agent.astream(
        asked, config={"recursion_limit": 3 * LIMIT}, stream_mode="messages"
    ):
        said = piece.content or said
    print(said)


asyncio.run(main())
