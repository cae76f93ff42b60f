"""The loop: ask the model, run the tools it calls, repeat.

It knows when a hook point fires and never what hangs there.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from time import perf_counter

from crow.core.asking import ask_user
from crow.core.context import RunContext, ToolContext, TurnContext
from crow.core.errors import ModelError
from crow.core.events import ToolPending, ToolStarted
from crow.core.ports import Completion
from crow.core.verdicts import Ask


async def react(ctx: RunContext) -> None:
    """Take turns until nothing is left to do."""
    while await turn(ctx):
        pass


async def turn(ctx: RunContext) -> bool:
    """One request and the tools it calls for; True where another turn is to follow."""
    ctx.check()
    if (now := await ask(ctx)) is None:
        return False
    if now.reply.calls:
        now.results = await run(ctx, now)
    await ctx.agent.hooks.after_turn.fire(now)
    return not ctx.stopping and (bool(now.results) or await go_on(ctx))


async def ask(ctx: RunContext) -> TurnContext | None:
    """Ask the model; its reply is in the history afterwards. None where a hook stopped before."""
    hooks = ctx.agent.hooks
    await ctx.deliver()
    now = ctx.new_turn()
    await hooks.before_llm_request.fire(now)
    if ctx.stopping:
        return None
    now.reply = await hooks.around_llm_request.fire(now, lambda: stream(now))
    ctx.check()
    now.count()
    await hooks.after_llm_response.fire(now)
    await now.store_reply()
    return now


async def stream(now: TurnContext) -> Completion:
    """Show the reply while it comes."""
    async with aclosing(now.agent.llm.stream(now.whole_request())) as deltas:
        async for delta in deltas:
            if isinstance(delta, Completion):
                return delta
            await now.show(delta)
    raise ModelError("the model ended without an answer", kind="protocol")


async def run(ctx: RunContext, now: TurnContext) -> list[ToolContext]:
    """Run the calls of a reply: gates one by one, then all together, results in order."""
    calls = [ctx.open_call(call) for call in now.reply.calls]
    try:
        for call in calls:
            await permitted(call)
        await together([call for call in calls if call.result is None])
    finally:
        for call in calls:
            await call.settle()
        await ctx.close_calls()
    return calls


async def permitted(call: ToolContext) -> None:
    """Settle a call that must not run; leave the others open."""
    await call.emit(ToolPending(call.call, call.title, call.kind, call.locations))
    if not call.run.stopping and call.prepare():
        ruling = await call.agent.hooks.before_tool.fire(call, ToolContext.check)
        if isinstance(ruling.verdict, Ask) and call.result is None:
            ruling = await ask_user(call, ruling, ruling.verdict)
        call.run.check()
        call.rule(ruling)
    if call.run.stopping or call.result is not None:
        await call.settle()


async def together(calls: list[ToolContext]) -> None:
    """Execute calls side by side and wait for all of them."""
    if len(calls) == 1:
        await execute(calls[0])
    elif calls:
        ended = await asyncio.gather(*map(execute, calls), return_exceptions=True)
        for error in filter(None, ended):
            raise error


async def execute(call: ToolContext) -> None:
    """Run one tool; whatever it raises becomes its result."""
    started = perf_counter()
    try:
        await call.emit(ToolStarted(call.call, call.args, call.title))
        result = await call.agent.hooks.around_tool.fire(call, call.execute)
        call.run.check()
        call.succeed(result)
    except Exception as error:  # noqa: BLE001 - a tool may raise anything
        await call.fail_with(error)
    finally:
        call.duration = perf_counter() - started
        await call.settle()


async def go_on(ctx: RunContext) -> bool:
    """True where a hook wants more, or the user said something meanwhile."""
    more = await ctx.agent.hooks.on_stop.fire(ctx)
    if more is not None:
        await ctx.keep_going(more)
    return more is not None or ctx.steered
