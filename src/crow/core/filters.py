"""Filters by tool that name none: such a hook never runs, and nobody would know why."""

from __future__ import annotations

import logging

from crow.core.context import RunContext
from crow.core.errors import nearest
from crow.core.hook import Hook, place_of

logger = logging.getLogger("crow.hooks")

ALIKE = 0.75
"""How much a name must be like a tool's to be taken for a slip."""


async def name_slips(ctx: RunContext) -> None:
    """Tell the user once of each hook whose ``tools`` name no tool, with the one that is near.

    Where none is near, a hook may be for tools of other agents: that stands in the log alone.
    """
    session = ctx.session
    if session.parent is not None:  # a sub-agent has fewer tools, and the hooks of all
        return
    known: dict[str, str] = {}
    for point in ctx.agent.hooks.points.values():
        for hook in point.line(session):
            if not hook.tools or hook.checked:
                continue
            hook.checked = True
            known = known or {name.casefold(): name for name in ctx.agent.tools_of(session)}
            if hook.tools.isdisjoint(known):
                await _tell(ctx, hook, hook.tools, known)


async def _tell(ctx: RunContext, hook: Hook, tools: frozenset[str], known: dict[str, str]) -> None:
    slips = {name: known[near] for name in sorted(tools) if (near := nearest(name, known, ALIKE))}
    text = f"the hook {hook} is for tools that there are not ({place_of(hook)})"
    for name, near in slips.items():
        text += f": {name!r}, did you mean {near!r}?"
    if slips:
        logger.warning("%s", text)
        await ctx.ui.notify(text, severity="warning")
    else:
        logger.info("%s: %s", text, ", ".join(sorted(tools)))
