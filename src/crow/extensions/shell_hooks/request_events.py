"""Requests to the model: Crow's own events BeforeModel and AfterModel."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any

from crow import Stop
from crow.extensions.shell_hooks.joint_outcome import JointOutcome
from crow.extensions.shell_hooks.memory import NAME
from crow.extensions.shell_hooks.payload import model_of
from crow.messages import context_block, text_of

if TYPE_CHECKING:
    from crow import TurnContext
    from crow.extensions.shell_hooks.handlers import Handlers


async def before_request(hooks: Handlers, ctx: TurnContext) -> Stop | None:
    """BeforeModel: may end the run, or tell the model something in this very request."""
    last = ctx.messages[-1] if ctx.messages else None
    fields: dict[str, Any] = {
        "model": ctx.model or model_of(ctx),
        "message_count": len(ctx.messages),
        "tool_count": len(ctx.tools),
        "last_message": last and {"role": last["role"], "content": text_of(last.get("content"))},
    }
    joined = await hooks.fire("BeforeModel", ctx, fields["model"] or "", fields)
    verdict = stopped(joined, "BeforeModel")
    if verdict is None:
        for text in joined.contexts:
            block = context_block(f"BeforeModel hook additional context: {text}", NAME)
            await ctx.append(block)
            ctx.messages = [*ctx.messages, block]
        ctx.request.message_id = ctx.session.next_message_id
    hooks.memory(ctx).asked = monotonic()
    return verdict


async def after_response(hooks: Handlers, ctx: TurnContext) -> Stop | None:
    """AfterModel: may end the run before any tool runs, or tell the model something next."""
    reply = ctx.reply
    model = reply.model or ctx.model or model_of(ctx)
    asked = hooks.memory(ctx).asked
    fields: dict[str, Any] = {
        "model": model,
        "last_assistant_message": reply.text,
        "tool_calls": [
            {"tool_use_id": call.id, "tool_name": call.name, "tool_input": call.args}
            for call in reply.calls
        ],
        "finish_reason": reply.finish,
        "request_usage": reply.usage,
        "duration_ms": asked and round((monotonic() - asked) * 1000),
    }
    joined = await hooks.fire("AfterModel", ctx, model or "", fields)
    verdict = stopped(joined, "AfterModel")
    if verdict is None:
        await hooks.inject(ctx, "AfterModel", joined)
    return verdict


def stopped(joined: JointOutcome, event: str) -> Stop | None:
    """The end of the run, where a hook wants that."""
    if joined.stop is not None:
        return Stop(joined.stop or f"a {event} hook ended the run")
    return None if joined.blocked is None else Stop(joined.blocked)
