"""A coroutine in a task of its own, begun at once, with a time-out that can stand still.

Its first step runs before `begin` returns, with that task as the current one: what needs no waiting
is over then, and what does can be left behind without being waited for.
"""

from __future__ import annotations

import asyncio
from asyncio.tasks import _enter_task, _leave_task  # pyright: ignore[reportPrivateUsage]
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context  # noqa: TID251 - tasks and threads inherit it
from math import inf
from time import perf_counter
from typing import Any, Protocol, cast

NOTHING: Any = object()
BLOCKING = 0.05
"""Seconds for which somebody's code may keep everything else from running before it is named."""
DOING: ContextVar[Any] = ContextVar("doing", default=None)
"""What somebody's code does just now, as a view: also in the tasks and threads that it starts."""


class Tasks(Protocol):
    """Tasks that somebody cancels at the end."""

    def hold(self, item: asyncio.Task[Any], /) -> None:
        """Put one in."""
        ...

    def release(self, item: asyncio.Task[Any], /) -> None:
        """Take one out."""
        ...


class Errand(Coroutine[Any, Any, Any]):
    """What a task carries on: a coroutine whose first step was made by hand.

    ``about`` is what it is done for. Once it is ``abandoned`` it may tidy up after one
    cancellation; the next one ends it, whatever it catches.
    """

    __slots__ = (
        "__weakref__",
        "_coroutine",
        "_first",
        "_told",
        "abandoned",
        "about",
        "clock",
        "ended",
        "task",
        "tasks",
    )

    def __init__(self, coroutine: Coroutine[Any, Any, Any], about: object) -> None:
        self._coroutine = coroutine
        self._first: Any = NOTHING
        self._told = False
        self.about = about
        self.clock: Clock | None = None
        self.abandoned = False
        self.ended = False
        self.task: asyncio.Task[Any] | None = None
        self.tasks: Any = None

    def step(self) -> Any:
        """Make the first step; what it answered where that was all, else `NOTHING`."""
        try:
            self._first = self._go_on(self._coroutine.send, None)
        except StopIteration as stop:
            self.ended = True
            return stop.value
        except BaseException:
            self.ended = True
            raise
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
            return step(*arguments)
        except (SystemExit, GeneratorExit) as error:
            self.over()
            raise RuntimeError(f"{type(error).__name__}: {error}".rstrip(": ")) from error
        except BaseException:
            self.over()
            raise
        finally:
            if clock is not None:
                clock.end()

    def over(self) -> None:
        """Tell who waits that this is the last step: a turn of the loop before the task would."""
        self.tasks.release(self.task)
        if self.clock is not None:
            self.clock.wake()

    def give_up(self) -> None:
        """Let the next cancellation be the last, whatever it catches."""
        self.abandoned = self._told = True

    def close(self) -> None:
        """End the coroutine where it stands; what it does about that counts for nothing."""
        self.ended = True
        with suppress(BaseException):  # somebody else's code, which may refuse to end
            self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._coroutine.__await__()


def begin(errand: Errand, tasks: Tasks) -> tuple[asyncio.Task[Any], Any]:
    """The task of an errand, and its answer where it needed no waiting, else `NOTHING`.

    While it is not done the task is one of ``tasks``, so that it can be cancelled there.
    """
    loop = asyncio.get_running_loop()
    context = copy_context()
    context.run(DOING.set, errand.about)
    errand.task = task = asyncio.Task(errand, loop=loop, context=context)
    caller = cast("asyncio.Task[Any]", asyncio.current_task(loop))
    _leave_task(loop, caller)
    _enter_task(loop, task)
    errand.tasks = tasks
    tasks.hold(task)
    try:
        return task, context.run(errand.step)
    finally:
        _leave_task(loop, task)
        _enter_task(loop, caller)


class Spawned(asyncio.Task[Any]):
    """The task of work that is done beside a run, which notices who waits for it.

    ``whose`` is what was being done where it was spawned. In `DOING` it stands for itself.
    ``work`` is the coroutine that it was made of.
    """

    awaited = False
    outer: Any = None

    def __init__(self, coroutine: Coroutine[Any, Any, Any], whose: object = None) -> None:
        self.whose: Any = whose
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


class Clock:
    """An errand's own time, which stands still while it waits for somebody else.

    ``blocks`` is called with the seconds for which a step of the errand's own has kept everything
    else from running; what others did in that step is ``elsewhere``.
    """

    __slots__ = (
        "_began",
        "_handle",
        "_in_step",
        "_left",
        "_pauses",
        "_since",
        "_started",
        "blocks",
        "elsewhere",
        "expired",
        "waiter",
    )

    def __init__(self, seconds: float, blocks: Callable[[float], None] | None = None) -> None:
        self.blocks = blocks
        self.elsewhere = 0.0
        self._began = 0.0
        self._in_step = self._started = False
        self._left = seconds
        self._pauses = 1
        self._since = 0.0
        self._handle: asyncio.TimerHandle | None = None
        self.waiter: asyncio.Future[None] | None = None
        self.expired = False

    def begin(self) -> None:
        """Look at how long a step takes, from here on."""
        self._in_step = True
        self._began, self.elsewhere = perf_counter(), 0.0

    def end(self) -> None:
        """Look no longer."""
        self._look()
        self._in_step = False

    def _look(self) -> None:
        """Tell of a step that took long, as far as that was the errand's own doing."""
        if self._in_step and self._pauses == (not self._started):
            seconds = perf_counter() - self._began - self.elsewhere
            if seconds > BLOCKING and self.blocks is not None:
                self.blocks(seconds)

    def pause(self) -> None:
        """Stop the clock; pauses nest, and it begins paused."""
        self._look()
        self._pauses += 1
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
            self._left -= asyncio.get_running_loop().time() - self._since

    def resume(self) -> None:
        """Let the clock run again."""
        self._pauses -= 1
        self._began, self.elsewhere = perf_counter(), 0.0
        if self._pauses == 0 and self._left != inf:
            loop = asyncio.get_running_loop()
            self._since = loop.time()
            self._handle = loop.call_later(max(self._left, 0), self._expire)

    def wake(self) -> None:
        """Let `ended` look again."""
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    def _expire(self) -> None:
        self._handle, self.expired = None, True
        self.wake()

    async def ended(self, task: asyncio.Task[Any], spent: float) -> None:
        """Wait until the task is done or its time is over, of which so much is spent already.

        Where the waiting is cancelled, so is the task, which has the rest of its time to end.
        """
        self._left -= spent
        self._started = True
        self.resume()
        cancelled = False
        loop = asyncio.get_running_loop()
        try:
            while not task.done() and not self.expired:
                self.waiter = loop.create_future()
                try:
                    await self.waiter
                except asyncio.CancelledError:
                    cancelled = True
                    if not task.cancelling():  # or its tidying up would be cancelled
                        task.cancel()
        finally:
            self.pause()
        if cancelled:
            raise asyncio.CancelledError


@contextmanager
def standing(clock: Clock | None) -> Generator[None]:
    """Let a clock stand still meanwhile, where there is one."""
    if clock is not None:
        clock.pause()
    try:
        yield
    finally:
        if clock is not None:
            clock.resume()
