"""Sessions: beginning and end, compaction, the model, notices, and other extensions' events."""

from __future__ import annotations

import asyncio
import re
from copy import copy
from typing import TYPE_CHECKING, Any

from crow import Answer, Ask, Deny
from crow.events import ConfigChanged
from crow.extensions.shell_hooks.joint_outcome import NOTHING
from crow.extensions.shell_hooks.payload import model_of
from crow.extensions.shell_hooks.project_events import (
    env_file,
    forget_variables,
    keep_variables,
    watch_files,
)
from crow.extensions.shell_hooks.prompt_events import entitle, refused
from crow.extensions.shell_hooks.spill import capped
from crow.keys import ENV_FILE, FIRST_PROMPT
from crow.messages import text_of

if TYPE_CHECKING:
    from crow import (
        CompactContext,
        ConfigContext,
        Context,
        NotificationContext,
        SessionContext,
        Stop,
        UpdateContext,
    )
    from crow.extensions.shell_hooks.handlers import Handlers

SOURCES = {"new": "startup", "load": "resume", "resume": "resume", "fork": "fork"}
POLICY = "policy_settings"
REASONS = {"replaced": "resume", "prompt_input_exit": "prompt_input_exit", "logout": "logout"}


async def session_started(hooks: Handlers, ctx: SessionContext) -> None:
    """SessionStart at the beginning of a session."""
    memory = hooks.memory(ctx)
    memory.model = model_of(ctx)
    if not memory.is_set_up:
        forget_variables(hooks, ctx)
    await session_begun(hooks, ctx, SOURCES.get(ctx.source, "startup"))


async def session_begun(hooks: Handlers, ctx: Context, source: str) -> None:
    """SessionStart, whatever it is that begins."""
    session = ctx.session
    fields: dict[str, Any] = {
        "source": source,
        "model": model_of(ctx),
        "session_title": session.title or None,
    }
    if source in ("resume", "fork") and any(m["role"] == "assistant" for m in session.messages):
        fields["context_tokens"] = session.tokens()["total_tokens"]
        fields["seconds_since_last_response"] = hooks.memory(ctx).transcript.seconds_since_last()
    path = env_file(hooks, ctx, "SessionStart", source)
    joined = await hooks.fire("SessionStart", ctx, source, fields, env_file=path)
    keep_variables(hooks, ctx, path)
    watch_files(hooks, ctx, joined)
    await hooks.inject(ctx, "SessionStart", joined)
    if source != "compact":
        await entitle(ctx, joined)
    if first := joined.last("initialUserMessage"):
        FIRST_PROMPT.set(session, capped(first, hooks.memory(ctx).folder))


async def begun_late(hooks: Handlers, before: Handlers, ctx: SessionContext) -> None:
    """Tell the handlers that were not there ``before`` that the session has begun."""
    fresh = hooks.fresh(before)
    if fresh.entries:
        await session_begun(fresh, ctx, SOURCES.get(ctx.source, "startup"))
    watch_files(hooks, ctx, NOTHING)


async def subagent_started(hooks: Handlers, ctx: SessionContext) -> None:
    """SubagentStart; a sub-agent's commands find the variables of its caller's session."""
    session = ctx.session
    above = ENV_FILE.get(session.root)
    if above is not None:
        ENV_FILE.set(session, above)
    fields = {"agent_id": session.id, "agent_type": session.agent_type}
    joined = await hooks.fire("SubagentStart", ctx, session.agent_type, fields)
    await hooks.inject(ctx, "SubagentStart", joined)


async def session_ended(hooks: Handlers, ctx: SessionContext) -> None:
    """SessionEnd."""
    reason = REASONS.get(ctx.reason, "other")
    await hooks.fire("SessionEnd", ctx, reason, {"reason": reason})


async def compacting(hooks: Handlers, ctx: CompactContext) -> Deny | None:
    """PreCompact."""
    trigger = "manual" if ctx.trigger == "manual" else "auto"
    fields = {"trigger": trigger, "custom_instructions": instructions(ctx)}
    joined = await hooks.fire("PreCompact", ctx, trigger, fields)
    if joined.blocked is None:
        return None
    if trigger == "manual":
        await ctx.ui.notify(f"PreCompact hook: {joined.blocked}", severity="warning")
    return Deny(joined.blocked)


def instructions(ctx: CompactContext) -> str | None:
    """What the user typed behind the command that compacts; empty where nobody typed one."""
    if ctx.trigger != "manual":
        return ""
    typed = text_of(ctx.run.prompt) if ctx.run is not None else ""
    return typed.partition(" ")[2].strip() or None


async def compacted(hooks: Handlers, ctx: CompactContext) -> None:
    """PostCompact and then SessionStart; a history that is begun anew ends and starts a session.

    In a sub-agent no session starts or ends.
    """
    is_main = ctx.session.parent is None
    if ctx.trigger != "restart":
        trigger = "manual" if ctx.trigger == "manual" else "auto"
        fields = {"trigger": trigger, "compact_summary": ctx.summary}
        await hooks.fire("PostCompact", ctx, trigger, fields)
        if is_main:
            await session_begun(hooks, ctx, "compact")
    elif is_main:
        await hooks.fire("SessionEnd", ctx, "clear", {"reason": "clear"})
        forget_variables(hooks, ctx)
        await session_begun(hooks, ctx, "clear")


