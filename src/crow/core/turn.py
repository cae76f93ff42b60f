"""A turn, from the request to the stored reply."""

from __future__ import annotations

import logging
from contextlib import aclosing

from crow.core.context import Context, RunContext
from crow.core.contexts import TurnContext
from crow.core.errors import ModelError
from crow.core.events import StopReason, TextDelta, UsageReported
from crow.core.history import flaw, repaired
from crow.core.messages import Message, add_usage
from crow.core.ports import Completion, Delta, Request
from crow.core.validation import fits

logger = logging.getLogger("crow.hooks")

FINISHED: dict[str, StopReason] = {"length": "max_tokens", "content_filter": "refusal"}


async def ask(ctx: RunContext) -> TurnContext | None:
    """Ask the model; its reply is in the history afterwards. None where a hook stopped before."""
    hooks = ctx.agent.hooks
    await deliver(ctx)
    now = TurnContext(ctx, ctx.agent.request_of(ctx.session))
    await hooks.before_llm_request.fire(now)
    if ctx.stopping:
        return None
    now.reply = await hooks.around_llm_request.fire(now, lambda: stream(now))
    ctx.check()
    count(now)
    await hooks.after_llm_response.fire(now)
    await store(now)
    return now


async def deliver(ctx: Context) -> None:
    """Put injected context at the end of the history; only where that is whole."""
    await ctx.heal()
    pending = ctx.session.pending
    while pending:
        message = pending[0]
        pending.put(pending[1:])
        if fits(Message)(message) and flaw([message]) is None:
            await ctx.append(message)
        else:
            logger.warning("left out what is no message for the model: %.60r", message)


async def stream(now: TurnContext) -> Completion:
    """Show the reply while it comes."""
    request = whole(now)
    point = now.agent.hooks.on_llm_request
    if point.chain(now.session):
        await point.fire(point.context(now.run, request))
    async with aclosing(now.agent.llm.stream(request)) as deltas:
        async for delta in deltas:
            if isinstance(delta, Completion):
                return delta
            await show(now, delta)
    raise ModelError("the model ended without an answer", kind="protocol")


def whole(now: TurnContext) -> Request:
    """The request, whatever hooks have made of it; a history that nobody touched is whole."""
    request, history = now.request, now.session.history
    touched = request.messages is not history or history.before is not None
    if touched and (wrong := flaw(request.messages)) is not None:
        logger.warning("a message was changed in place, and the request repaired: %s", wrong)
        request.messages = repaired(request.messages)
    return request


async def show(now: TurnContext, delta: Delta) -> None:
    """Tell the client what the model is saying."""
    now.run.check()
    if type(delta) is TextDelta:
        now.run.partial.add(delta.text)
    await now.emit(delta)


def count(now: TurnContext) -> None:
    """Count the reply's tokens, as if it stood in the history already."""
    total, reply = now.run.reply, now.reply
    now.session.report(reply.usage, ahead=reply.message() is not None)
    total.usage = add_usage(total.usage, reply.usage)


async def store(now: TurnContext) -> None:
    """Put the model's answer into the history and tell of its tokens."""
    run, reply, session = now.run, now.reply, now.session
    run.partial.take()
    message = reply.message()
    if message is not None:
        await now.append(message)
    run.reply.text = reply.text
    run.reply.stop_reason = FINISHED.get(reply.finish, "end_turn")
    if reply.usage is not None:
        window = now.agent.context_window(session)
        tokens = session.tokens(window)["total_tokens"]
        await now.emit(UsageReported(reply.usage, session.usage, tokens, window))
