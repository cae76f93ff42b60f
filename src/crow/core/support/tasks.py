"""A coroutine in a task of its own, begun at once, with a time-out that can stand still.

Its first step runs before `begin` returns, with that task as the current one: what needs no waiting
is over then, and what does can be left behind without being waited for.
"""

from __future__ import annotations

import asyncio
from asyncio.tasks import _enter_task, _leave_task  # pyright: ignore[reportPrivateUsage]
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable
from contextlib import suppress
from contextvars import ContextVar, copy_context  # noqa: TID251 - tasks and threads inherit it
from gc import get_referents
from sys import getrefcount
from typing import Any, Generic, TypeVar

from crow.core.support.clock import Clock
from crow.core.support.frozen import OwnSet

T = TypeVar("T")
NOTHING: Any = object()
DOING: ContextVar[Any] = ContextVar("doing", default=None)
"""What somebody's code does just now, as a view: also in the tasks and threads that it starts."""


def variables() -> Any:
    """What holds the context variables: one more refers to it for each copy of the context."""
    return get_referents(copy_context())[0]


def running() -> asyncio.AbstractEventLoop | None:
    """The loop that runs here; None where none does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class Errands(OwnSet["asyncio.Task[Any]"]):
    """Tasks that somebody cancels at the end, among them those of errands.

    A task whose errand is over with its first step can carry on another one, as long as the loop
    has not come to it: many hooks that wait for nothing share one.
    """

    __slots__ = ("_free",)

    def __init__(self, tasks: Iterable[asyncio.Task[Any]] = ()) -> None:
        super().__init__(tasks)
        self._free: list[Errand] = []

    def begin(
        self,
        coroutine: Coroutine[Any, Any, Any],
        about: object,
        clock: Clock,
        caller: asyncio.Task[Any],
    ) -> Errand:
        """An errand that is to be done in a task of these; it is the caller's to begin it."""
        loop = caller.get_loop()
        errand = self._free.pop() if self._free else None
        if errand is None or errand.loop is not loop or errand.task.cancelling():
            errand = Errand(coroutine, about)
            errand.carry(loop, self)
        else:
            errand.take_up(coroutine, about)
        errand.clock, errand.caller = clock, caller
        return errand

    def offer(self, errand: Errand) -> None:
        """Let its task carry on another errand, in this turn of the loop."""
        self._free.append(errand)

    def retire(self, errand: Errand) -> None:
        """Let go of an errand whose task ends."""
        self.release(errand.task)
        if errand in self._free:
            self._free.remove(errand)