async def settings_edited(hooks: Handlers, ctx: ConfigContext) -> Deny | None:
    """ConfigChange: a file was edited; nobody refuses the administrator's. A choice is no edit."""
    if not ctx.source:
        return None
    fields = {"source": ctx.source, "file_path": ctx.path}
    joined = await hooks.fire("ConfigChange", ctx, ctx.source, fields)
    if joined.blocked is None or ctx.source == POLICY:
        return None
    return Deny(joined.blocked)


async def model_switching(hooks: Handlers, ctx: ConfigContext) -> Ask | Deny | Stop | None:
    """PreModelSwitch; who takes too long refuses."""
    wanted = ctx.changes.get("model")
    if "model" not in ctx.changes:
        return None
    hooks.memory(ctx).model = model_of(ctx)
    fields = switch_fields(hooks, ctx, wanted)
    joined = await hooks.fire("PreModelSwitch", ctx, str(wanted), fields)
    if joined.permission in ("ask", "defer") and joined.stop is None:
        return Ask(joined.reason or f"Switch to the model {wanted}?")
    return refused(joined, "PreModelSwitch")


async def model_switched(hooks: Handlers, ctx: UpdateContext) -> None:
    """PostModelSwitch."""
    if isinstance(ctx.update, ConfigChanged):
        wanted = ctx.update.changes.get("model")
        fields = switch_fields(hooks, ctx, wanted)
        joined = await hooks.fire("PostModelSwitch", ctx, str(wanted), fields)
        hooks.memory(ctx).model = wanted
        await hooks.inject(ctx, "PostModelSwitch", joined)


def switch_fields(hooks: Handlers, ctx: Context, wanted: Any) -> dict[str, Any]:
    """What both events of a model switch are given."""
    typed = any(text_of(run.prompt).startswith("/") for run in ctx.session.runs)
    return {
        "from_model": hooks.memory(ctx).model,
        "to_model": wanted,
        "requested_model": wanted,
        "source": "command" if typed else "picker",
        "context_tokens": ctx.session.tokens()["total_tokens"],
    }


OUR_WORDS = re.compile(
    r"Crow (?P<said>is waiting for your input|needs your permission to use [^:]+)(?::.*)?",
    re.DOTALL,
)


def in_their_words(message: str) -> str:
    """A notification as Claude Code words it: scripts compare that."""
    ours = OUR_WORDS.fullmatch(message)
    return f"Claude {ours['said']}" if ours else message


async def notified(hooks: Handlers, ctx: NotificationContext) -> None:
    """Notification; nobody waits for it, least of all the user's question that it tells of."""
    fields = {"message": in_their_words(ctx.message), "notification_type": ctx.kind}
    fired = hooks.fire("Notification", copy(ctx), ctx.kind, fields)
    hooks.memory(ctx).watch(asyncio.create_task(fired))


async def task_created(hooks: Handlers, ctx: Any) -> Deny | None:
    """TaskCreated: a step of the plan."""
    joined = await hooks.fire("TaskCreated", ctx, "", task_fields(ctx))
    return None if joined.blocked is None else Deny(joined.blocked)


async def task_completed(hooks: Handlers, ctx: Any) -> Deny | Stop | None:
    """TaskCompleted: a step of the plan is done."""
    joined = await hooks.fire("TaskCompleted", ctx, "", task_fields(ctx))
    return refused(joined, "TaskCompleted")


def task_fields(ctx: Any) -> dict[str, Any]:
    """What is said of a step."""
    return {name: getattr(ctx, name) for name in ("task_id", "task_subject", "task_description")}


async def instructions_loaded(hooks: Handlers, ctx: Any) -> None:
    """InstructionsLoaded."""
    names = ("file_path", "memory_type", "load_reason", "trigger_file_path", "parent_file_path")
    fields = {name: getattr(ctx, name) for name in names}
    await hooks.fire("InstructionsLoaded", ctx, ctx.load_reason, fields)


ASKED = ("mcp_server_name", "message", "mode", "url", "elicitation_id", "requested_schema")


async def elicitation_asked(hooks: Handlers, ctx: Any) -> Answer | Deny | None:
    """Elicitation: a server asks; a hook may answer."""
    fields = {name: getattr(ctx, name) or None for name in ASKED}
    joined = await hooks.fire("Elicitation", ctx, ctx.mcp_server_name, fields)
    if joined.blocked is not None:
        return Deny(joined.blocked)
    action = joined.last("action")
    return Answer({"action": action, "content": joined.last("content")}) if action else None


async def elicitation_answered(hooks: Handlers, ctx: Any) -> Deny | None:
    """ElicitationResult: the user answered; a hook may answer otherwise."""
    names = ("mcp_server_name", "action", "mode", "elicitation_id", "content")
    fields = {name: getattr(ctx, name) for name in names}
    joined = await hooks.fire("ElicitationResult", ctx, ctx.mcp_server_name, fields)
    if joined.blocked is not None:
        return Deny(joined.blocked)
    action = joined.last("action")
    if action:
        ctx.action, ctx.content = action, joined.last("content")
    return None
