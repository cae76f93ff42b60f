"""Wraps: hooks that go around an operation, which they may begin never, once or often."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Generic, TypeAlias, TypeVar, cast

from crow.core.attempts import Attempt, NextCall, NextRequest, RequestAttempt
from crow.core.context import Context
from crow.core.contexts import ToolContext, TurnContext
from crow.core.errors import CrowError, HookError
from crow.core.events import TextDelta
from crow.core.frozen import kept
from crow.core.history import flaw
from crow.core.hook import Hook, HookPoint, place_of
from crow.core.hook_call import Ran, described, note, run_hook, view_for
from crow.core.hook_result import HookResult
from crow.core.pieces import DELTAS, Channel, Heard, Outlet, Sink, nowhere
from crow.core.ports import Completion, Delta, Request
from crow.core.proxy import IN_REQUEST, SHARED, copied, seen
from crow.core.tasks import Clock
from crow.core.tools import ToolResult
from crow.core.validation import check, json_object
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
Said: TypeAlias = Awaitable[Completion | Answer] | AsyncIterable[Delta | Completion | str]
"""What a hook around a request is: a coroutine that returns the reply, or yields its pieces."""
PIECES = (*DELTAS, Completion)
LayerOf: TypeAlias = "Callable[[Hook, Any, Any, Go, Sink], Layer]"
ALONE = ("around_run",)
"""Where what lies further in cannot be at work twice at the same time: there is one history."""
FORGOTTEN = "answered nothing (is a return missing?)"


class Wrap(HookPoint[C, Callable[[C, N], R]], Generic[C, N, R]):
    """Nested around an operation, the first registered outermost."""

    __slots__ = ()

    async def fire(self, ctx: C, operation: Callable[..., Awaitable[Any]]) -> Any:
        """Run the operation inside the hooks; an error of a hook's is the operation's."""

        def go(ctx: C, sink: Sink) -> Awaitable[Any]:
            return operation()

        return await self._through(list(self.due(ctx)), ctx, nowhere, go, Layer)

    async def _through(
        self, hooks: list[Hook], ctx: C, sink: Sink, operation: Go, layer: LayerOf
    ) -> Any:
        if not hooks:
            return await operation(ctx, sink)
        hook, *rest = hooks

        def go(ctx: C, sink: Sink) -> Awaitable[Any]:
            return self._through(rest, ctx, sink, operation, layer)

        return await layer(hook, view_for(hook, ctx, self.point), ctx, go, sink).run()


class Layer:
    """A hook around what lies further in, and what came of each time that it went on."""

    __slots__ = ("_go", "_tasks", "changed", "ctx", "errors", "hook", "results", "sink", "view")

    def __init__(self, hook: Hook, view: Any, ctx: Any, go: Go, sink: Sink) -> None:
        self.hook = hook
        self.view = view
        self.ctx = ctx
        self.sink = sink
        self._go = go
        self._tasks: set[asyncio.Task[Any]] = set()
        self.changed: tuple[str, ...] = ()
        self.errors: list[BaseException] = []
        self.results: list[Any] = []

    async def run(self) -> Any:
        """What the hook makes of it. Raises what went wrong in it, or further in."""
        try:
            ran = await run_hook(self.hook, self.view, self)
        finally:
            self._close()
        answer = None
        if ran.error is None:
            try:
                seen(self.view).changed()
                answer = self._usable(ran.answer)
            except Exception as error:  # noqa: BLE001 - what a hook answers may raise anything
                ran.error = error
        ran.changed += self.changed
        passes = ran.error in self.errors
        self._note(replace(ran, error=None) if passes else ran)
        if ran.error is not None:
            raise ran.error if passes else self._told(ran)
        return answer

    def call_next(self) -> Attempt[Any]:
        """Go on. Raises `HookError` once the hook has ended or its time is over."""
        return Attempt(self._attempt(lambda: self._go(self.ctx, nowhere)))

    async def _attempt(self, begin: Callable[[], Awaitable[Any]]) -> Any:
        """Run what lies further in, while the hook's own time stands still."""
        view = seen(self.view)
        if view.ended:
            raise HookError(f"too late to call_next(): {view.ended}")
        if self._tasks and self.hook.event in ALONE:
            raise HookError("call_next() is at work already: await it before the next")
        self.changed += view.settle()
        clock = cast(Clock, self.view.clock)
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._tasks.add(task)
        clock.pause()
        try:
            result = await begin()
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
        value = answer.value if isinstance(answer, Answer) else answer
        if isinstance(value, HookResult):
            raise TypeError("answered a HookResult: a wrap returns what it goes around gives")
        if inspect.isawaitable(value):
            if isinstance(value, Attempt) or inspect.iscoroutine(value):
                cast(Any, value).close()
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
            error, place = own, place_of(hook, error)
        else:
            place = place_of(hook, error)
        if not isinstance(error, CrowError) or isinstance(error, HookError):
            error.add_note(f"in the hook {hook}, {place}" if place else f"in the hook {hook}")
        if "result" in ran.values:
            error.add_note("the tool itself had run")
        return error


