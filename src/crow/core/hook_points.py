"""The five kinds of points: what the answers of several hooks add up to, and what a failure does.

A point's kind is the whole of what its hooks' answers can do.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from copy import copy
from typing import Any, Generic, TypeAlias, TypeVar, cast

from crow.core.context import Context, RunContext
from crow.core.errors import CrowError, HookError
from crow.core.events import Notice
from crow.core.hook import Hook, HookPoint, place_of
from crow.core.hook_call import Ran, described, note, report, run_hook, view_for
from crow.core.points import Next, Point, deny
from crow.core.ports import Completion
from crow.core.proxy import seen
from crow.core.tasks import Clock
from crow.core.tools import ToolResult
from crow.core.validation import check, short
from crow.core.verdicts import (
    NO_RULING,
    Allow,
    Answer,
    Ask,
    Continue,
    Deny,
    Ruling,
    Stop,
    Verdict,
    answerable,
)

logger = logging.getLogger("crow.hooks")

A = TypeVar("A")
C = TypeVar("C", bound=Context)
T = TypeVar("T")

Nothing: TypeAlias = "dict[str, None] | None"
GateAnswer: TypeAlias = "Verdict | str | Nothing"
StopAnswer: TypeAlias = "Continue | Stop | str | Nothing"

FAILURES_TOLERATED = 3
TOTAL_CAP = 25
FORGOTTEN = "answered nothing (is a return missing?)"


class Watch(HookPoint[C, Callable[[C], object]]):
    """All run; answers count for nothing; a failure is logged."""

    __slots__ = ()

    async def fire(self, ctx: C) -> None:
        """Call the hooks."""
        for hook in self.due(ctx):
            if hook.background:
                ctx.session.spawn(run_beside(hook, copy(ctx), self.point))
            else:
                await run_beside(hook, ctx, self.point)


class Gate(HookPoint[C, "Callable[[C], GateAnswer | Awaitable[GateAnswer]]"]):
    """The strictest verdict stands, rewrites chain, and whoever cannot decide denies.

    Hooks registered with ``judge=True`` run last, on arguments that nobody can change any more.
    """

    __slots__ = ()

    async def fire(self, ctx: C, check: Callable[[C], bool] | None = None) -> Ruling:
        """Call the hooks, the parent agent's first.

        ``check`` is called between the last rewrite and the judges; where it answers False there
        is nothing left to decide.
        """
        ruling = NO_RULING
        for hook in self.due(ctx):
            ruling = await self._consult(hook, ctx, ruling)
        return await self.judge(ctx, check, ruling)

    async def judge(
        self, ctx: C, check: Callable[[C], bool] | None = None, ruling: Ruling = NO_RULING
    ) -> Ruling:
        """Call the judges alone; also where what they have judged was changed since."""
        if check is not None and not check(ctx):
            return NO_RULING
        for hook in self.due(ctx, judge=True):
            ruling = await self._consult(hook, ctx, ruling)
        return ruling

    async def _consult(self, hook: Hook, ctx: C, ruling: Ruling) -> Ruling:
        view, ran, verdict = await consult(hook, ctx, self.point, self._meant)
        if isinstance(verdict, Allow) and not hook.owner.trusted:
            verdict = None
        if ran.error is not None:
            verdict = Deny(f"the hook {hook} could not decide: {described(hook, ran.error)}")
            await report(hook, ctx, ran.error)
        elif isinstance(verdict, str):
            await view.inject_context(verdict)
            verdict = None
        note(hook, ctx, ran, verdict or ran.answer)
        return ruling if verdict is None else ruling.joined(verdict)

    def _meant(self, ctx: C, answer: Any) -> Verdict | str | None:
        """What an answer means: a verdict, text that is context, or nothing."""
        match answer:
            case None:
                return None
            case _ if answer == {}:
                return None
            case Allow() | Ask() | Deny() | Stop() | Answer():
                check("the answer", answer, type(answer))
                if isinstance(answer, Answer):
                    check("the answer's value", answer.value, answerable)
                return answer
            case _:
                meant = (self.point.plain or deny)(ctx, answer)
                if meant is NotImplemented:
                    raise TypeError(f"answered {short(answer)}, which is no verdict")
                return meant


class Fold(
    HookPoint[C, "Callable[[C], A | Stop | Nothing | Awaitable[A | Stop | Nothing]]"], Generic[C, A]
):
    """Each hook gets the previous one's value; a failing one is undone and skipped."""

    __slots__ = ()

    async def fire(self, ctx: C) -> Deny | None:
        """Call the hooks; a `Deny` (only where the point takes one) ends the fold."""
        for hook in self.due(ctx):
            if hook.background:
                ctx.session.spawn(run_beside(hook, copy(ctx), self.point))
            elif (denied := await self._step(hook, ctx)) is not None:
                return denied
        return None

    async def _step(self, hook: Hook, ctx: C) -> Deny | None:
        view, ran, meant = await consult(hook, ctx, self.point, self._meant)
        if ran.error is not None:
            await self._failed(hook, ctx, ran.error)
        else:
            hook.failures = 0
        if isinstance(ran.answer, Stop) and ran.error is None:
            view.stop(ran.answer.reason)
        elif isinstance(meant, str):
            await view.inject_context(meant)
        note(hook, ctx, ran, ran.answer)
        return meant if isinstance(meant, Deny) else None

    def _meant(self, view: C, answer: Any) -> Deny | str | None:
        """What an answer means here, put where it belongs. Raises ``TypeError`` for no use."""
        if answer is None or answer == {}:
            return None
        if isinstance(answer, Stop | Deny):
            check("the answer", answer, type(answer))
        if isinstance(answer, Stop):
            return None
        plain = self.point.plain
        meant = NotImplemented if plain is None else plain(view, answer)
        if meant is NotImplemented:
            raise TypeError(f"answered {short(answer)}, which {self.point.name} cannot use")
        return meant

    async def _failed(self, hook: Hook, ctx: C, error: BaseException) -> None:
        hook.failures += 1
        await report(hook, ctx, error)
        if hook.failures >= FAILURES_TOLERATED and not hook.off:
            hook.off = True
            times = f"{FAILURES_TOLERATED} times in a row"
            text = f"the hook {hook} failed {times} and is switched off: {described(hook, error)}"
            await ctx.session.client.update(ctx.session.id, Notice(text, "warning", "hooks"))


