"""The outcome of a hook's run, and who is told: the trace, the log, ``on_error``, the user."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from crow.core.errors import hint_of, nearest, text_of
from crow.core.hooks.context import Context
from crow.core.hooks.contexts import ToolContext
from crow.core.hooks.hook import Hook, place_of
from crow.core.hooks.proxy import copied
from crow.core.hooks.run_context import RunContext
from crow.core.messages import Message
from crow.core.support.tasks import Errand
from crow.core.trace import Record

logger = logging.getLogger("crow.hooks")

CROW = "crow"
"""Where extensions come from that come with Crow."""
ALIKE = 0.75
"""How much a name must be like a tool's to be taken for a slip."""
NOTHING_MORE: Mapping[str, Any] = MappingProxyType({})


class Ran:
    """The outcome of one run of a hook; ``values`` is what the trace is to keep of it.

    ``touched`` is the history before somebody changed it, as it was when the hook was called.
    ``unfinished`` says that there is more to do than to take its answer: to wait for that, or to
    look at what the hook has done; ``hurried`` that its run was cancelled before.
    """

    answer: Any = None
    changed: tuple[str, ...] = ()
    errand: Errand | None = None
    error: BaseException | None = None
    has_cancelled: bool = False
    hurried: bool = False
    seconds: float = 0.0
    unfinished: bool = True
    values: Mapping[str, Any] = NOTHING_MORE

    def __init__(self, began: float, touched: list[Message] | None) -> None:
        self.began = began
        self.touched = touched

    def keep(self, name: str, value: object) -> None:
        """Let the trace have a value."""
        self.values = {**self.values, name: value}


def note(hook: Hook, ctx: Context, ran: Ran, answer: object = None) -> None:
    """Put a run of a hook into the session's trace."""
    call = ctx.call.id if isinstance(ctx, ToolContext) else None
    changed, session = ran.changed, ctx.session
    hooks = ctx.agent.hooks
    watchers = hooks.watching(session, hook.event)
    if not (answer is not None or ran.error is not None or changed or ran.values or watchers):
        session.trace.add((hook.role, ran.seconds, call))
        return
    for name in changed:
        value: Any = getattr(ctx, name, None)
        if value is not None and not isinstance(value, list):
            ran.keep(name, copied(value))
    error = None if ran.error is None else described(hook, ran.error)
    owner = hook.owner.name
    made = (
        hook.role.moment,
        owner,
        hook.name,
        answer,
        changed,
        error,
        ran.seconds,
        call,
        {**ran.values},
    )
    if watchers:
        tell(ctx, Record(*made), watchers)
    else:
        session.trace.add(made)


def tell(ctx: Context, record: Record, watchers: Iterable[Callable[..., None]]) -> None:
    """Put a record into the trace and let those know who look on."""
    ctx.session.trace.add(record)
    for watcher in watchers:
        try:
            watcher(record, ctx)
        except Exception as failure:  # noqa: BLE001 - who looks on must not stop anything
            logger.warning("%r, which watches hooks, failed: %r", watcher, failure)


def describe(error: BaseException) -> str:
    """An error in one line."""
    text = " ".join(f"{text_of(error)}{hint_of(error)}".split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def described(hook: Hook, error: BaseException) -> str:
    """A hook's error in one line, with the file and line where it happened."""
    place = place_of(hook.function, error)
    return f"{describe(error)} ({place})" if place else describe(error)


def excused(ctx: Context) -> bool:
    """True at a call whose arguments no tool takes: the model hears of those, and nobody else."""
    return isinstance(ctx, ToolContext) and bool(ctx.misfit)


async def report(hook: Hook, ctx: Context, error: BaseException) -> None:
    """Log a hook's failure and fire ``on_error`` for it, unless it is excused."""
    if excused(ctx):
        return
    logger.warning("hook %s failed at %s: %s", hook, hook.event, described(hook, error))
    if hook.event != "on_error":
        await ctx.fail(error, f"hook:{hook.owner.name}", place_of(hook.function, error))


def blocks(hook: Hook, ran: Ran, seconds: float) -> None:
    """Name a hook that kept everything else waiting, once in the log and always in the trace.

    Who uses Crow is not warned of its own: nothing can be done about them from outside.
    """
    ran.keep("blocked", round(seconds, 3))
    if not hook.blocked:
        hook.blocked = True
        logger.log(
            logging.INFO if hook.owner.source == CROW else logging.WARNING,
            "hook %s blocked everything for %.2f s at %s (%s): make it async, or thread=True",
            hook, seconds, hook.event, place_of(hook.function),
        )  # fmt: skip


async def name_slips(ctx: RunContext) -> None:
    """Tell the user once of each hook whose ``tools`` name no tool, with the one that is near.

    Where none is near, a hook may be for tools of other agents: that stands in the log alone.
    """
    session = ctx.session
    if session.parent is not None:  # a sub-agent has fewer tools, and the hooks of all
        return
    known: dict[str, str] = {}
    hooks = ctx.agent.hooks
    every = [hook for each in hooks.around(session) for hook in each]
    events = dict.fromkeys([hook.event for hook in every if hook.tools and not hook.checked])
    for event in filter(hooks.knows, events):
        for hook in hooks[event].line(session):
            if not hook.tools or hook.checked:
                continue
            hook.checked = True
            known = known or {name.casefold(): name for name in ctx.agent.tools_of(session)}
            if hook.tools.isdisjoint(known):
                await _tell(ctx, hook, hook.tools, known)


async def _tell(ctx: RunContext, hook: Hook, tools: frozenset[str], known: dict[str, str]) -> None:
    slips = {name: known[near] for name in sorted(tools) if (near := nearest(name, known, ALIKE))}
    text = f"the hook {hook} is for tools that there are not ({place_of(hook.function)})"
    for name, near in slips.items():
        text += f": {name!r}, did you mean {near!r}?"
    if slips:
        logger.warning("%s", text)
        await ctx.ui.notify(text, severity="warning")
    else:
        logger.info("%s: %s", text, ", ".join(sorted(tools)))
