"""Work that is being done: by whom, what that is a part of, and who waits for it."""

from __future__ import annotations

import asyncio
import logging
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import contextmanager
from functools import partial
from inspect import isawaitable, iscoroutine, unwrap
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar, cast

from crow.core.cache import SUBAGENTS, Key
from crow.core.errors import HookError, SessionError
from crow.core.hooks.context import Context
from crow.core.hooks.contexts import ToolContext
from crow.core.hooks.proxy import View, lend_by_name, put, seen
from crow.core.hooks.run_context import RunContext
from crow.core.session import Session
from crow.core.support.clock import Clock
from crow.core.support.tasks import DOING, Spawned, line_of
from crow.core.tools import Call, ToolResult

if TYPE_CHECKING:
    from crow.core.host import Agent

logger = logging.getLogger("crow.hooks")

C = TypeVar("C", bound=Context)
T = TypeVar("T")
BLOCKED: Key[set[str]] = Key("blocked")
"""Whom the log has named in a session."""
NESTED = 8
"""How often a hook may be called again, by what it does itself, before it has ended."""
ECHOES = 64
"""How often hooks that call one another may do so within one of them."""
OWN = "a hook cannot wait for its own session: use agent.queue(...)"


def doing() -> Any:
    """The view of whatever hook, tool or command is at work; None where none is."""
    now = DOING.get()
    while isinstance(now, Spawned):
        now = now.whose
    return now


def set_awaited(ctx: Context, outer: View | Spawned | None) -> None:
    """Know of somebody's work that a run waits for it, and whose work that is in turn."""
    while isinstance(outer, View) and not outer.awaited:
        outer = outer.outer
    put(ctx, "outer", outer)
    put(ctx, "awaited", True)


def endless(ctx: Context) -> int:
    """How often a hook has been called by what it does itself, where that has no end; else zero.

    It is `NESTED` times before one of them has ended, or `ECHOES` times where several call one
    another. Zero, too, where the hook that has the view is none of them: it is called by others'
    doing.
    """
    view = seen(ctx)
    outer: View | Spawned | None = DOING.get()
    if outer is None:
        return 0
    first, own, count = view, 0, 0
    while isinstance(outer, View):
        if outer.moment == view.moment:
            own += outer.owner == view.owner
            count += 1
            first = outer
        outer = outer.outer
    spawned = 0 if outer is None else line_of(outer, view.run)[view.moment]
    if not (own or spawned):
        return 0
    if count > 1:
        put(first, "echoes", first.echoes + 1)
    if count + spawned >= NESTED:
        return NESTED
    return ECHOES if first.echoes > ECHOES else 0


# who waits for what


def _involved(doing: View | Spawned | None) -> list[View | Spawned]:
    """What is done, what that is a part of, and what waits for it, in turn."""
    found: list[View | Spawned] = []
    left = [doing]
    while left:
        one = left.pop()
        if one is not None and one not in found:
            found.append(one)
            left += [one.outer, *one.waiters]
    return found


@contextmanager
def watching(doing: View | Spawned | None, told: Callable[[], object]) -> Generator[None]:
    """Be told meanwhile of everybody who begins to wait for something that is done."""
    watched: set[Spawned] = set()

    def look() -> None:
        new = {each for each in _involved(doing) if isinstance(each, Spawned)}
        for each in new - watched:
            each.watchers.add(look)
        watched.update(new)
        told()

    look()
    try:
        yield
    finally:
        for each in watched:
            each.watchers.discard(look)


def refuse_own(session: Session) -> None:
    """Raise `SessionError` for who would wait for what waits for it: the session's own work.

    And for what is no session, such as the id of one.
    """
    if not hasattr(session, "line"):
        opened = "await agent.load_session(id) opens a stored one"
        raise SessionError(f"{session!r:.60} is no Session: {opened}")
    if is_own(session):
        raise SessionError(OWN)


def is_own(session: Session) -> bool:
    """True in the session's own work: what it waits for cannot wait for it."""
    return is_awaited(session, DOING.get()) or _works_for(_task(), session)


def is_awaited(session: Session, doing: View | Spawned | None) -> bool:
    """True where a run of the session, or of its sub-agents, waits for what is done."""
    awaited = (each for each in _involved(doing) if isinstance(each, View) and each.awaited)
    return any(session in view.session.line for view in awaited)