class StopPoint(
    HookPoint[RunContext, "Callable[[RunContext], StopAnswer | Awaitable[StopAnswer]]"]
):
    """Who answers `Continue` keeps a finished run going; a broken hook never does."""

    __slots__ = ()

    async def fire(self, ctx: RunContext) -> Continue | None:
        """All reasons of all hooks as one message; None where the run may end."""
        reasons: list[str] = []
        for hook in self.due(ctx):
            reasons += await self._consult(hook, ctx)
        if not reasons or ctx.stopping:
            return None
        if ctx.count_in_row >= ctx.cap or ctx.count >= TOTAL_CAP:
            text = f"kept going {ctx.count} times by a stop hook; ended all the same: {reasons[0]}"
            await ctx.ui.notify(text, severity="warning")
            await ctx.agent.notify(ctx.session, "stop_cap", text)
            return None
        return Continue("\n\n".join(reasons))

    async def _consult(self, hook: Hook, ctx: RunContext) -> list[str]:
        _, ran, reasons = await consult(hook, ctx, self.point, self._reasons)
        note(hook, ctx, ran, ran.answer)
        if ran.error is not None:
            await report(hook, ctx, ran.error)
        return reasons or []

    def _reasons(self, view: RunContext, answer: object) -> list[str]:
        """Why to go on. Raises ``TypeError`` for an answer that says nothing about that."""
        match answer:
            case Continue(message):
                check("Continue.message", message, str)
                return [message] if message else []
            case str(message):
                return [message] if message else []
            case Stop():
                check("the answer", answer, Stop)
                view.stop(answer.reason)
            case None | Allow():
                pass
            case _ if answer == {}:
                pass
            case _:
                raise TypeError(f"answered {short(answer)}, which on_stop cannot use")
        return []


async def run_beside(hook: Hook, ctx: Context, point: Point) -> None:
    """Run a hook whose answer counts for nothing, unless it is a `Stop`."""
    view, ran, _ = await consult(hook, ctx, point, lambda view, answer: None)
    note(hook, ctx, ran, ran.answer)
    if ran.error is not None:
        await report(hook, ctx, ran.error)
    elif point.kind == "watch" and isinstance(ran.answer, Stop):
        view.stop(str(ran.answer.reason))


