"""A checkpoint before each prompt, and `/undo` to go back to it: files, not the conversation.

    crow --extension examples/checkpoint.py

A checkpoint is a tree in git's store, written with an index of its own: your branch, what you have
staged and the log stay as they are. `/undo` names the one that it went away from. What git ignores
is neither kept nor brought back; git throws trees away after two weeks.
"""

import asyncio
import os
from asyncio.subprocess import PIPE, STDOUT
from tempfile import TemporaryDirectory

from crow import Agent, Answer, Command, CommandContext, Context, RunContext
from crow.messages import text_of


class Checkpoint:
    def init_agent(self, agent: Agent) -> None:
        agent.add_command(Command("undo", "Bring the files back as they were", self.undo))

    async def before_run(self, ctx: RunContext) -> None:
        if text_of(ctx.prompt).startswith("/"):  # a command, such as /undo
            return
        try:
            ctx.state["before"] = [*ctx.state.get("before", []), await self.keep(ctx)][-50:]
        except RuntimeError as error:  # a gate that fails would refuse the prompt
            await ctx.ui.notify(f"no checkpoint: {error}", severity="warning")

    async def undo(self, ctx: CommandContext) -> Answer:
        before: list[str] = ctx.state.get("before", [])
        if not before:
            return Answer("There is no checkpoint.")
        now, then = await self.keep(ctx), before.pop()
        ctx.state["before"] = before
        gone = await self.git(ctx, "diff", "--name-only", "--diff-filter=A", "-z", then, now)
        for name in filter(None, gone.split("\0")):
            os.unlink(os.path.join(ctx.cwd, name))  # noqa: PTH108, PTH118
        await self.git(ctx, "restore", f"--source={then}", "--worktree", "--", ":/")
        return Answer(f"The files are as they were; {now} has them as they were just now.")

    async def keep(self, ctx: Context) -> str:
        with TemporaryDirectory() as folder:
            index = {"GIT_INDEX_FILE": f"{folder}/index"}
            await self.git(ctx, "add", "--all", ":/", **index)
            return await self.git(ctx, "write-tree", **index)

    async def git(self, ctx: Context, *arguments: str, **env: str) -> str:
        process = await asyncio.create_subprocess_exec(
            "git", *arguments, cwd=ctx.cwd, env={**os.environ, **env}, stdout=PIPE, stderr=STDOUT
        )
        output = (await process.communicate())[0].decode().strip()
        if process.returncode:
            raise RuntimeError(f"git {arguments[0]}: {output}")
        return output
