"""A hook's call: in its own time, on a proxy of the context, and with a failure that names it."""

from __future__ import annotations

import asyncio
import threading
from asyncio import current_task
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from contextvars import copy_context  # noqa: TID251 - a thread does not inherit it by itself
from functools import partial
from time import perf_counter
from types import AsyncGeneratorType, CoroutineType
from typing import Any, Protocol, cast

from crow.core.errors import HookError
from crow.core.hooks.call_stack import endless, set_awaited
from crow.core.hooks.context import Context
from crow.core.hooks.hook import Hook
from crow.core.hooks.outcome import Ran, blocks, describe
from crow.core.hooks.proxy import put, seen
from crow.core.hooks.run_context import RunContext
from crow.core.session import Session
from crow.core.support.clock import BLOCKING, Clock
from crow.core.support.tasks import DOING, NOTHING, Errand, Errands, Spawned

CANCELLED_TIMEOUT = 0.25
OF_CANCELLED = " in a cancelled run"

WAITED = (
    ", while a prompt of its session waited: should that be its own, use agent.queue(...), "
    "a hook cannot wait for its own session"
)


class Around(Protocol):
    """A layer that a wrap is called in; ``driven`` is the answer of one that is a generator.

    ``leaves`` says that what a hook answers is what it goes around, and that it is done itself.
    """

    call_next: Callable[..., Any]

    def driven(self, yielded: AsyncGenerator[Any, Any]) -> Awaitable[Any]: ...
    def leaves(self, ran: Ran) -> bool: ...


def is_unfinished(hook: Hook, session: Session, ran: Ran) -> bool:
    """True where there is more to do with a hook that was called than to take its answer."""
    if ran.error is not None or ran.has_cancelled or session.history.before is not ran.touched:
        return True
    return ran.seconds >= hook.patience or (
        ran.answer is not None
        and not hook.instant
        and hasattr(cast(Any, type(ran.answer)), "__await__")
    )


async def run_hook(hook: Hook, view: Context, around: Around | None = None) -> Ran:
    """Call a hook in its own time; its failure is a value. What it changed is not settled yet."""
    session: Any = view.session
    if session.messages.before is not None and view.run is not None:
        await view.heal()  # what somebody did before is not this hook's
    call = begin_hook if hook.lazy else call_hook
    ran = call(hook, view, task_of(view.run), around)
    if ran.unfinished and not (around is not None and around.leaves(ran)):
        await finish_hook(hook, view, ran, around)
    return ran


def begin_hook(
    hook: Hook, view: Context, task: asyncio.Task[Any], around: Around | None = None
) -> Ran:
    """Call a hook that does nothing before it is awaited, and let it do what needs no waiting."""
    session: Any = view.session
    ran = Ran(perf_counter(), session.messages.before)
    ran.answer = NOTHING
    try:
        ran.answer = _begun(hook, view, _called(hook, view, around), ran, task)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a hook may raise even SystemExit
        ran.error = error
    else:
        clock: Any = view.clock
        ran.seconds = perf_counter() - ran.began - clock.stood
        ran.unfinished = (
            ran.answer is NOTHING
            or session.messages.before is not ran.touched
            or (ran.seconds > hook.timeout and around is None)
        )
    return ran


def call_hook(
    hook: Hook, view: Context, task: asyncio.Task[Any], around: Around | None = None
) -> Ran:
    """Call a hook, whatever it is."""
    cancelling, doing = task.cancelling(), DOING.get()
    ran = Ran(perf_counter(), view.session.history.before)
    DOING.set(view)
    try:
        ran.answer = _called(hook, view, around)
    except BaseException as raised:  # noqa: BLE001 - a hook may raise even SystemExit
        ran.error = raised
    finally:
        DOING.set(doing)
    ran.has_cancelled = task.cancelling() > cancelling
    ran.seconds = perf_counter() - ran.began
    ran.unfinished = is_unfinished(hook, view.session, ran)
    return ran


def task_of(run: RunContext | None) -> Any:
    """The task that runs here, which is quicker to find where its loop is known."""
    return (current_task(run.loop) if run is not None else None) or current_task()


