"""Settings that change while a session is open: a hook is asked first, then the new hooks run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crow.core.contexts import ConfigContext, SessionContext
from crow.core.session import Session
from crow.core.verdicts import Deny
from crow.extensions.shell_hooks import sessions, surroundings
from crow.extensions.shell_hooks.joined import NOTHING
from crow.extensions.shell_hooks.memory import root_of

if TYPE_CHECKING:
    from crow.extensions.shell_hooks.hook import ShellHooks

REPLACED = "shell_hooks.replaced"
POLICY = "policy_settings"


async def edited(hooks: ShellHooks, ctx: ConfigContext) -> Deny | None:
    """ConfigChange: a file was edited; nobody refuses the administrator's. A choice is no edit."""
    if not ctx.source:
        return None
    fields = {"source": ctx.source, "file_path": ctx.path}
    joined = await hooks.fire("ConfigChange", ctx, ctx.source, fields)
    if joined.blocked is None or ctx.source == POLICY:
        return None
    return Deny(joined.blocked)


def in_force(hooks: ShellHooks, session: Session) -> ShellHooks:
    """The hooks of a session and of its sub-agents: these, or what has replaced them there."""
    return root_of(session).cache.get(REPLACED, hooks)


async def begin(
    hooks: ShellHooks, others: ShellHooks, ctx: SessionContext, *, late: bool, hung: bool
) -> None:
    """Tell new hooks that the session has begun, where they could not hear it themselves.

    ``others`` are all that are in force, old ones too. ``late``: it began earlier, without the new
    ones. ``hung``: its beginning will still be told.
    """
    if late and hooks.entries:
        await sessions.begun(hooks, ctx, sessions.SOURCES.get(ctx.source, "startup"))
    elif not late and not hung:
        await sessions.started(hooks, ctx)
    surroundings.watch(others, ctx, NOTHING)
