"""Running one hook: in its own time, under its own name, its failure a value, its work undoable."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from copy import copy, deepcopy
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from crow.core.context import Context, Reply, RunContext, ToolContext
from crow.core.points import Filter, Point
from crow.core.trace import Record

if TYPE_CHECKING:
    from crow.core.hooks import Hooks, Owner

logger = logging.getLogger("crow.hooks")

CANCELLED_TIMEOUT = 0.25

Next = Callable[[], Awaitable[Any]]


@dataclass(slots=True, eq=False)
class Hook:
    """One registered callable, ready to be called."""

    call: Callable[[Any, Next | None], Any]
    name: str
    owner: Owner
    event: str
    order: int = 0
    timeout: float = 60.0
    background: bool = False
    judge: bool = False
    tools: frozenset[str] | None = None
    when: Filter | None = None
    function: Any = None
    failures: int = 0
    off: bool = False

    def concerns(self, ctx: Context) -> bool:
        """True where neither the tool filter nor the alias's filter excludes this moment."""
        if self.off or (self.tools is not None and _tool_name(ctx) not in self.tools):
            return False
        return self.when is None or self.when(ctx)

    def __str__(self) -> str:
        return f"{self.owner.name}.{self.name}" if self.owner.name != self.name else self.name


def _tool_name(ctx: Context) -> str:
    return cast(ToolContext, ctx).call.name.casefold()


class OwnTime:
    """A hook's time-out, which stands still while the hook waits for somebody else."""

    __slots__ = ("_left", "_pauses", "_timeout")

    def __init__(self, timeout: asyncio.Timeout) -> None:
        self._timeout = timeout
        self._left = 0.0
        self._pauses = 0

    def pause(self) -> None:
        """Stop the clock; pauses nest."""
        self._pauses += 1
        when = self._timeout.when()
        if self._pauses == 1 and when is not None:
            self._left = when - asyncio.get_running_loop().time()
            self._timeout.reschedule(None)

    def resume(self) -> None:
        """Let the clock run again."""
        self._pauses -= 1
        if self._pauses == 0 and not self._timeout.expired():
            self._timeout.reschedule(asyncio.get_running_loop().time() + self._left)


@dataclass(slots=True)
class Ran:
    """How one run of a hook ended."""

    answer: Any = None
    error: BaseException | None = None
    seconds: float = 0.0


async def run_hook(hook: Hook, ctx: Context, call_next: Next | None = None) -> Ran:
    """Call a hook in its own time and under its own name; its failure is a value."""
    outer = ctx.owner, ctx.clock
    ctx.owner = hook.owner.name
    started = perf_counter()
    try:
        answer = hook.call(ctx, call_next)
        if hasattr(answer, "__await__"):
            answer = await _in_time(hook, ctx, answer)
        return Ran(answer, None, perf_counter() - started)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except asyncio.CancelledError as error:
        if _is_cancelled(ctx):
            raise
        return Ran(None, error, perf_counter() - started)
    except BaseException as error:  # noqa: BLE001 - a hook may raise even SystemExit
        return Ran(None, error, perf_counter() - started)
    finally:
        ctx.owner, ctx.clock = outer


async def _in_time(hook: Hook, ctx: Context, answer: Awaitable[Any]) -> Any:
    if ctx.run is not None and ctx.run.cancelled:
        return await _in_no_time(hook, ctx.run, answer)
    timeout = asyncio.timeout(hook.timeout)
    try:
        async with timeout:
            ctx.clock = OwnTime(timeout)
            return await answer
    except TimeoutError:
        if timeout.expired():
            raise TimeoutError(f"took longer than {hook.timeout:g} s") from None
        raise


async def _in_no_time(hook: Hook, run: RunContext, answer: Awaitable[Any]) -> Any:
    """Wait as long as a cancelled run can, once a hook, even for one that ignores the end."""
    task = asyncio.ensure_future(answer)
    limit = 0 if hook in run.hung else min(hook.timeout, CANCELLED_TIMEOUT)
    await asyncio.wait({task}, timeout=limit)
    if not task.done():
        run.hung.add(hook)
        task.cancel()
        raise TimeoutError(f"took longer than {limit:g} s in a cancelled run")
    return task.result()


def _is_cancelled(ctx: Context) -> bool:
    task = asyncio.current_task()
    return bool(task and task.cancelling()) or bool(ctx.run and ctx.run.cancelled)


def note(
    hook: Hook, ctx: Context, ran: Ran, answer: object = None, changed: tuple[str, ...] = ()
) -> None:
    """Put a run of a hook into the session's trace."""
    call = ctx.call.id if isinstance(ctx, ToolContext) else None
    record = Record(
        hook.event,
        hook.owner.name,
        hook.name,
        answer,
        changed,
        None if ran.error is None else describe(ran.error),
        ran.seconds,
        call,
        {name: value for name in changed if not isinstance(value := _now(ctx, name), list)},
    )
    ctx.session.trace.add(record)
    registry: Hooks | None = ctx.agent.hooks
    while registry is not None:
        for watcher in registry.watchers:
            watcher(record, ctx)
        registry = registry.parent


def _now(ctx: Context, name: str) -> Any:
    value: Any = getattr(ctx, name)
    return deepcopy(value) if isinstance(value, dict) else value  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]


def describe(error: BaseException) -> str:
    """An error in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


async def report(hook: Hook, ctx: Context, error: BaseException) -> None:
    """Log a hook's failure and fire ``on_error`` for it."""
    logger.warning("hook %s failed at %s: %s", hook, hook.event, describe(error))
    if hook.event != "on_error":
        await ctx.fail(error, f"hook:{hook.owner.name}")


def snapshot(point: Point, ctx: Context) -> dict[str, Any]:
    """The fields that a hook may change, as they are now."""
    return {name: _kept(getattr(ctx, name)) for name in point.changes}


def _kept(value: Any) -> Any:
    """A value that the original's changes do not reach; events, results and texts never change."""
    if isinstance(value, dict):
        return deepcopy(cast("dict[str, Any]", value))
    return copy(cast("Any", value)) if isinstance(value, list | Reply) else value


def restore(point: Point, ctx: Context, before: dict[str, Any]) -> None:
    """Undo what a hook changed."""
    for name in point.changes:
        setattr(ctx, name, before[name])


def changes(point: Point, ctx: Context, before: dict[str, Any]) -> tuple[str, ...]:
    """Names of the fields that are not as they were."""
    return tuple(name for name in point.changes if getattr(ctx, name) != before[name])