# around a tool


class ToolWrap(Wrap[ToolContext, NextCall, Awaitable[Result]]):
    """Around a tool; ``other`` makes the call with other arguments, once these are judged."""

    __slots__ = ()

    async def fire(
        self,
        ctx: ToolContext,
        operation: Callable[..., Awaitable[Any]],
        other: Other | None = None,
    ) -> Any:
        """Run the operation inside the hooks; an error of a hook's is the operation's."""

        def layer(*known: Any) -> ToolLayer:
            return ToolLayer(*known, other=other)

        hooks = list(self.due(ctx))
        return await self._through(hooks, ctx, nowhere, lambda ctx, _: operation(ctx), layer)


class ToolLayer(Layer):
    """A hook around a tool."""

    __slots__ = ("_other",)

    def __init__(self, *known: Any, other: Other | None) -> None:
        super().__init__(*known)
        self._other = other

    def call_next(self, args: dict[str, Any] | None = None) -> Attempt[Any]:
        """Run the tool, with other arguments where they are given."""
        if args is not None:
            check("what call_next() is given", args, json_object)
        return Attempt(self._attempt(lambda: self._run(args)))

    async def _run(self, args: dict[str, Any] | None) -> Any:
        if args is None or args == self.ctx.args:
            return await self._go(self.ctx, nowhere)
        if self._other is None:
            raise HookError("call_next() takes no other arguments here")
        other = await self._other(self.ctx, args)
        return await self._go(other, nowhere) if other.result is None else other.result

    def _usable(self, answer: Any) -> Any:
        value = super()._usable(answer)
        if value is None:
            raise TypeError(FORGOTTEN)
        check("the answer", value, answerable)
        return ToolResult.of(value)

    def _note(self, ran: Ran) -> None:
        if self.results:
            ran.values["result"] = self.results[-1]
        super()._note(ran)


# around a request


class RequestWrap(Wrap[TurnContext, NextRequest, Said]):
    """Around a request, whose pieces go to a sink while they come."""

    __slots__ = ()

    async def fire(
        self, ctx: TurnContext, operation: Callable[..., Awaitable[Any]], sink: Sink = nowhere
    ) -> Any:
        """Run the operation inside the hooks; an error of a hook's is the operation's."""
        return await self._through(list(self.due(ctx)), ctx, sink, operation, RequestLayer)