class Errand(Coroutine[Any, Any, Any]):
    """A coroutine that a task carries on, whose first step is made by hand.

    ``about`` is what it is done for. Once it is ``abandoned`` it may tidy up after one
    cancellation; the next one ends it, whatever it catches.
    """

    __slots__ = (
        "__weakref__",
        "_context",
        "_coroutine",
        "_first",
        "_outer",
        "_told",
        "abandoned",
        "about",
        "caller",
        "clock",
        "ended",
        "errands",
        "loop",
        "task",
    )

    task: asyncio.Task[Any]
    errands: Errands
    loop: asyncio.AbstractEventLoop

    def __init__(self, coroutine: Coroutine[Any, Any, Any], about: object) -> None:
        self._first: Any = NOTHING
        self._told = self.abandoned = False
        self.clock: Clock | None = None
        self.caller: Any = None
        self.take_up(coroutine, about)

    def take_up(self, coroutine: Coroutine[Any, Any, Any], about: object) -> None:
        """Be this errand from now on."""
        self._coroutine = coroutine
        self._context = copy_context()
        self.about = about
        self.ended = False

    def carry(self, loop: asyncio.AbstractEventLoop, errands: Errands) -> None:
        """Have a task, which can be cancelled from now on."""
        self.loop, self.errands, self._outer = loop, errands, self._context
        self.task = asyncio.Task(self, loop=loop, context=self._outer)
        errands.hold(self.task)

    def step(self) -> Any:
        """Make the first step as its task; what it answered where that was all, else `NOTHING`."""
        loop, task, caller = self.loop, self.task, self.caller
        clock: Any = self.clock
        known, self.caller = getrefcount(task), None
        _leave_task(loop, caller)
        _enter_task(loop, task)
        try:
            self._first = self._context.run(_first, self.about, self._coroutine)
        except StopIteration as stop:
            self.ended = True
            return stop.value
        except (SystemExit, GeneratorExit) as error:
            self.ended = True
            raise _failure(error) from error
        except BaseException:
            self.ended = True
            raise
        finally:
            clock.end()
            _leave_task(loop, task)
            _enter_task(loop, caller)
            if self.ended and getrefcount(task) <= known:  # or somebody has kept it
                self.errands.offer(self)
        if self._context is not self._outer:
            self._outer.run(DOING.set, self.about)  # what it waits for looks there
        return NOTHING

    def send(self, value: Any) -> Any:
        """Go on, for a task; the first time with what was waited for already."""
        if self.ended:
            self.over()
            raise StopIteration
        first, self._first = self._first, NOTHING
        return self._go_on(self._coroutine.send, value) if first is NOTHING else first

    def throw(self, *error: Any) -> Any:
        """Let the coroutine hear of an error or a cancellation."""
        if self.ended:
            self.over()
            raise StopIteration
        self._first = NOTHING
        if self.abandoned and self._told:
            self.close()
            self.over()
            raise asyncio.CancelledError
        self._told = self._told or self.abandoned
        return self._go_on(self._coroutine.throw, *error)

    def _go_on(self, step: Callable[..., Any], *arguments: Any) -> Any:
        """Make a step; who wants to end the program there has failed, and ends only itself."""
        clock = self.clock
        if clock is not None:
            clock.begin()
        try:
            if self._context is self._outer:
                return step(*arguments)
            return self._context.run(step, *arguments)
        except (SystemExit, GeneratorExit) as error:
            self.over()
            raise _failure(error) from error
        except BaseException:
            self.over()
            raise
        finally:
            if clock is not None:
                clock.end()

    def over(self) -> None:
        """Tell who waits that this is the last step: a turn of the loop before the task would."""
        self.errands.retire(self)
        if self.clock is not None:
            self.clock.over = True
            self.clock.wake()

    def give_up(self) -> None:
        """Let the next cancellation be the last, whatever it catches."""
        self.abandoned = self._told = True

    def close(self) -> None:
        """End the coroutine where it stands; what it does about that counts for nothing."""
        self.ended = True
        with suppress(BaseException):  # somebody else's code, which may refuse to end
            (self._coroutine.close if self._context is self._outer else self._close_within)()

    def _close_within(self) -> None:
        self._context.run(self._coroutine.close)

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._coroutine.__await__()


def _first(about: object, coroutine: Coroutine[Any, Any, Any]) -> Any:
    DOING.set(about)
    return coroutine.send(None)


def _failure(error: BaseException) -> RuntimeError:
    return RuntimeError(f"{type(error).__name__}: {error}".rstrip(": "))


async def uncut(task: asyncio.Task[None], cancel: Callable[[], object]) -> None:
    """Wait for a task to its end; a cancellation calls ``cancel``, and is raised afterwards."""
    cut = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cut = error
            cancel()
    task.result()
    if cut is not None:
        raise cut


