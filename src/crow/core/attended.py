"""Work that is no hook's, a tool's or a command's: who keeps everything else waiting is named."""

from __future__ import annotations

import logging
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from functools import partial
from inspect import iscoroutine, unwrap
from math import inf
from typing import Any, TypeVar, cast

from crow.core.context import Context
from crow.core.proxy import set_clock, working
from crow.core.session import Key
from crow.core.tasks import Clock

logger = logging.getLogger("crow.hooks")

T = TypeVar("T")
BLOCKED: Key[set[str]] = Key("blocked")
"""Whom the log has named in a session."""


async def attended(view: Context, what: str, thing: object, work: Callable[[], Awaitable[T]]) -> T:
    """What the work of a thing comes to; ``what`` is its name in the log, if it blocks.

    Where a hook that it makes happen blocks, it is that hook which is named.
    """
    clock = Clock(inf, partial(_blocks, view, what, thing))
    set_clock(view, clock)
    with working(view):
        clock.begin()
        try:
            begun = work()
        finally:
            clock.end()
        return await (_steps(begun, clock) if iscoroutine(begun) else begun)


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
