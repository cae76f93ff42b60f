"""Prompts, replies and the end of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crow import Continue, Deny, Stop
from crow.errors import ModelError
from crow.events import TitleChanged
from crow.extensions.shell_hooks.display import show_written
from crow.extensions.shell_hooks.environment import DEEPEST, depth
from crow.extensions.shell_hooks.joint_outcome import JointOutcome
from crow.extensions.shell_hooks.payload import background_tasks, model_of
from crow.extensions.shell_hooks.request_events import after_response
from crow.messages import text_of

if TYPE_CHECKING:
    from crow import CommandContext, Context, ErrorContext, RunContext, TurnContext
    from crow.extensions.shell_hooks.handlers import Handlers

CUT_OFF = "the answer is longer than the model may write at once"
FAULTS = {
    "rate_limit": "rate_limit",
    "overloaded": "overloaded",
    "authentication": "authentication_failed",
    "billing": "billing_error",
    "model_not_found": "model_not_found",
    "context_length": "invalid_request",
    "invalid_request": "invalid_request",
    "server": "server_error",
    "network": "server_error",
    "timeout": "server_error",
}


async def prompted(hooks: Handlers, ctx: RunContext) -> Deny | Stop | None:
    """UserPromptSubmit; a sub-agent's task is no prompt of the user's."""
    if depth() >= DEEPEST:
        return Deny(f"hooks have started Crow {DEEPEST} times inside each other")
    if ctx.session.parent is not None:
        return None
    fields = {
        "prompt": text_of(ctx.prompt),
        "session_title": ctx.session.title or None,
        "source": "user" if ctx.shown else None,
    }
    joined = await hooks.fire("UserPromptSubmit", ctx, "", fields)
    verdict = refused(joined, "UserPromptSubmit")
    if verdict is None:
        for handler, outcome in joined.outcomes:
            rewritten = outcome.output.specific.get("updatedPrompt")
            if rewritten and handler.own:
                ctx.prompt = rewritten
        await hooks.inject(ctx, "UserPromptSubmit", joined)
        await bring_up(hooks, ctx)
        await entitle(ctx, joined)
    return verdict


async def bring_up(hooks: Handlers, ctx: RunContext) -> None:
    """Hand over what waits for a prompt that the model answers."""
    if text_of(ctx.prompt).startswith("/"):
        return
    later = hooks.memory(ctx).later
    while later:
        await ctx.inject_context(later.pop(0))


async def expanded(hooks: Handlers, ctx: CommandContext) -> Deny | Stop | None:
    """UserPromptExpansion."""
    assert ctx.run is not None
    fields = {
        "expansion_type": "mcp_prompt" if ctx.command.startswith("mcp__") else "slash_command",
        "command_name": ctx.command,
        "command_args": ctx.args,
        "prompt": text_of(ctx.run.prompt),
    }
    joined = await hooks.fire("UserPromptExpansion", ctx, ctx.command, fields)
    verdict = refused(joined, "UserPromptExpansion")
    if verdict is None:
        await hooks.inject(ctx, "UserPromptExpansion", joined)
    return verdict


def refused(joined: JointOutcome, event: str) -> Deny | Stop | None:
    """The verdict at an event where blocking refuses; the reason is the user's."""
    if joined.stop is not None:
        return Stop(joined.stop or f"a {event} hook ended the run")
    return None if joined.blocked is None else Deny(joined.blocked)


async def entitle(ctx: Context, joined: JointOutcome) -> None:
    """Give the session the title that a hook wants."""
    title = joined.last("sessionTitle")
    if title:
        ctx.session.title = title
        await ctx.emit(TitleChanged(title))


async def replied(hooks: Handlers, ctx: TurnContext) -> Stop | None:
    """MessageDisplay and AfterModel; and what the transcript wants to know of the reply."""
    session, reply = ctx.session, ctx.reply
    if reply.usage is not None:
        model = reply.model or model_of(ctx) or ""
        hooks.memory(ctx).transcript.usages[session.next_message_id] = reply.usage, model
    await show_written(hooks, ctx)
    return await after_response(hooks, ctx)


async def finished(hooks: Handlers, ctx: RunContext) -> Continue | Stop | None:
    """Stop, or SubagentStop in a sub-agent; StopFailure for an answer that was cut off."""
    session = ctx.session
    if ctx.stop_reason == "max_tokens" and session.parent is None:
        await failed(hooks, ctx, "max_output_tokens", CUT_OFF)
        return None
    event = "Stop" if session.parent is None else "SubagentStop"
    fields: dict[str, Any] = {
        "stop_hook_active": ctx.count > 0,
        "last_assistant_message": ctx.reply.text or None,
        "background_tasks": background_tasks(session),
        "session_crons": [],
    }
    if session.parent is not None:
        path = hooks.memory(ctx).transcript.path
        fields |= {"agent_transcript_path": str(path)}
    joined = await hooks.fire(event, ctx, session.agent_type, fields)
    if joined.stop is not None:
        return Stop(joined.stop or f"a {event} hook ended the run")
    reasons = [*joined.blocks, *joined.contexts]
    if not reasons:
        return None
    return Continue(f"{event} hook feedback:\n" + "\n".join(reasons))


async def broken(hooks: Handlers, ctx: ErrorContext) -> None:
    """StopFailure: the model or the loop failed."""
    if ctx.where not in ("model", "loop") or ctx.session.parent is not None:
        return
    error = ctx.error
    kind = FAULTS.get(error.kind, "unknown") if isinstance(error, ModelError) else "unknown"
    text = str(error) or type(error).__name__
    await failed(hooks, ctx, kind, text)


async def failed(hooks: Handlers, ctx: Context, kind: str, text: str) -> None:
    """StopFailure."""
    fields = {"error": kind, "error_details": text, "last_assistant_message": text}
    await hooks.fire("StopFailure", ctx, kind, fields)
