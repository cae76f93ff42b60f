"""The loop: ask the model, run the tools it calls, repeat.

It knows when a hook point fires and never what hangs there.
"""

from __future__ import annotations

from crow.core.hooks.run_context import RunContext
from crow.core.messages import context_block
from crow.core.tool_call import run_tools
from crow.core.turn import ask


async def react(ctx: RunContext) -> None:
    """Take turns until nothing is left to do."""
    while await turn(ctx):
        pass


async def turn(ctx: RunContext) -> bool:
    """One request and the tools it calls for; True where another turn is to follow."""
    ctx.check()
    if (now := await ask(ctx)) is None:
        return False
    if now.results:
        await run_tools(ctx, now.results)
    await ctx.agent.hooks.after_turn.fire(now)
    return not ctx.stopping and (bool(now.results) or await go_on(ctx))


async def go_on(ctx: RunContext) -> bool:
    """True where a hook wants more, or the user said something meanwhile."""
    more = await ctx.agent.hooks.on_stop.fire(ctx)
    if more is not None and more.message:
        await ctx.append(context_block(more.message, "on_stop"))
    return more is not None or bool(ctx.session.pending.prompts(by_hooks=False))
