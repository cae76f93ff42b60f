"""Hooks around an operation: nested, each free to call what it wraps never, once or often."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from crow.core.calls import ToolResult
from crow.core.context import Context
from crow.core.errand import Clock
from crow.core.errors import CrowError, HookError
from crow.core.hook import Hook, Next, Ran, described, note, place_of, run_hook, view_for
from crow.core.hook_point import HookPoint
from crow.core.ports import Completion
from crow.core.shapes import check
from crow.core.verdicts import Answer, answerable
from crow.core.view import seen

logger = logging.getLogger("crow.hooks")

C = TypeVar("C", bound=Context)
FORGOTTEN = "answered nothing (is a return missing?)"


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
        if inside.results and self.point.name == "around_tool":
            ran.values["result"] = inside.results[-1]
        note(hook, ctx, ran)
        if ran.error is not None:
            raise _told(hook, inside, ran)
        return answer


class Inside:
    """What a wrap is given as ``call_next``, and what came of it."""

    __slots__ = ("_go", "_tasks", "errors", "results", "view")

    def __init__(self, view: Context, go: Next) -> None:
        self.view = view
        self._go = go
        self._tasks: set[asyncio.Task[Any]] = set()
        self.errors: list[BaseException] = []
        self.results: list[Any] = []

    async def call_next(self) -> Any:
        """Run what is wrapped. Raises `HookError` once the hook has ended or its time is over."""
        view = seen(self.view)
        if view.ended:
            raise HookError(f"too late to call_next(): {view.ended}")
        view.settle()
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
