"""A moment's hooks, called one after another; most need no waiting, and are done with at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from sys import getrefcount
from time import perf_counter
from typing import Any, TypeVar

from crow.core.hooks.call import begin_hook, is_unfinished, task_of
from crow.core.hooks.context import Context
from crow.core.hooks.contexts import ToolContext
from crow.core.hooks.hook import Hook
from crow.core.hooks.hook_point import HookPoint, Line, behind
from crow.core.hooks.outcome import Ran, tell
from crow.core.hooks.proxy import SETTLED, given, is_as_it_was
from crow.core.support.tasks import DOING, variables
from crow.core.trace import record_of

C = TypeVar("C", bound=Context)

new: Callable[[type[Any]], Any] = object.__new__


def calls(
    point: HookPoint[C, Any], ctx: C, *, judge: bool = False, told: set[object] | None = None
) -> Iterable[tuple[Hook, C, Ran | None]]:
    """Call the hooks of a moment; those with whom more is to be done are handed out.

    Most answer nothing, have touched nothing and took no time: a row of the trace is all that they
    leave. With the others comes what they did; None where they are still to be called. Those that
    are in ``told`` are left out, and the others put in. What hangs there or goes meanwhile counts
    from then on.
    """
    session, hooks = ctx.session, ctx.agent.hooks
    is_alone = point.parent is None and session.parent is None and session.hung is None
    line = point.entries if is_alone else point.chain(session)
    if not line or (judge and not point.has_judges(line)):
        return ()
    unseen = is_alone and point.hooks is hooks and not (point.watchers or hooks.watchers)
    watchers = () if unseen else hooks.watching(session, point.point.name)
    keep = partial(_tell_of, ctx, watchers) if watchers else session.trace.add
    return _calls(point, line, ctx, keep, judge, told)


def _calls(  # noqa: C901 - in one place, for every step costs each hook of everybody
    point: HookPoint[C, Any],
    line: Line,
    ctx: C,
    keep: Callable[[Any], None],
    judge: bool,
    told: set[object] | None,
) -> Iterator[tuple[Hook, C, Ran | None]]:
    """Hooks that leave nothing behind share a view, one after another.

    Whoever has kept it, or begun something that goes on in its name, has it for himself.
    """
    session: Any = ctx.session
    edits, waits, doing = point.hooks.edits, point.hooks.waits, DOING.get()
    call_id = ctx.call.id if isinstance(ctx, ToolContext) else None
    cls, put_base, put_role, put_ended = point.view(ctx)
    task = task_of(ctx.run)
    cancelling, view, shared = task.cancelling, None, None
    past: Line = ()
    holders = copies = 0
    known, cancelled, now = edits.count, cancelling(), perf_counter()
    while line:
        for hook in line:
            if hook.judge is not judge or not (hook.always or hook.concerns(ctx)):
                continue
            if told is not None and _was_told(hook, told):
                continue
            ran, is_whole = None, session.messages.before is None
            if view is None or not (hook.plain and is_whole):
                if view is not None:
                    put_ended(view, SETTLED)
                    DOING.set(doing)
                view = new(cls)
                put_base(view, ctx)
                if hook.plain and is_whole:
                    DOING.set(view)
                    if len(line) > 1:
                        shared = variables()
                        holders, copies = getrefcount(view), getrefcount(shared)
            put_role(view, hook.role)
            if now > waits.stale:
                waits.look(now)
            if hook.plain and is_whole:
                answer = error = None
                try:
                    answer = hook.call(view)
                except BaseException as raised:  # noqa: BLE001 - a hook may raise even SystemExit
                    error = raised
                began, now, own = now, perf_counter(), given(view)
                if (
                    answer is None
                    and error is None
                    and now - began < hook.patience
                    and (own is None or is_as_it_was(view))
                    and session.messages.before is None
                    and cancelling() == cancelled
                ):
                    hook.failures = 0
                    keep((hook.role, now - began, call_id))
                    if (
                        own is not None
                        or getrefcount(view) != holders
                        or getrefcount(shared) != copies
                    ):
                        put_ended(view, SETTLED)
                        DOING.set(doing)
                        view = None
                    if edits.count != known:
                        break
                    continue
                ran = Ran(began, None)
                ran.answer, ran.error, ran.seconds = answer, error, now - began
                ran.has_cancelled = cancelling() > cancelled
                ran.unfinished = is_unfinished(hook, session, ran)
                DOING.set(doing)
            elif hook.eager and is_whole:
                ran = begin_hook(hook, view, task)
                if (
                    ran.answer is None
                    and not (ran.unfinished or ran.values)
                    and (given(view) is None or is_as_it_was(view))
                ):
                    put_ended(view, SETTLED)
                    hook.failures, view = 0, None
                    keep((hook.role, ran.seconds, call_id))
                    cancelled, now = cancelling(), perf_counter()
                    if edits.count != known:
                        break
                    continue
            yield hook, view, ran
            cancelled, now, view = cancelling(), perf_counter(), None
            if edits.count != known:
                break
        else:
            break
        past = *past, *line[: line.index(hook) + 1]
        known, line = edits.count, behind(past, point.line(session))
    if view is not None:
        put_ended(view, SETTLED)
    DOING.set(doing)


def _was_told(hook: Hook, told: set[object]) -> bool:
    """True for one that was told already; from now on it is."""
    if hook in told:
        return True
    told.add(hook)
    return False


def _tell_of(ctx: Context, watchers: Iterable[Callable[..., None]], row: Any) -> None:
    """Tell who looks on of a hook that has left no more than a row of the trace."""
    tell(ctx, record_of(*row), watchers)
