"""A moment's hooks, called one after another; most need no waiting, and are done with at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from sys import getrefcount as refs
from time import perf_counter
from typing import Any, TypeAlias, TypeVar

from crow.core.hooks.call import begin_hook, is_unfinished, task_of
from crow.core.hooks.context import Context
from crow.core.hooks.contexts import ToolContext
from crow.core.hooks.hook import Hook
from crow.core.hooks.hook_point import HookPoint, Line, behind
from crow.core.hooks.outcome import Ran, tell
from crow.core.hooks.proxy import SETTLED, given, is_as_it_was, put
from crow.core.support.tasks import DOING, variables
from crow.core.trace import record_of

C = TypeVar("C", bound=Context)

Calls: TypeAlias = Iterator[tuple[Hook, C, "Ran | None"]]
Keep: TypeAlias = Callable[[Any], None]
Told: TypeAlias = "set[object] | None"

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
    return _calls(point, line, ctx, keep, told, (), judge)


def _calls(  # noqa: C901 - in one place, for every step costs each hook of everybody
    point: HookPoint[C, Any], line: Line, ctx: C, keep: Keep, told: Told, past: Line, judge: bool
) -> Calls[C]:
    """Call hooks; those that leave nothing behind share a view, until somebody has kept it."""
    session: Any = ctx.session
    edits, waits, doing = point.hooks.edits, point.hooks.waits, DOING.get()
    call_id = ctx.call.id if isinstance(ctx, ToolContext) else None
    cls, put_base, put_role, _ = point.view(ctx)
    task, view, shared, hook, holders, copies = task_of(ctx.run), None, None, None, 0, 0
    cancelled, known, now = (cancelling := task.cancelling)(), edits.count, perf_counter()
    for hook in line:
        if hook.judge is not judge or not (hook.always or hook.concerns(ctx)):
            continue
        if told is not None and _was_told(hook, told):
            continue
        ran, is_over, is_whole = None, False, session.messages.before is None
        if view is None or not (hook.plain and is_whole):
            if view is not None:
                _take_back(view, doing)
            view = new(cls)
            put_base(view, ctx)
            if hook.plain and is_whole:
                DOING.set(view)
                if len(line) > 1:
                    shared = variables()
                    holders, copies = refs(view), refs(shared)
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
            is_over = answer is None and error is None and now - began < hook.patience
            is_over = is_over and session.messages.before is None and cancelling() == cancelled
            if is_over and (own is None or is_as_it_was(view)):
                hook.failures = 0
                keep((hook.role, now - began, call_id))
                if own is not None or refs(view) != holders or refs(shared) != copies:
                    view = _take_back(view, doing)
            else:
                ran, is_over = Ran(began, None), False
                _look_at(hook, session, ran, now, answer, error, cancelling() > cancelled)
                DOING.set(doing)
        elif hook.eager and is_whole:
            ran = begin_hook(hook, view, task)
            view = _go_on_without(hook, view, ran, keep, call_id)
        if not is_over:
            if view is not None:
                yield hook, view, ran
            cancelled, now, view = cancelling(), perf_counter(), None
        if edits.count != known:
            break
    if view is not None:
        put(view, "ended", SETTLED)
    DOING.set(doing)
    if edits.count != known and hook is not None:
        past = *past, *line[: line.index(hook) + 1]
        yield from _calls(point, behind(past, point.line(session)), ctx, keep, told, past, judge)


def _take_back(view: Any, doing: Any) -> None:
    """Let a view, if there is one, count for nothing any more, and go on with what was done."""
    if view is not None:
        put(view, "ended", SETTLED)
    DOING.set(doing)


def _look_at(
    hook: Hook, session: Any, ran: Ran, now: float, answer: Any, error: Any, has_cancelled: bool
) -> None:
    """Note what a hook has left behind that was called there and then."""
    ran.answer, ran.error, ran.has_cancelled = answer, error, has_cancelled
    ran.seconds = now - ran.began
    ran.unfinished = is_unfinished(hook, session, ran)


def _go_on_without(hook: Hook, view: Any, ran: Ran, keep: Keep, call_id: str | None) -> Any:
    """None for a hook that was over at once and has changed nothing, else its view."""
    if ran.answer is not None or ran.unfinished or ran.values:
        return view
    if given(view) is not None and not is_as_it_was(view):
        return view
    put(view, "ended", SETTLED)
    hook.failures = 0
    keep((hook.role, ran.seconds, call_id))
    return None


def _was_told(hook: Hook, told: set[object]) -> bool:
    """True for one that was told already; from now on it is."""
    if hook in told:
        return True
    told.add(hook)
    return False


def _tell_of(ctx: Context, watchers: Iterable[Callable[..., None]], row: Any) -> None:
    """Tell who looks on of a hook that has left no more than a row of the trace."""
    tell(ctx, record_of(*row), watchers)
