"""Tool calls: judged before they run, asked about, looked at afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from crow import Allow, Deny, Stop, ToolResult
from crow.extensions.shell_hooks.joint_outcome import JointOutcome, chained
from crow.extensions.shell_hooks.permission import suggestions, update
from crow.hooks import HookResult
from crow.ports import ServerTool, implements
from crow.tools import ToolName

if TYPE_CHECKING:
    from crow import ToolContext, TurnContext
    from crow.extensions.shell_hooks.handlers import Handlers


def fields_of(ctx: ToolContext) -> dict[str, Any]:
    """What every event about a call is given."""
    name = ctx.call.called(ctx.tool)
    fields: dict[str, Any] = {"tool_name": name, "tool_input": ctx.args}
    if name.startswith("mcp__"):
        unknown = {"name": name[5:].partition("__")[0], "source": "dynamic"}
        tool = ctx.tool
        fields["mcp_server"] = tool.mcp_server if implements(tool, ServerTool) else unknown
    return fields


async def before_call(hooks: Handlers, ctx: ToolContext) -> HookResult | Deny | Stop | None:
    """PreToolUse: the strictest verdict, and the arguments rewritten."""
    fields = {**fields_of(ctx), "tool_use_id": ctx.call.id}
    name = ctx.call.called(ctx.tool)
    joined = _exact(await hooks.fire("PreToolUse", ctx, name, fields), name)
    await hooks.inject(ctx, "PreToolUse", joined, ctx.call.name)
    if joined.stop is not None:
        return Stop(joined.stop or "a PreToolUse hook ended the run")
    if joined.permission == "deny":
        return Deny(joined.blocked or joined.reason)
    args = joined.rewritten(ctx.args)
    if joined.permission in ("ask", "defer") and ctx.session.mode == "dontAsk":
        return Deny(joined.reason or "a hook wants the user asked, and the mode is dontAsk")
    if args is None and joined.permission is None:
        return None
    return HookResult(
        permissionBehavior=joined.permission,
        hookPermissionDecisionReason=joined.reason,
        updatedInput=args,
    )


def _exact(joined: JointOutcome, name: str) -> JointOutcome:
    """What hooks say of a call; what a matcher may mean beside another tool allows nothing."""
    if not isinstance(name, ToolName):
        return joined
    names = [each for _, each in name.exact]
    return JointOutcome(
        [
            (handler, outcome)
            if outcome.permission != "allow" or any(map(handler.test, names))
            else (handler, replace(outcome, permission=None))
            for handler, outcome in joined.outcomes
        ]
    )


async def permission_asked(hooks: Handlers, ctx: ToolContext) -> Allow | Deny | Stop | None:
    """PermissionRequest: an answer in the user's place; deny beats allow."""
    fields = {**fields_of(ctx), "permission_suggestions": suggestions(ctx) or None}
    joined = await hooks.fire("PermissionRequest", ctx, ctx.call.name, fields)
    if joined.stop is not None:
        return Stop(joined.stop or "a PermissionRequest hook ended the run")
    decisions: list[Mapping[str, Any]] = list(joined.answers("decision"))
    for decision in decisions:
        if decision["behavior"] == "deny":
            said = str(decision.get("message") or "denied by a PermissionRequest hook")
            return Stop(said) if decision.get("interrupt") is True else Deny(said)
    args = chained(ctx.args, [d["updatedInput"] for d in decisions if d.get("updatedInput")])
    for decision in decisions:
        for why in await update(ctx, decision.get("updatedPermissions")):
            text = f"PermissionRequest hook: a part of updatedPermissions is left out: {why}"
            await ctx.ui.notify(text, severity="warning")
    if args is not None:
        ctx.args = args
    if joined.unread:  # which may have been a refusal: the user decides
        return None
    return Allow("allowed by a PermissionRequest hook") if decisions else None


async def after_call(hooks: Handlers, ctx: ToolContext) -> None:
    """PostToolUse, PostToolUseFailure or PermissionDenied, by what came of the call."""
    if ctx.result is not None and ctx.outcome != "ok":
        hooks.memory(ctx).transcript.failed.add(ctx.call.id)
    fields = {**fields_of(ctx), "tool_use_id": ctx.call.id}
    timed = {"duration_ms": round(ctx.duration * 1000)}
    match ctx.outcome:
        case "ok" | "answered":
            result = ToolResult.of(ctx.result)
            response = result.text if result.data is None else result.data
            fields |= {"tool_response": response, **timed}
            joined = await hooks.fire("PostToolUse", ctx, ctx.call.called(ctx.tool), fields)
            await replace_output(ctx, joined)
        case "error" if not ctx.faulty:
            fields |= {"error": ctx.output, "is_interrupt": False, **timed}
            name = ctx.call.called(ctx.tool)
            joined = await hooks.fire("PostToolUseFailure", ctx, name, fields)
        case "denied":
            fields["reason"] = ctx.output
            joined = await hooks.fire("PermissionDenied", ctx, ctx.call.name, fields)
            if joined.last("retry"):
                await ctx.inject_context(f"{ctx.call.name}: a hook says that it may be tried again")
        case _:
            return
    event = {"error": "PostToolUseFailure", "denied": "PermissionDenied"}.get(ctx.outcome)
    await hooks.inject(ctx, event or "PostToolUse", joined, ctx.call.name)
    if joined.stop is not None:
        ctx.stop(joined.stop or "a hook ended the run")


async def replace_output(ctx: ToolContext, joined: JointOutcome) -> None:
    """Put a hook's output in the place of the tool's, where it has the same shape."""
    value = joined.last("updatedToolOutput")
    is_mcp = ctx.call.name.startswith("mcp__")
    if value is None and is_mcp:
        value = joined.last("updatedMCPToolOutput")
    if value is None:
        return
    result = ToolResult.of(ctx.result)
    if not is_mcp and not result.resembles(value):
        text = f"updatedToolOutput of a hook has not the shape of what {ctx.call.name} gives"
        await ctx.ui.notify(f"{text}: it is left out", severity="warning")
        return
    ctx.result = result.updated(value)


async def batch_done(hooks: Handlers, ctx: TurnContext) -> None:
    """PostToolBatch: all calls of one message are answered."""
    if not ctx.results:
        return
    calls = [
        {
            "tool_name": call.call.name,
            "tool_input": call.args,
            "tool_use_id": call.call.id,
            "tool_response": call.output,
        }
        for call in ctx.results
    ]
    joined = await hooks.fire("PostToolBatch", ctx, "", {"tool_calls": calls})
    if joined.stop is not None or joined.blocked is not None:
        ctx.stop(joined.stop or joined.blocked or "a PostToolBatch hook ended the run")
    await hooks.inject(ctx, "PostToolBatch", joined)
