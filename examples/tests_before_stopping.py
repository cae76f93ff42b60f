"""The tests have to pass before the agent may stop.

    crow run --extension examples/tests_before_stopping.py "Fix the failing test"

It tries `attempts` times and then lets the run end: tests that cannot be mended would keep it going
for ever. Nothing is tested where nothing was changed.
"""

import asyncio
from asyncio.subprocess import PIPE, STDOUT
from dataclasses import dataclass

from crow import RunContext, ToolContext


@dataclass
class TestsBeforeStopping:
    command: str = "make test"
    attempts: int = 3
    tail: int = 3000
    """Characters of the output that the model reads."""

    def after_tool(self, ctx: ToolContext) -> None:
        if ctx.result is not None and (ctx.result.diffs or ctx.name == "Bash"):
            ctx.state["untested"] = True

    async def on_stop(self, ctx: RunContext, count: int) -> str | None:
        if not ctx.state.pop("untested", False):
            return None
        tests = await asyncio.create_subprocess_shell(
            self.command, cwd=ctx.cwd, stdout=PIPE, stderr=STDOUT
        )
        output, _ = await tests.communicate()
        if tests.returncode == 0:
            return None
        if count >= self.attempts:
            await ctx.ui.notify(f"{self.command} still fails", severity="warning")
            return None
        ctx.state["untested"] = True
        text = output.decode(errors="replace")[-self.tail :]
        return f"{self.command} fails with status {tests.returncode}. Mend it:\n{text}"