class RequestLayer(Layer):
    """A hook around a request; what it passes on and what it answers agree in the end."""

    __slots__ = ("_failed", "_heard", "_out", "_yielded")

    def __init__(self, *known: Any) -> None:
        super().__init__(*known)
        self._out = Outlet(self.sink)
        self._heard = Heard()
        self._yielded = Heard()
        self._failed = False

    async def run(self) -> Any:
        """What the hook makes of it; shows what of that was not shown."""
        reply = await super().run()
        await self._out.end(reply, self.ctx.request.message_id)
        return reply

    def call_next(self, request: Request | None = None, /, **changes: Any) -> RequestAttempt:
        """Ask the model, another request or a changed one where that is given."""
        new = _changes(request, changes) if request is not None or changes else {}
        return RequestAttempt(
            self._attempt(lambda: self._passed_on(new)), lambda: self._pieces(new)
        )

    def _asked(self, new: dict[str, Any]) -> TurnContext:
        ctx: TurnContext = self.ctx
        return TurnContext(ctx.run, replace(ctx.request, **new)) if new else ctx

    async def _passed_on(self, new: dict[str, Any]) -> Completion:
        out = self._out
        if out.busy:
            return await self._go(self._asked(new), nowhere)
        out.begin()
        out.busy = True
        try:
            reply: Completion = await self._go(self._asked(new), out.put)
        finally:
            out.busy = False
        out.reply = reply
        return reply

    async def _pieces(self, new: dict[str, Any]) -> AsyncGenerator[Delta | Completion, None]:
        """What the model says, for the hook: its time stands still while it waits for that."""
        if self._failed:
            self._yielded, self._failed = Heard(), False
        channel, clock = Channel(), cast(Clock, self.view.clock)
        heard = self._heard = Heard()
        go = self._attempt(lambda: self._go(self._asked(new), channel.put))
        task: asyncio.Task[Completion] = asyncio.create_task(go)
        task.add_done_callback(channel.end)
        try:
            while (piece := await channel.get()) is not None:
                heard.add(piece)
                clock.resume()
                try:
                    yield piece
                finally:
                    clock.pause()
            heard.reply = task.result()
            yield heard.reply
        except Exception:
            self._failed = True
            raise
        finally:
            await _ended(task)

    async def driven(self, yielded: AsyncGenerator[Any, Any]) -> Completion:
        """The answer of a hook that is a generator: what it yields goes on, its reply comes last.

        What cannot go on is raised where it was yielded.
        """
        wrong: TypeError | None = None
        async with aclosing(yielded):
            while True:
                try:
                    step = anext(yielded) if wrong is None else yielded.athrow(wrong)
                    wrong = await self._take(await step)
                except StopAsyncIteration:
                    return self._made()

    async def _take(self, piece: Any) -> TypeError | None:
        """Pass a piece on, or keep the reply; what is wrong with anything else."""
        if isinstance(piece, str):
            piece = TextDelta(piece, self.ctx.request.message_id)
        if self._yielded.reply is not None:
            return TypeError("yielded more behind its reply, which comes last")
        try:
            check("what it yielded", piece, type(piece) if isinstance(piece, PIECES) else a_piece)
        except TypeError as error:
            return error
        if isinstance(piece, Completion):
            self._yielded.reply = piece
        else:
            await self._pass_on(piece)
        return None

    async def _pass_on(self, piece: Delta) -> None:
        if self._yielded.is_empty:
            self._out.begin()
        self._yielded.add(piece)
        clock = cast(Clock, self.view.clock)
        clock.pause()
        try:
            await self._out.put(piece)
        except BaseException as error:
            self.errors.append(error)
            raise
        finally:
            clock.resume()

    def _made(self) -> Completion:
        """The reply of a generator. Where it changed the pieces, that is changed alike."""
        reply, yielded = self._yielded.reply, self._yielded
        if reply is None and self._heard.reply is not None:
            raise TypeError("kept the reply to itself: yield the Completion, too, which comes last")
        if reply is None and yielded.is_empty:
            raise TypeError("yielded nothing (is a yield missing?)")
        made = yielded.agreed(self._heard)
        if yielded.stands_for(made, self._heard):
            self._out.reply = made
        return made

    def _usable(self, answer: Any) -> Any:
        value = super()._usable(answer)
        if value is None:
            raise TypeError(FORGOTTEN)
        if value is not self._out.reply:
            check("the answer", value, Completion)
        return value


def a_piece(value: Any) -> bool:
    """a piece of an answer, or the reply"""  # noqa: D400, D403 - a noun for sentences
    return isinstance(value, PIECES)


def _changes(request: Request | None, changes: dict[str, Any]) -> dict[str, Any]:
    """What is to be another in a request. Raises ``TypeError`` for what cannot be asked."""
    if request is not None:
        check("the request", request, Request)
        changes = {name: getattr(request, name) for name in IN_REQUEST} | changes
    for name, value in changes.items():
        if name not in IN_REQUEST:
            raise TypeError(f"call_next() takes no {name}; it takes {', '.join(IN_REQUEST)}")
        check(f"call_next({name}=...)", value, TurnContext.shapes[name])
    if (wrong := flaw(changes.get("messages", []))) is not None:
        raise TypeError(f"these messages cannot be sent: {wrong}")
    return {
        name: [kept(each) for each in value] if name in SHARED else copied(value)
        for name, value in changes.items()
    }


async def _ended(task: asyncio.Task[Any]) -> None:
    """End a task; what it raises then is of no interest."""
    if not task.done():
        task.cancel()
        await asyncio.wait([task])
    if not task.cancelled():
        task.exception()