class Spawned(asyncio.Task[Any]):
    """The task of work that is done beside a run, which notices who waits for it.

    ``whose`` is what was being done where it was spawned, ``line`` at how many moments of a kind
    somebody was at work there. In `DOING` it stands for itself. ``work`` is the coroutine that it
    was made of.
    """

    awaited = False
    outer: Any = None

    def __init__(self, coroutine: Coroutine[Any, Any, Any], whose: object = None) -> None:
        self.whose: Any = whose
        run = getattr(whose, "run", None)
        self.line: Counter[str] = Counter() if whose is None else line_of(DOING.get(), run)
        self.work = coroutine
        self.watchers: set[Callable[[], object]] = set()
        self._waiters: list[tuple[Any, Any]] = []
        context = copy_context()
        context.run(DOING.set, self)
        work = _without_end(coroutine)
        super().__init__(work, loop=asyncio.get_running_loop(), context=context)
        self.add_done_callback(lambda _: coroutine.close())  # which may not even have begun

    @property
    def waiters(self) -> list[Any]:
        """What those do who wait for it."""
        return [doing for _, doing in self._waiters]

    def add_done_callback(self, fn: Callable[[Any], object], *, context: Any = None) -> None:
        """Call a function at the end; asyncio's own do so for somebody who waits."""
        super().add_done_callback(fn, context=context)
        by_await = context is not None
        doing = context.get(DOING) if by_await else DOING.get()
        if doing is not None and (by_await or _is_asyncios(fn)):
            self._waiters.append((fn, doing))
            for told in tuple(self.watchers):
                told()

    def remove_done_callback(self, fn: Callable[[Any], object], /) -> int:
        """Call it no more: whoever waited has given up."""
        self._waiters = [each for each in self._waiters if each[0] != fn]
        return super().remove_done_callback(fn)


class Begun(Generic[T]):
    """An awaitable, begun in the task that waits. ``done`` where that was all of it.

    Raises, as it is made, what its first step raises. Whoever awaits it next goes on with it; that
    may be another task, as long as nothing was awaited in between.
    """

    __slots__ = ("_first", "_steps", "done", "value")

    value: T

    def __init__(self, pending: Awaitable[T]) -> None:
        self._steps = pending.__await__()
        self.done = False
        try:
            self._first = next(self._steps)
        except StopIteration as stop:
            self.done, self.value = True, stop.value

    def __await__(self) -> Generator[Any, Any, T]:
        if self.done:
            return self.value
        waits_for = self._first
        try:
            while True:
                try:
                    sent = yield waits_for
                except GeneratorExit:
                    self._steps.close()
                    raise
                except BaseException as error:  # noqa: BLE001 - it is the awaited's to hear of it
                    waits_for = self._steps.throw(error)
                else:
                    waits_for = self._steps.send(sent)
        except StopIteration as stop:
            return stop.value


def line_of(doing: Any, run: object) -> Counter[str]:
    """At how many moments of a run, by their names, somebody is at work on what is done.

    What was spawned goes on with the line of whoever spawned it, until another run begins.
    """
    line: Counter[str] = Counter()
    while doing is not None and not isinstance(doing, Spawned):
        line[doing.moment] += doing.run is run
        doing = doing.outer
    if doing is not None and doing.whose is not None and doing.whose.run is run:
        line += doing.line
    return line


def _is_asyncios(fn: Any) -> bool:
    """True for what `asyncio.wait`, ``gather`` and their like leave with a task."""
    module = getattr(getattr(fn, "func", fn), "__module__", None) or ""
    return module.partition(".")[0] == "asyncio"


async def _without_end(work: Coroutine[Any, Any, Any]) -> Any:
    """Do work; who wants to end the program there has failed, and ends only itself."""
    try:
        return await work
    except SystemExit as error:
        raise RuntimeError(f"SystemExit: {error}") from error


def nobodys(coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """The task of work that is no part of what is being done here."""
    context = copy_context()
    context.run(DOING.set, None)
    return asyncio.get_running_loop().create_task(coroutine, context=context)


def was_abandoned(task: asyncio.Task[Any] | None) -> bool:
    """True for the task of an errand that was left behind."""
    carried = None if task is None else task.get_coro()
    return isinstance(carried, Errand) and carried.abandoned
