"""A hook's call: in its own time, on a proxy of the context, and with a failure that names it."""

from __future__ import annotations

import asyncio
import inspect
import threading
from asyncio import current_task
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from contextvars import copy_context  # noqa: TID251 - a thread does not inherit it by itself
from functools import partial
from time import perf_counter
from typing import Any, Protocol, TypeVar, cast

from crow.core.errors import HookError
from crow.core.hooks.context import Context
from crow.core.hooks.contexts import ToolContext
from crow.core.hooks.hook import Hook, HookPoint, Line, behind
from crow.core.hooks.proxy import (
    SETTLED,
    given,
    is_over,
    kind_of_view,
    put,
    seen,
)
from crow.core.hooks.report import Ran, blocks, describe, tell
from crow.core.hooks.work import nested, set_awaited
from crow.core.session import Session
from crow.core.tasks import BLOCKING, DOING, NOTHING, Clock, Errand, Spawned, standing
from crow.core.trace import record_of

C = TypeVar("C", bound=Context)

new: Callable[[type[Any]], Any] = object.__new__
CANCELLED_TIMEOUT = 0.25
NESTED = 8
"""How often a hook may be called again, by what it does itself, before it has ended."""

WAITED = (
    ", while a prompt of its session waited: should that be its own, use agent.queue(...), "
    "a hook cannot wait for its own session"
)


class Around(Protocol):
    """What a wrap goes around; ``driven`` is the answer of one that is a generator."""

    call_next: Callable[..., Any]

    def driven(self, yielded: AsyncGenerator[Any, Any]) -> Awaitable[Any]: ...


def calls(
    point: HookPoint[C, Any], ctx: C, *, judge: bool = False, told: set[object] | None = None
) -> Iterable[tuple[Hook, C, Ran | None]]:
    """Call the hooks of a moment; those with whom more is to be done are handed out.

    Most answer nothing, have touched nothing and took no time: a row of the trace is all that they
    leave. With the others comes what they did; None where they are still to be called. Those that
    are in ``told`` are left out, and the others put in. What hangs there or goes meanwhile counts
    from then on.
    """
    line = point.line(ctx.session)
    if not line or (judge and not any(hook.judge for hook in line)):
        return ()
    return _calls(point, line, ctx, judge, told)


def _calls(  # noqa: C901 - in one place, for every step costs each hook of everybody
    point: HookPoint[C, Any], line: Line, ctx: C, judge: bool, told: set[object] | None
) -> Iterator[tuple[Hook, C, Ran | None]]:
    session: Any = ctx.session
    task: Any = current_task()
    past: list[Hook] = []
    doing, edits, cancelling = DOING.get(), point.hooks.edits, task.cancelling
    watchers = ctx.agent.hooks.watching(session)
    keep = partial(_tell_of, ctx, watchers) if watchers else session.trace.add
    call_id = ctx.call.id if isinstance(ctx, ToolContext) else None
    cls, put_base, put_role, put_ended = kind_of_view(type(ctx), is_over(ctx))
    known, cancelled, now = edits.count, cancelling(), perf_counter()
    while line:
        for hook in line:
            if hook.judge is not judge or not (hook.always or hook.concerns(ctx)):
                continue
            if told is not None and _was_told(hook, told):
                continue
            view, ran = new(cls), None
            put_base(view, ctx)
            put_role(view, hook.role)
            if hook.plain and session.messages.before is None:
                DOING.set(view)
                answer = error = None
                try:
                    answer = hook.call(view)
                except BaseException as raised:  # noqa: BLE001 - a hook may raise even SystemExit
                    error = raised
                began, now = now, perf_counter()
                if (
                    answer is None
                    and error is None
                    and now - began < hook.patience
                    and given(view) is None
                    and session.messages.before is None
                    and cancelling() == cancelled
                ):
                    put_ended(view, SETTLED)
                    hook.failures = 0
                    keep((hook.role, now - began, call_id))
                    if edits.count != known:
                        break
                    continue
                ran = Ran(answer, error, began, now - began, has_cancelled=cancelling() > cancelled)
                ran.unfinished = _is_unfinished(hook, session, ran)
            DOING.set(doing)
            yield hook, view, ran
            cancelled, now = cancelling(), perf_counter()
            if edits.count != known:
                break
        else:
            break
        past += line[: line.index(hook) + 1]
        known, line = edits.count, behind(past, point.line(ctx.session))
    DOING.set(doing)


def _was_told(hook: Hook, told: set[object]) -> bool:
    """True for one that was told already; from now on it is."""
    if hook in told:
        return True
    told.add(hook)
    return False


def _is_unfinished(hook: Hook, session: Session, ran: Ran) -> bool:
    if ran.error is not None or ran.has_cancelled or session.history.before is not ran.touched:
        return True
    return ran.seconds >= hook.patience or (
        ran.answer is not None and not hook.instant and hasattr(ran.answer, "__await__")
    )


