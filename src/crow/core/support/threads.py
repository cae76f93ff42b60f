"""Work in a thread of its own, which the process does not wait for when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context  # noqa: TID251 - a thread inherits it
from functools import partial
from threading import Thread
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def read_in_thread(read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Let a function read in a thread, for as long as it likes, and return its result.

    For what changes nothing: who is cancelled leaves it behind, and so does a process that ends,
    where `asyncio.to_thread` is waited for. Nor does it keep others from a thread.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def settle(how: Callable[[Any], object], what: object) -> None:
        if not answer.done():
            how(what)

    def work() -> None:
        try:
            told = partial(settle, answer.set_result, read(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            told = partial(settle, answer.set_exception, error)
        with suppress(RuntimeError):  # the loop is over
            loop.call_soon_threadsafe(told)

    Thread(target=copy_context().run, args=(work,), name="crow-reader", daemon=True).start()
    return await answer
