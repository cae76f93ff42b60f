"""Wraps: hooks that go around an operation, which they may begin never, once or often."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar, cast

from crow.core.errors import CrowError, HookError
from crow.core.hooks.call import run_hook, task_of
from crow.core.hooks.call_next import Attempt, NextCall
from crow.core.hooks.context import Context
from crow.core.hooks.contexts import ToolContext
from crow.core.hooks.hook import Hook, place_of
from crow.core.hooks.hook_point import HookPoint
from crow.core.hooks.outcome import Ran, described, note, report
from crow.core.hooks.output import HookResult
from crow.core.hooks.proxy import given, lend, seen
from crow.core.hooks.wraps.stream import Sink, nowhere
from crow.core.support.tasks import Errand
from crow.core.support.validation import check, json_object
from crow.core.tools import ToolResult
from crow.core.verdicts import Answer, answerable

logger = logging.getLogger("crow.hooks")

C = TypeVar("C", bound=Context)
N = TypeVar("N", bound=Callable[..., Any])
R = TypeVar("R")

Go: TypeAlias = Callable[[Any, Sink], Awaitable[Any]]
"""What lies further in, from a context on; pieces of what it gives go to the sink meanwhile."""
Other: TypeAlias = Callable[[ToolContext, dict[str, Any]], Awaitable[ToolContext]]
Result: TypeAlias = ToolResult | Answer | str | float | list[Any] | dict[str, Any]
"""What a hook around a tool may answer."""
LayerOf: TypeAlias = "Callable[[Hook, Any, Any, Go, Sink], Layer]"
ALONE = ("around_run",)
"""Where what lies further in cannot be at work twice at the same time: there is one history."""
PATIENCE = 0.02
"""Seconds that it takes to learn that there is nothing to go on with any more."""
TRIES = 5
"""How often a hook may learn that before it is ended."""
HAD_RUN = "the tool itself had run"
HAD_NOT_RUN = "the tool itself did not run"
CUT_OFF = "the tool had begun, and was cut off"
FORGOTTEN = "answered nothing (is a return missing?)"


class Wrap(HookPoint[C, Callable[[C, N], R]], Generic[C, N, R]):
    """Nested around an operation, the first registered outermost."""

    __slots__ = ()

    async def fire(self, ctx: C, operation: Callable[..., Awaitable[Any]]) -> Any:
        """Run the operation inside the hooks; an error of a hook's is the operation's."""

        def go(ctx: C, sink: Sink) -> Awaitable[Any]:
            return operation()

        return await self._through(self.due(ctx), go, Layer, ctx, nowhere)

    def _through(
        self, hooks: Sequence[Hook], operation: Go, layer: LayerOf, ctx: C, sink: Sink
    ) -> Awaitable[Any]:
        if not hooks:
            return operation(ctx, sink)
        hook, rest = hooks[0], hooks[1:]
        go = partial(self._through, rest, operation, layer) if rest else operation
        return layer(hook, lend(ctx, hook.role), ctx, go, sink).run()


class Layer:
    """A hook around what lies further in, and what came of each time that it went on."""

    __slots__ = (
        "_go",
        "_last",
        "_leaving",
        "_refused",
        "_tasks",
        "changed",
        "ctx",
        "errors",
        "hook",
        "results",
        "sink",
        "view",
    )

    is_spared = True
    """Whether a wrong assignment in the hook, which it does not catch, is no error of the
    operation's."""

    def __init__(self, hook: Hook, view: Any, ctx: Any, go: Go, sink: Sink) -> None:
        self.hook = hook
        self.view = view
        self.ctx = ctx
        self.sink = sink
        self._go = go
        self._last: Attempt[Any] | None = None
        self._leaving: Attempt[Any] | None = None
        self._refused = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self.changed: tuple[str, ...] = ()
        self.errors: list[BaseException] = []
        self.results: list[Any] = []

    async def run(self) -> Any:
        """What the hook makes of it. Raises what went wrong in it, or further in."""
        try:
            ran = await run_hook(self.hook, self.view, self)
            if self._leaving is not None:
                await self._instead(ran, self._leaving)
        finally:
            self._close()
        answer = None
        if ran.error is None:
            try:
                if given(self.view) is not None:
                    seen(self.view).changed()
                answer = self._usable(ran.answer)
            except Exception as error:  # noqa: BLE001 - what a hook answers may raise anything
                ran.error = error
        if self.changed:
            ran.changed += self.changed
        if ran.error is not None:
            return await self._wrong(ran, ran.error)
        self._note(ran)
        if (more := self._unseen(answer)) is not None:
            await more
        return answer

    def leaves(self, ran: Ran) -> bool:
        """Whether the hook is done, and has answered with an attempt that is to be made.

        Nothing of it has to be waited for then: there is no task and no clock for it.
        """
        last = self._last
        if last is None or ran.answer is not last or not last.is_new or self._tasks:
            return False
        touched = ran.has_cancelled or self.view.session.history.before is not ran.touched
        if touched or self.hook.lazy or ran.seconds >= self.hook.patience:
            return False
        self._leaving = last
        return True

    async def _instead(self, ran: Ran, attempt: Attempt[Any]) -> None:
        """Make the attempt that a hook has answered with."""
        try:
            ran.answer = await attempt
        except (KeyboardInterrupt, GeneratorExit, asyncio.CancelledError):
            raise
        except BaseException as error:  # noqa: BLE001 - whatever lies further in may raise anything
            ran.error = error

    def _unseen(self, answer: Any) -> Awaitable[None] | None:
        """What shows that of the answer which nobody has seen yet; None where there is nothing."""

    async def _wrong(self, ran: Ran, error: BaseException) -> Any:
        """Raise what went wrong, if it was not only an assignment that could not be."""
        if error in self.errors:
            ran.error = None
        self._note(ran)
        if error is seen(self.view).wrong and self.is_spared:
            await report(self.hook, self.ctx, error)
            answer = self.results[-1] if self.results else await self._alone()
            if (more := self._unseen(answer)) is not None:
                await more
            return answer
        ran.error = error
        raise error if error in self.errors else self._told(ran)

    async def _alone(self) -> Any:
        """What lies further in, as if the hook were not there."""
        return await self._onward(None, self.sink)

    def call_next(self) -> Attempt[Any]:
        """Go on. Raises `HookError` once the hook has ended or its time is over."""
        self._last = attempt = Attempt(self._attempt(None, nowhere))
        return attempt

    def _onward(self, new: Any, sink: Sink) -> Awaitable[Any]:
        """Run what lies further in, with something new if there is that."""
        return self._go(self.ctx, sink)

    async def _attempt(self, new: Any, sink: Sink) -> Any:
        """Run what lies further in, while the hook's own time stands still."""
        view: Any = self.view
        run = view.run
        if view.ended or (run is not None and run.cancelled):
            await self._hold_back()
        self._set_off()
        clock, task = view.clock, task_of(run)
        self._tasks.add(task)
        if clock is not None:
            clock.pause()
        try:
            result = await self._onward(new, sink)
        except BaseException as error:
            if not self._is_own(error, task):
                self.errors.append(error)
            raise
        finally:
            self._tasks.discard(task)
            if clock is not None:
                clock.resume()
        self.results.append(result)
        return result

    def _set_off(self) -> None:
        """Take what the hook has changed along. Raises `HookError` where it cannot go on."""
        view: Any = self.view
        if view.ended:
            raise HookError(f"too late to call_next(): {view.ended}")
        if self._tasks and self.hook.event in ALONE:
            raise HookError("call_next() is at work already: await it before the next")
        if given(view) is not None:
            self.changed += view.settle()

    async def _hold_back(self) -> None:
        """Let others work before somebody is told no; who tries for ever is ended."""
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        carried = task.get_coro()
        self._refused += 1
        if self._refused > TRIES and isinstance(carried, Errand):
            carried.give_up()
            task.cancel()
        await asyncio.sleep(PATIENCE)

    def _is_own(self, error: BaseException, task: asyncio.Task[Any]) -> bool:
        """True where the hook has cancelled the task that it gave what is wrapped to."""
        run = self.view.run
        cancelled = isinstance(error, asyncio.CancelledError) and task.cancelling()
        return bool(cancelled) and run is not None and not run.cancelled

    def _close(self) -> None:
        """Refuse further attempts, and end those that the hook did not wait for."""
        seen(self.view).close()
        for task in self._tasks:
            task.cancel()

    async def driven(self, yielded: AsyncGenerator[Any, Any]) -> Any:
        """The answer of a hook that is a generator."""
        await yielded.aclose()
        raise TypeError(f"yields, which {self.hook.event} has no use for: return the result")

    def _usable(self, answer: Any) -> Any:
        """What the hook answered, as the result. Raises ``TypeError`` for what is none."""
        if answer is None:
            return None
        value = answer.value if isinstance(answer, Answer) else answer
        if isinstance(value, HookResult):
            raise TypeError("answered a HookResult: a wrap returns what it goes around gives")
        if hasattr(value, "__await__"):
            with suppress(AttributeError):  # it may be anything that can be awaited
                (value.close if isinstance(value, Coroutine) else value.cancel)()
            raise TypeError("answered what nobody awaited: return await call_next()")
        return value

    def _note(self, ran: Ran) -> None:
        note(self.hook, self.ctx, ran)

    def _told(self, ran: Ran) -> BaseException:
        """The hook's error as the operation's: it names the hook."""
        hook, error = self.hook, ran.error
        assert error is not None
        logger.warning("hook %s failed at %s: %s", hook, hook.event, described(hook, error))
        if not isinstance(error, Exception):
            own = HookError(f"{type(error).__name__}: {error}".rstrip(": "))
            own.__cause__ = error
            error, place = own, place_of(hook.function, error)
        else:
            place = place_of(hook.function, error)
        if not isinstance(error, CrowError) or isinstance(error, HookError):
            error.add_note(f"in the hook {hook}, {place}" if place else f"in the hook {hook}")
        return error