def _tell_of(ctx: Context, watchers: Iterable[Callable[..., None]], row: Any) -> None:
    """Tell who looks on of a hook that has left no more than a row of the trace."""
    tell(ctx, record_of(*row), watchers)


async def run_hook(hook: Hook, view: Context, around: Around | None = None) -> Ran:
    """Call a hook in its own time; its failure is a value. What it changed is not settled yet."""
    session = view.session
    if session.history.before is not None and view.run is not None:
        await view.heal()  # what somebody did before is not this hook's
    ran = call_hook(hook, view, session, around)
    if ran.unfinished:
        await finish_hook(hook, view, ran, around)
    return ran


def call_hook(hook: Hook, view: Context, session: Session, around: Around | None) -> Ran:
    """Call a hook, whatever it is."""
    touched = session.history.before
    task = cast("asyncio.Task[Any]", current_task())
    cancelling, doing = task.cancelling(), DOING.get()
    answer = error = None
    began = perf_counter()
    DOING.set(view)
    try:
        answer = _called(hook, view, around)
    except BaseException as raised:  # noqa: BLE001 - a hook may raise even SystemExit
        error = raised
    finally:
        DOING.set(doing)
    has_cancelled = task.cancelling() > cancelling
    seconds = perf_counter() - began
    ran = Ran(answer, error, began, seconds, has_cancelled=has_cancelled, touched=touched)
    ran.unfinished = _is_unfinished(hook, session, ran)
    return ran


def _called(hook: Hook, view: Context, around: Around | None) -> Any:
    """What a hook answers where it needs no waiting, else what is to be awaited."""
    if hook.thread:
        return _in_thread(hook, view)
    if around is None:
        return hook.call(view)
    answer = hook.call(view, around.call_next)
    return around.driven(answer) if inspect.isasyncgen(answer) else answer


async def finish_hook(hook: Hook, view: Context, ran: Ran, around: Around | None = None) -> None:
    """Wait for what a hook answers, and look at what it has done."""
    error, ran.error = ran.error, None
    try:
        if error is not None:
            raise _own(error)
        ran.answer = await _answer(hook, view, around, ran)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except Cancelled as error:
        raise asyncio.CancelledError from error
    except asyncio.CancelledError as error:
        if _is_cancelled(view):
            raise
        ran.error = None if _is_cut_off(view, ran) else error
    except BaseException as error:  # noqa: BLE001 - a hook may raise even SystemExit
        ran.error = error
    ran.seconds = perf_counter() - ran.began
    if view.session.history.before is not ran.touched:
        await _heal(hook, view, ran)


def _own(error: BaseException) -> BaseException:
    """A hook's error; that somebody ends the hook is something else."""
    if not isinstance(error, GeneratorExit):
        return error
    own = RuntimeError(describe(error))
    own.__cause__ = error
    return own


async def _answer(hook: Hook, view: Context, around: Around | None, ran: Ran) -> Any:
    answer, ran.answer = ran.answer, None
    if ran.has_cancelled and not _is_part_of_the_cancelled(view.session):
        await _spared(cast("asyncio.Task[Any]", asyncio.current_task()))
    if ran.seconds > BLOCKING:
        blocks(hook, ran, ran.seconds)
        _not_by_whom_it_is_called(ran.seconds)
    if not hook.instant and hasattr(answer, "__await__"):
        _must_end(view, answer)
        set_awaited(view, True)
        try:
            answer = await _in_time(hook, view, answer, ran)
        finally:
            set_awaited(view, False)
        if ran.errand is None or not ran.errand.ended:
            return answer
    if around is None and perf_counter() - ran.began > hook.timeout:
        raise _too_late(hook, view, hook.timeout)
    return answer


def _must_end(view: Context, answer: Any) -> None:
    """Raise `HookError` for a hook that has itself called without an end."""
    if nested(view) >= NESTED:
        if inspect.iscoroutine(answer):
            answer.close()
        raise HookError(f"makes happen what it is called for, {NESTED} times over")


def _is_part_of_the_cancelled(session: Session) -> bool:
    """True where a run that waits for what is done in this session was cancelled."""
    return any(run.cancelled for each in session.line for run in each.runs)


async def _spared(task: asyncio.Task[Any]) -> None:
    """Take a hook's cancellation of the task that it runs in back: that is its error."""
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)
    task.uncancel()
    raise RuntimeError(
        "cancelled the task that it runs in: use ctx.stop() or agent.cancel(session)"
    )


class Cancelled(asyncio.CancelledError):
    """Whoever waited for a hook was cancelled; it was not the hook's own doing."""