def _called(hook: Hook, view: Context, around: Around | None) -> Any:
    """What a hook answers where it needs no waiting, else what is to be awaited."""
    if hook.thread:
        return _in_thread(hook, view)
    if around is None:
        return hook.call(view)
    answer = hook.call(view, around.call_next)
    return around.driven(cast(Any, answer)) if type(answer) is AsyncGeneratorType else answer


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
    ran.seconds = perf_counter() - ran.began - (view.clock.stood if view.clock else 0.0)
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
    """What a hook answers in the end, whether it was called only or has begun already."""
    answer, ran.answer, task = ran.answer, None, task_of(view.run)
    if ran.has_cancelled and not _is_part_of_the_cancelled(view.session):
        await _spared(task)
    if ran.errand is None:
        if ran.seconds > BLOCKING:
            _blocked(hook, view, ran)
        if not hook.instant and hasattr(cast(Any, type(answer)), "__await__"):
            answer = _begun(hook, view, answer, ran, task)
    if answer is NOTHING:
        return await _in_time(hook, view, ran)
    if around is None and perf_counter() - ran.began > hook.timeout:
        raise _too_late(hook, view, hook.timeout)
    return answer


def _blocked(hook: Hook, view: Context, ran: Ran) -> None:
    """Name a synchronous hook that kept everything waiting, as far as that was its own doing."""
    seconds = view.agent.hooks.waits.own(ran.began, ran.seconds)
    if seconds > BLOCKING:
        blocks(hook, ran, seconds)
    _not_by_whom_it_is_called(ran.seconds)


def _must_end(view: Context, answer: Any) -> None:
    """Raise `HookError` for a hook that has itself called without an end."""
    if (times := endless(view)) > 0:
        if type(answer) is CoroutineType:
            answer.close()
        raise HookError(f"makes happen what it is called for, {times} times over")


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


def _begun(hook: Hook, view: Context, answer: Any, ran: Ran, caller: asyncio.Task[Any]) -> Any:
    """What a hook answers where nobody need wait for it, else `NOTHING`."""
    coroutine = cast(Any, answer) if type(answer) is CoroutineType else _awaited(answer)
    outer, run = DOING.get(), view.run
    if outer is not None:
        _must_end(view, coroutine)
    ran.hurried = run is not None and run.cancelled
    seconds = _little(hook, run) if run is not None and ran.hurried else hook.timeout
    clock = Clock(seconds, partial(blocks, hook, ran), view.agent.hooks.waits)
    put(view, "clock", clock)
    is_beside = run is None or isinstance(caller, Spawned)
    owner: Any = view.session if is_beside else run
    errands: Errands = owner.tasks if is_beside else owner.errands
    errand = ran.errand = errands.begin(coroutine, view, clock, caller)
    set_awaited(view, outer)
    try:
        done = errand.step()
    except BaseException:
        put(view, "awaited", False)
        raise
    if done is NOTHING or outer is not None:
        ran.seconds = perf_counter() - clock.began
        if outer is not None:
            _not_by_whom_it_is_called(ran.seconds)
    if done is not NOTHING:
        put(view, "awaited", False)
    return done


async def _in_time(hook: Hook, view: Context, ran: Ran) -> Any:
    """What a hook answers before its time is over; it is left behind where it does not end then."""
    errand: Any = ran.errand
    clock: Any = view.clock  # a cast takes its time
    task: asyncio.Task[Any] = errand.task
    around = _clock_around()
    try:
        if around is not None:
            around.pause()
        await clock.ended(task, ran.seconds)
    except asyncio.CancelledError as error:
        if not task.done():
            _leave_behind(errand, task, view, "the run was cancelled")
        raise Cancelled from error
    finally:
        if around is not None:
            around.resume()
        put(view, "awaited", False)
    if task.done():
        return task.result()
    error = _too_late(hook, view, clock.seconds, OF_CANCELLED if ran.hurried else "")
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


def _little(hook: Hook, run: RunContext) -> float:
    """Seconds that a hook has in a run that is cancelled: none where it hung before."""
    return 0.0 if hook in run.hung else min(hook.timeout, CANCELLED_TIMEOUT)


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
    return await answer if hasattr(cast(Any, type(answer)), "__await__") else answer


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
