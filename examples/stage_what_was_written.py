"""A class in a list: stages what the agent writes, so that `git diff` shows your own work.

    agent = Agent(hooks=[StageHook()])

Untouched methods of `AgentHook` are not registered; an overridden one takes the arguments it names.
"""

from __future__ import annotations

import asyncio

from crow import AgentHook, Call, Session


class StageHook(AgentHook):
    def __init__(self, tools: tuple[str, ...] = ("Write", "Edit")) -> None:
        self.tools = tools

    async def after_tool(self, session: Session, call: Call, outcome: str) -> str | None:
        if call.name not in self.tools or outcome != "ok":
            return None
        git = await asyncio.create_subprocess_exec(
            "git", "add", "--", call.args["file_path"], cwd=session.cwd,
            stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        _, complaint = await git.communicate()
        return f"could not be staged: {complaint.decode()}" if git.returncode else None