async def _in_time(hook: Hook, view: Context, answer: Awaitable[Any], ran: Ran) -> Any:
    """What a hook answers before its time is over; it is left behind where it does not end then."""
    seconds, where = _limit(hook, view)
    clock = Clock(seconds, partial(blocks, hook, ran))
    put(view, "clock", clock)
    own: Any = answer if inspect.iscoroutine(answer) else _awaited(answer)
    is_beside = view.run is None or isinstance(current_task(), Spawned)
    errands = view.session.tasks if is_beside else cast("Any", view.run).errands
    began = perf_counter()
    errand = ran.errand = errands.begin(own, view, clock)
    done = errand.step()
    spent = perf_counter() - began
    _not_by_whom_it_is_called(spent)
    if done is not NOTHING:
        return done
    task = errand.task
    try:
        with standing(_clock_around()):
            await clock.ended(task, spent)
    except asyncio.CancelledError as error:
        if not task.done():
            _leave_behind(errand, task, view, "the run was cancelled")
        raise Cancelled from error
    if task.done():
        return task.result()
    error = _too_late(hook, view, seconds, where)
    _leave_behind(errand, task, view, str(error))
    raise error


def _not_by_whom_it_is_called(seconds: float) -> None:
    """Let the time that a hook takes not count for the one which made its moment happen."""
    if (clock := _clock_around()) is not None:
        clock.elsewhere += seconds


def _clock_around() -> Clock | None:
    """That of the hook which made this one's moment happen: it has no part in how long it takes."""
    doing = DOING.get()
    return doing.clock if isinstance(doing, Context) else None


def _limit(hook: Hook, view: Context) -> tuple[float, str]:
    """Seconds that a hook has: in a run that is cancelled few, and none where it hung before."""
    run = view.run
    if run is None or not run.cancelled:
        return hook.timeout, ""
    limit = 0.0 if hook in run.hung else min(hook.timeout, CANCELLED_TIMEOUT)
    return limit, " in a cancelled run"


def _too_late(hook: Hook, view: Context, seconds: float, where: str = "") -> TimeoutError:
    waited = view.run is not None and any(not run.holds_lock for run in view.session.runs)
    error = TimeoutError(f"took longer than {seconds:g} s{where}{WAITED if waited else ''}")
    seen(view).close(f"the hook {hook} {error}")
    if where and view.run is not None:
        view.run.hung.hold(hook)
    return error


def _leave_behind(errand: Errand, task: asyncio.Task[Any], view: Context, late: str) -> None:
    """Let a hook that does not end run on for itself, until the session ends at the latest."""
    seen(view).close(late)
    errand.abandoned = True
    tasks = view.session.tasks
    tasks.hold(task)
    task.add_done_callback(tasks.release)
    task.add_done_callback(lambda task: task.cancelled() or task.exception())
    task.cancel()
    if view.session.closed:  # nobody is left to end it then
        asyncio.get_running_loop().call_later(CANCELLED_TIMEOUT, task.cancel)


async def _awaited(answer: Awaitable[Any]) -> Any:
    return await answer


async def _in_thread(hook: Hook, view: Context) -> Any:
    """What a synchronous hook answers, in a thread that nobody has to wait for."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    context = copy_context()

    def give(ended: tuple[Any, BaseException | None]) -> None:
        if not future.done():
            future.set_result(ended)

    def work() -> None:
        try:
            ended = context.run(hook.call, view), None
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is the hook's
            ended = None, error
        with suppress(RuntimeError):  # the loop is gone
            loop.call_soon_threadsafe(give, ended)

    threading.Thread(target=work, name=f"hook {hook}", daemon=True).start()
    answer, error = await future
    if error is not None:
        raise error
    return await answer if hasattr(answer, "__await__") else answer


def _is_cancelled(view: Context) -> bool:
    """True where a hook's own `CancelledError` is that of a run that ends.

    What comes after its answer, and what is done beside it, goes on.
    """
    run, task = view.run, asyncio.current_task()
    if run is None or task is run.supervisor or isinstance(task, Spawned):
        return False
    return run.cancelled


def _is_cut_off(view: Context, ran: Ran) -> bool:
    """True where a run that was being concluded was cancelled, and a hook's work with it."""
    run, errand = view.run, ran.errand
    return run is not None and run.cancelled and errand is not None and errand.task.cancelling() > 0


async def _heal(hook: Hook, view: Context, ran: Ran) -> None:
    """Keep what a hook did to the history itself, or take it back: then that is its error."""
    history = view.session.history
    own = None if ran.errand is None else ran.errand.task
    if history.task not in (asyncio.current_task(), own):
        return
    if ran.error is not None:
        history.undo()
    elif (error := await view.heal(f"the hook {hook}")) is not None:
        ran.error = error
    else:
        ran.changed = ("session.messages",)