async def consult(
    hook: Hook, ctx: C, point: Point, meaning: Callable[[C, Any], T]
) -> tuple[C, Ran, T | None]:
    """Call a hook; what it has changed reaches the run if what it answers has a meaning there."""
    view = view_for(hook, ctx, point)
    ran = await run_hook(hook, view)
    meant = None
    if ran.error is None:
        try:
            meant = meaning(view, ran.answer)
            ran.changed += seen(view).settle()
        except Exception as error:  # noqa: BLE001 - what a hook leaves behind may raise anything
            ran.error, meant = error, None
    seen(view).close()
    return view, ran, meant


class Wrap(HookPoint[C, Callable[[C, Next], Awaitable[Any]]]):
    """Nested around an operation, the first registered outermost."""

    __slots__ = ()

    async def fire(self, ctx: C, operation: Next) -> Any:
        """Run the operation inside the hooks; an error of a hook's is the operation's."""
        layers = list(self.due(ctx))
        return await self._layer(layers, ctx, operation) if layers else await operation()

    async def _layer(self, layers: list[Hook], ctx: C, operation: Next) -> Any:
        if not layers:
            return await operation()
        hook, *rest = layers
        inside = Inside(view_for(hook, ctx, self.point), lambda: self._layer(rest, ctx, operation))
        try:
            ran = await run_hook(hook, inside.view, inside.call_next)
        finally:
            inside.close()
        answer = None
        if ran.error is None:
            try:
                seen(inside.view).changed()
                answer = _usable(self.point.name, ran.answer)
            except Exception as error:  # noqa: BLE001 - what a hook answers may raise anything
                ran.error = error
        ran.changed += inside.changed
        if inside.results and self.point.name == "around_tool":
            ran.values["result"] = inside.results[-1]
        note(hook, ctx, ran)
        if ran.error is not None:
            raise _told(hook, inside, ran)
        return answer


class Inside:
    """What a wrap is given as ``call_next``, and what came of it."""

    __slots__ = ("_go", "_tasks", "changed", "errors", "results", "view")

    def __init__(self, view: Context, go: Next) -> None:
        self.view = view
        self._go = go
        self._tasks: set[asyncio.Task[Any]] = set()
        self.changed: tuple[str, ...] = ()
        self.errors: list[BaseException] = []
        self.results: list[Any] = []

    async def call_next(self) -> Any:
        """Run what is wrapped. Raises `HookError` once the hook has ended or its time is over."""
        view = seen(self.view)
        if view.ended:
            raise HookError(f"too late to call_next(): {view.ended}")
        self.changed += view.settle()
        clock = cast(Clock, self.view.clock)
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._tasks.add(task)
        clock.pause()
        try:
            result = await self._go()
        except BaseException as error:
            if not self._is_own(error, task):
                self.errors.append(error)
            raise
        finally:
            self._tasks.discard(task)
            clock.resume()
        self.results.append(result)
        return result

    def _is_own(self, error: BaseException, task: asyncio.Task[Any]) -> bool:
        """True where the hook has cancelled the task that it gave what is wrapped to."""
        run = self.view.run
        cancelled = isinstance(error, asyncio.CancelledError) and task.cancelling()
        return bool(cancelled) and run is not None and not run.cancelled

    def close(self) -> None:
        """Refuse further calls, and end those that the hook did not wait for."""
        seen(self.view).close()
        for task in self._tasks:
            task.cancel()


def _usable(point: str, answer: Any) -> Any:
    """What a wrap answered, as the operation's result. Raises ``TypeError`` for what is none."""
    value = answer.value if isinstance(answer, Answer) else answer
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise TypeError("answered what nobody awaited: return await call_next()")
    if point == "around_llm_request":
        if value is None:
            raise TypeError(FORGOTTEN)
        check("the answer", value, Completion)
    elif point == "around_tool":
        if value is None:
            raise TypeError(FORGOTTEN)
        check("the answer", value, answerable)
        value = ToolResult.of(value)
    return value


def _told(hook: Hook, inside: Inside, ran: Ran) -> BaseException:
    """The error of a wrap as the operation's: one that names it, unless it came from inside."""
    error = ran.error
    assert error is not None
    if error in inside.errors:
        return error
    logger.warning("hook %s failed at %s: %s", hook, hook.event, described(hook, error))
    if not isinstance(error, Exception):
        own = HookError(f"{type(error).__name__}: {error}".rstrip(": "))
        own.__cause__ = error
        error, place = own, place_of(hook, error)
    else:
        place = place_of(hook, error)
    if not isinstance(error, CrowError) or isinstance(error, HookError):
        error.add_note(f"in the hook {hook}, {place}" if place else f"in the hook {hook}")
    if "result" in ran.values:
        error.add_note("the tool itself had run")
    return error
