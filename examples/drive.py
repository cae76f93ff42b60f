"""Drives an agent from Python, with the embedded model: no key, no network.

    python examples/drive.py

Name a real model in place of ``rehearsal``: ``Agent(llm="gpt-5", ...)`` and its key in the
environment, or any object with ``.chat.completions.create``.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from crow import Agent
from crow.extensions import HookLog, LimitsHook, SystemPromptHook


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "README.md").write_text("# A project\n\nTODO: say more\n")
        hooks = [SystemPromptHook(), LimitsHook(turns=10), HookLog(print, events=["before_tool"])]
        async with Agent(llm="rehearsal", hooks=hooks) as agent:
            reply = await agent.run("Read the file README.md", cwd=folder)
            reply = await agent.run("Find TODO in README.md", session=reply.session)
            print(reply.text)
            print(reply.stop_reason, len(reply.session.messages), "messages")


if __name__ == "__main__":
    asyncio.run(main())
