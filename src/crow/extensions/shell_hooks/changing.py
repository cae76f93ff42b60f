"""Settings that change while a session is open: a hook is asked first, then the new hooks run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crow.core.contexts import ConfigContext, SessionContext
from crow.core.verdicts import Deny
from crow.extensions.shell_hooks.joined import NOTHING
from crow.extensions.shell_hooks.sessions import SOURCES, session_begun, session_started
from crow.extensions.shell_hooks.surroundings import watch_files

if TYPE_CHECKING:
    from crow.extensions.shell_hooks.handlers import Handlers

POLICY = "policy_settings"


async def settings_edited(hooks: Handlers, ctx: ConfigContext) -> Deny | None:
    """ConfigChange: a file was edited; nobody refuses the administrator's. A choice is no edit."""
    if not ctx.source:
        return None
    fields = {"source": ctx.source, "file_path": ctx.path}
    joined = await hooks.fire("ConfigChange", ctx, ctx.source, fields)
    if joined.blocked is None or ctx.source == POLICY:
        return None
    return Deny(joined.blocked)


async def tell_beginning(
    hooks: Handlers, others: Handlers, ctx: SessionContext, *, late: bool, hung: bool
) -> None:
    """Tell new hooks that the session has begun, where they could not hear it themselves.

    ``others`` are all that are in force, old ones too. ``late``: it began earlier, without the new
    ones. ``hung``: its beginning will still be told.
    """
    if late and hooks.entries:
        await session_begun(hooks, ctx, SOURCES.get(ctx.source, "startup"))
    elif not late and not hung:
        await session_started(hooks, ctx)
    watch_files(others, ctx, NOTHING)