def _task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # in a thread
        return None


def _works_for(task: asyncio.Task[Any] | None, session: Session) -> bool:
    if task is None:
        return False
    own = task in session.tasks or any(task is run.task for run in session.runs)
    subs = SUBAGENTS.get(session) or {}
    return own or any(_works_for(task, sub) for sub in subs.values())


# work that is no hook's


async def attended(
    ctx: C, by: str, what: str, thing: object, work: Callable[[C], Awaitable[T] | T]
) -> T:
    """What the work of a thing comes to, async or not, which may have a view of its own.

    ``what`` is its name in the log, if it blocks. Where a hook that it makes happen blocks, it is
    that hook which is named.
    """
    view = lend_by_name(ctx, by, what)
    clock = Clock(inf, partial(_blocks, view, what, thing), ctx.agent.hooks.waits)
    put(view, "clock", clock)
    before = DOING.get()
    set_awaited(view, before)
    DOING.set(view)
    try:
        try:
            begun: Any = work(view)
        finally:
            clock.end()
        if iscoroutine(begun):
            return await _steps(begun, clock)
        return await begun if isawaitable(begun) else begun
    finally:
        DOING.set(before)
        put(view, "awaited", False)


@types.coroutine
def _steps(coroutine: Coroutine[Any, Any, T], clock: Clock) -> Generator[Any, Any, T]:
    """Await a coroutine, and look at how long each of its steps takes."""
    step: Callable[[Any], Any] = coroutine.send
    value: Any = None
    while True:
        clock.begin()
        try:
            waited = step(value)
        except StopIteration as stop:
            return stop.value
        finally:
            value = None
            clock.end()
        try:
            step, value = coroutine.send, (yield waited)
        except GeneratorExit:
            coroutine.close()
            raise
        except BaseException as error:  # noqa: BLE001 - a cancellation is the work's to hear
            step, value = coroutine.throw, error


def _blocks(view: Context, what: str, thing: object, seconds: float) -> None:
    """Name it once a session; nothing can be done from outside about what is Crow's own."""
    named = BLOCKED.setdefault(view, set())
    if what not in named:
        named.add(what)
        level = logging.INFO if _is_crows(thing) else logging.WARNING
        logger.log(level, "%s blocked everything for %.2f s: make it async", what, seconds)


def _is_crows(thing: object) -> bool:
    written = unwrap(cast(Any, getattr(thing, "function", thing)))
    module = getattr(written, "__module__", None) or type(written).__module__
    return module.partition(".")[0] == "crow"


# a moment made of what a loop of one's own has at hand


async def moment_of(
    wanted: type[Context], agent: Agent | None, session: Session | None, given: tuple[Any, ...]
) -> Context | None:
    """A context of a call, of a call and its result, or of a prompt; None for anything else.

    It is of the session, else of that of the hook that asks, else of the agent's only one, else of
    a new one. Raises `HookError` where it could be one of several.
    """
    match given:
        case (Context() as ctx,):
            return ctx
        case (Call() as call, *more) if wanted is ToolContext and len(more) <= 1:
            run = await _run(agent, session)
            ctx = ToolContext(run, call, run.agent.tool(call.name, run.session))
            ctx.result = ToolResult.of(more[0]) if more else None
            return ctx
        case (str() as prompt,) if wanted is RunContext:
            return await _run(agent, session, prompt)
        case () | (list(),) if wanted is RunContext:  # the messages are the session's, or nobody's
            return await _run(agent, session)
        case _:
            return None


async def _run(agent: Agent | None, session: Session | None, prompt: str = "") -> RunContext:
    """The run that is at work, or one that stands for it."""
    now = doing()
    if now is not None and session in (None, now.session):
        agent, session = now.agent, now.session
        if now.run is not None and not prompt:
            return now.run
    if agent is None:
        raise HookError("these hooks are no agent's: hang them on one")
    if session is None:
        known = list(agent.sessions.values())
        if len(known) > 1:
            raise HookError("which session is it about? session.hooks.trigger_hooks(...) knows")
        session = known[0] if known else await agent.new_session()
    return RunContext(agent, session, prompt)
