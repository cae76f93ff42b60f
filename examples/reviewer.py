"""A second model reads the change before the agent may stop; what it objects is the next prompt.

    crow run --extension examples/reviewer.py "Make the parser faster"

It sees the diff and the prompt and nothing else, so that it is not talked into anything; what it
costs counts for the session. Once a run: two models can go on about taste for ever.
"""

import asyncio
from asyncio.subprocess import DEVNULL, PIPE
from dataclasses import dataclass

from crow import Request, RunContext
from crow.messages import text_of

ASK = """Review the change below as a strict colleague would. It was asked for: {prompt}
Answer APPROVED alone where it can be merged, else list what is wrong, the worst first.

{diff}"""


@dataclass
class Reviewer:
    model: str | None = None
    """Which model reviews; else the session's own."""

    async def on_stop(self, ctx: RunContext, count: int) -> str | None:
        command = "git", "diff", "HEAD", "--no-ext-diff"
        git = await asyncio.create_subprocess_exec(
            *command, cwd=ctx.cwd, stdout=PIPE, stderr=DEVNULL
        )
        diff = (await git.communicate())[0].decode(errors="replace")
        if count or not diff or diff == ctx.state.get("reviewed"):
            return None
        ctx.state["reviewed"] = diff
        question = ASK.format(prompt=text_of(ctx.prompt), diff=diff[:100_000])
        asked = Request([{"role": "user", "content": question}], model=self.model)
        verdict = (await ctx.complete(asked)).text.strip()
        await ctx.ui.notify(f"The reviewer says: {verdict}")
        return None if verdict.startswith("APPROVED") else f"A reviewer objects:\n{verdict}"