# around a tool


class ToolWrap(Wrap[ToolContext, NextCall, Awaitable[Result]]):
    """Around a tool; ``other`` makes the call with other arguments, once these are judged."""

    __slots__ = ()

    async def fire(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        ctx: ToolContext,
        operation: Callable[..., Awaitable[Any]],
        other: Other,
    ) -> Any:
        """Run the operation inside the hooks; an error of a hook's is the operation's."""

        def layer(*known: Any) -> ToolLayer:
            return ToolLayer(*known, other=other)

        hooks = self.due(ctx)
        return await self._through(hooks, lambda ctx, _: operation(ctx), layer, ctx, nowhere)


class ToolLayer(Layer):
    """A hook around a tool."""

    __slots__ = ("_other",)

    is_spared = False  # nobody knows whether it would have let the tool run

    def __init__(self, *known: Any, other: Other) -> None:
        super().__init__(*known)
        self._other = other

    def call_next(self, args: dict[str, Any] | None = None) -> Attempt[Any]:
        """Run the tool, with other arguments where they are given."""
        if args is not None:
            check("what call_next() is given", args, json_object)
        self._last = attempt = Attempt(self._attempt(args, nowhere))
        return attempt

    def _onward(self, new: dict[str, Any] | None, sink: Sink) -> Awaitable[Any]:
        if new is None or new == self.ctx.args:
            return self._go(self.ctx, sink)
        return self._with(new)

    async def _with(self, args: dict[str, Any]) -> Any:
        other = await self._other(self.ctx, args)
        return await self._go(other, nowhere) if other.result is None else other.result

    def _usable(self, answer: Any) -> Any:
        if type(answer) is ToolResult and any(answer is each for each in self.results):
            return answer
        value = super()._usable(answer)
        if value is None:
            raise TypeError(FORGOTTEN)
        check("the answer", value, answerable)
        return ToolResult.of(value)

    def _note(self, ran: Ran) -> None:
        if self.results:
            ran.keep("result", self.results[-1])
        super()._note(ran)

    def _told(self, ran: Ran) -> BaseException:
        error, ctx = super()._told(ran), self.ctx
        error.add_note(HAD_RUN if ctx.finished else CUT_OFF if ctx.begun else HAD_NOT_RUN)
        return error
