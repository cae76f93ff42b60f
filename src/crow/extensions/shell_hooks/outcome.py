"""The outcome of one handler's run: it said something, blocked, failed, or was given up."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from crow.dataclasses import frozen
from crow.extensions.shell_hooks.event import Event
from crow.extensions.shell_hooks.handler import Handler
from crow.extensions.shell_hooks.output import SILENCE, Output, RawOutput, read
from crow.hooks import HookResult

Kind = Literal["success", "blocking", "non_blocking_error", "cancelled"]
Permission = Literal["allow", "ask", "defer", "deny"]


@frozen
class Outcome:
    """The outcome of one handler's run.

    ``block`` is the reason where it blocks, ``permission`` what it says to a call, ``stop`` the
    reason where everything is to end. ``context`` is for the model, ``message`` for the user.
    ``notice`` is an error that the user is told of.
    """

    kind: Kind = "success"
    output: Output = SILENCE
    block: str | None = None
    permission: Permission | None = None
    reason: str = ""
    stop: str | None = None
    context: str = ""
    message: str = ""
    notice: str = ""


def concluded(handler: Handler, printed: RawOutput) -> Outcome:
    """What a handler that ran to its end means."""
    event = handler.event
    output = read(event, printed.stdout)
    if printed.code == 2:
        return _refusal(handler, output, printed)
    if output.fault:
        return failed(handler, output.fault, unread=output.unread)
    if output.fields is not None:
        return outcome_of(event, output)
    if printed.code:
        return failed(handler, _status(printed))
    return Outcome(context=output.plain if event.plain else "", output=output)


def outcome_of(event: Event, output: Output) -> Outcome:
    """What a valid object means."""
    result = HookResult.of(output.fields or {})
    is_stop = result.preventContinuation and not event.quiet
    outcome = Outcome(
        output=output,
        context=result.additionalContext or "",
        message="" if event.quiet else str(result.systemMessage or ""),
        stop=result.stopReason or "" if is_stop else None,
    )
    if event.name in ("PreToolUse", "PreModelSwitch"):
        return _permission(outcome, result)
    if result.blockingError is not None and event.blocking in ("block", "tell"):
        return replace(outcome, kind="blocking", block=result.blockingError or "blocked by a hook")
    return outcome


def _permission(outcome: Outcome, result: HookResult) -> Outcome:
    """The verdict on a call, the old spelling included."""
    permission = result.permissionBehavior
    reason = result.hookPermissionDecisionReason or ""
    if permission is None and result.blockingError is not None:
        permission, reason = "deny", str(result.blockingError)
    if permission == "deny":
        block = reason or "denied by a hook"
        return replace(outcome, kind="blocking", permission="deny", reason=reason, block=block)
    return replace(outcome, permission=permission, reason=reason)


def _refusal(handler: Handler, output: Output, printed: RawOutput) -> Outcome:
    """Exit status 2 blocks, whatever else was printed."""
    event = handler.event
    stderr = printed.stderr.strip()
    outcome = outcome_of(event, output) if output.fields is not None else Outcome(output=output)
    if event.blocking == "ignore":
        return replace(outcome, block=None)
    if event.blocking == "user":
        return replace(outcome, block=None, notice=f"{event.name} hook: {stderr}" if stderr else "")
    reason = outcome.block or stderr or f"[{handler}]: blocked without a reason"
    permission: Permission | None = "deny" if event.name.startswith("Pre") else None
    return replace(outcome, kind="blocking", block=reason, permission=permission, reason=reason)


def failed(
    handler: Handler, why: str, *, kind: Kind = "non_blocking_error", unread: bool = False
) -> Outcome:
    """A handler that could not say anything; it blocks only where it is meant to.

    ``unread``: it said something that nobody can read, and what that was may have been a refusal.
    """
    notice = f"{handler.event.name} hook [{handler}] failed: {why}"
    closed = handler.blocks or (unread and handler.must_decide)
    closed = closed or (handler.event.name == "PreModelSwitch" and kind == "cancelled")
    if closed and not handler.detached and handler.event.blocking in ("block", "tell"):
        reason = f"the hook [{handler}] could not decide: {why}"
        return Outcome("blocking", block=reason, permission="deny", reason=reason, notice=notice)
    return Outcome(kind, Output(fault=why, unread=unread), notice=notice)


def _status(printed: RawOutput) -> str:
    first = next(iter(printed.stderr.strip().splitlines()), "nothing on standard error")
    return f"exit status {printed.code}: {first}"
