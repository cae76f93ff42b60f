"""The five kinds of points: what the answers of several hooks add up to, and what a failure does.

A point's kind is the whole of what its hooks' answers can do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast, overload

from crow.core.calls import ToolResult
from crow.core.context import CompactContext, Context, Reply, RunContext, ToolContext, UpdateContext
from crow.core.events import Notice
from crow.core.points import Filter, Point
from crow.core.ports import Completion
from crow.core.trace import Record
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
)

if TYPE_CHECKING:
    from crow.core.hooks import Owner

logger = logging.getLogger("crow.hooks")

C = TypeVar("C", bound=Context)
F = TypeVar("F", bound=Callable[..., Any])
A = TypeVar("A")
FAILURES_TOLERATED = 3
TOTAL_CAP = 25
CANCELLED_TIMEOUT = 0.5

Next = Callable[[], Awaitable[Any]]
Nothing: TypeAlias = "dict[str, None] | None"
GateAnswer: TypeAlias = "Verdict | str | Nothing"
StopAnswer: TypeAlias = "Continue | Stop | str | Nothing"


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
    limit = hook.timeout
    if ctx.run is not None and ctx.run.cancelled:
        limit = min(limit, CANCELLED_TIMEOUT)
    try:
        async with asyncio.timeout(limit) as timeout:
            ctx.clock = OwnTime(timeout)
            return await answer
    except TimeoutError:
        if timeout.expired():
            raise TimeoutError(f"took longer than {limit:g} s") from None
        raise


def _is_cancelled(ctx: Context) -> bool:
    task = asyncio.current_task()
    return bool(task and task.cancelling()) or bool(ctx.run and ctx.run.cancelled)


def note(
    hook: Hook, ctx: Context, ran: Ran, answer: object = None, changed: tuple[str, ...] = ()
) -> None:
    """Put a run of a hook into the session's trace."""
    call = cast(ToolContext, ctx).call.id if isinstance(ctx, ToolContext) else None
    record = Record(
        hook.event,
        hook.owner.name,
        hook.name,
        answer,
        changed,
        None if ran.error is None else describe(ran.error),
        ran.seconds,
        call,
    )
    ctx.session.trace.add(record)
    for watcher in ctx.agent.hooks.watchers:
        watcher(record, ctx)


def describe(error: BaseException) -> str:
    """An error in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


async def report(hook: Hook, ctx: Context, error: BaseException) -> None:
    """Log a hook's failure and fire ``on_error`` for it."""
    logger.warning("hook %s failed at %s: %s", hook, hook.event, describe(error))
    if hook.event != "on_error":
        await ctx.fail(error, f"hook:{hook.owner.name}")


class Slot(Generic[C, F]):
    """The hooks that hang at one point, in the order in which they run.

    Calling it registers a hook, typed: ``@agent.hooks.before_tool``, with options
    ``@agent.hooks.before_tool(tools={"Bash"})``.
    """

    __slots__ = ("entries", "parent", "point", "register")

    def __init__(
        self, point: Point, register: Callable[..., Any], parent: Slot[C, F] | None = None
    ) -> None:
        self.point = point
        self.register = register
        self.parent = parent
        self.entries: tuple[Hook, ...] = ()

    @overload
    def __call__(self, fn: F, /) -> F: ...
    @overload
    def __call__(
        self,
        *,
        tools: Iterable[str] | None = None,
        order: int = 0,
        timeout: float = 60.0,
        background: bool = False,
        judge: bool = False,
    ) -> Callable[[F], F]: ...
    def __call__(self, fn: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Register a hook at this point."""
        if fn is None:
            return lambda fn: self(fn, **options)  # pyright: ignore[reportUnknownLambdaType]
        self.register(self.point.name, fn, **options)
        return fn

    def put(self, hooks: list[Hook]) -> None:
        """Replace the hooks; sorts them by their order, ties stay as they are."""
        hooks.sort(key=lambda hook: (hook.judge, hook.order))
        self.entries = tuple(reversed(hooks)) if self.point.reverse else tuple(hooks)

    def __bool__(self) -> bool:
        return bool(self.entries)


class Watch(Slot[C, Callable[[C], object]]):
    """All run; answers count for nothing; a failure is logged."""

    __slots__ = ()

    async def fire(self, ctx: C) -> None:
        """Call the hooks."""
        for hook in self.entries:
            if not hook.concerns(ctx):
                continue
            if hook.background:
                ctx.session.spawn(self._watch(hook, copy(ctx)))
            else:
                await self._watch(hook, ctx)

    async def _watch(self, hook: Hook, ctx: C) -> None:
        ran = await run_hook(hook, ctx)
        note(hook, ctx, ran, ran.answer)
        if ran.error is not None:
            await report(hook, ctx, ran.error)
        elif isinstance(ran.answer, Stop):
            _stop(hook, ctx, ran.answer)


class Gate(Slot[C, "Callable[[C], GateAnswer | Awaitable[GateAnswer]]"]):
    """The strictest verdict stands, rewrites chain, and whoever cannot decide denies.

    Hooks registered with ``judge=True`` run last, on arguments that nobody can change any more.
    """

    __slots__ = ()

    async def fire(self, ctx: C, check: Callable[[C], bool] | None = None) -> Ruling:
        """Call the hooks, the parent agent's first.

        ``check`` is called between the last rewrite and the judges; where it answers False there
        is nothing left to decide.
        """
        entries = self.inherited + self.entries
        ruling = NO_RULING
        for hook in entries:
            if not hook.judge and hook.concerns(ctx):
                ruling = await self._consult(hook, ctx, ruling)
        if check is not None and not check(ctx):
            return NO_RULING
        for hook in entries:
            if hook.judge and hook.concerns(ctx):
                ruling = await self._consult(hook, ctx, ruling)
        return ruling

    @property
    def inherited(self) -> tuple[Hook, ...]:
        """The gates of the parent agent, and of its parent."""
        parent = self.parent
        return () if parent is None else cast("Gate[C]", parent).inherited + parent.entries

    async def _consult(self, hook: Hook, ctx: C, ruling: Ruling) -> Ruling:
        before = snapshot(self.point, ctx)
        ran = await run_hook(hook, ctx)
        if ran.error is None:
            try:
                verdict = await self._verdict(hook, ctx, ran.answer)
            except TypeError as error:
                ran.error = error
                verdict = None
        else:
            verdict = None
        if ran.error is not None or (hook.judge and changes(self.point, ctx, before)):
            error = ran.error or RuntimeError("a judge must not change what it judges")
            restore(self.point, ctx, before)
            verdict = Deny(f"the hook {hook} could not decide: {describe(error)}")
            await report(hook, ctx, error)
        note(hook, ctx, ran, verdict or ran.answer, changes(self.point, ctx, before))
        return ruling if verdict is None else ruling.joined(verdict)

    async def _verdict(self, hook: Hook, ctx: C, answer: Any) -> Verdict | None:
        match answer:
            case None:
                return None
            case dict() if not answer:
                return None
            case Allow() if not hook.owner.trusted:
                return None
            case Allow() | Ask() | Deny() | Stop() | Answer():
                return answer
            case str() if self.point.plain == "deny":
                return Deny(answer)
            case str():
                await _inject(hook, ctx, answer)
                return None
            case _:
                raise TypeError(f"answered {answer!r}, which is no verdict")


class Fold(Slot[C, "Callable[[C], A | Stop | Nothing | Awaitable[A | Stop | Nothing]]"], Generic[C, A]):
    """Each hook gets the previous one's value; a failing one is undone and skipped."""

    __slots__ = ()

    async def fire(self, ctx: C) -> Deny | None:
        """Call the hooks; a `Deny` (only where the point takes one) ends the fold."""
        for hook in self.entries:
            if not hook.concerns(ctx):
                continue
            if hook.background:
                ctx.session.spawn(self._beside(hook, copy(ctx)))
            elif (denied := await self._step(hook, ctx)) is not None:
                return denied
        return None

    async def _beside(self, hook: Hook, ctx: C) -> None:
        ran = await run_hook(hook, ctx)
        note(hook, ctx, ran, ran.answer)
        if ran.error is not None:
            await report(hook, ctx, ran.error)

    async def _step(self, hook: Hook, ctx: C) -> Deny | None:
        before = snapshot(self.point, ctx)
        ran = await run_hook(hook, ctx)
        denied: Deny | None = None
        if ran.error is None:
            try:
                denied = await self._apply(hook, ctx, ran.answer)
                hook.failures = 0
            except TypeError as error:
                ran.error = error
        if ran.error is not None:
            restore(self.point, ctx, before)
            await self._failed(hook, ctx, ran.error)
        note(hook, ctx, ran, ran.answer, changes(self.point, ctx, before))
        return denied

    async def _apply(self, hook: Hook, ctx: C, answer: Any) -> Deny | None:
        plain = self.point.plain
        match answer:
            case None:
                return None
            case dict() if not answer:
                return None
            case Stop():
                _stop(hook, ctx, answer)
            case Deny() if plain in ("summary", "update"):
                return answer
            case str() if plain == "context":
                await _inject(hook, ctx, answer)
            case _ if plain is not None and _replaces(plain, ctx, answer):
                pass
            case _:
                raise TypeError(f"answered {answer!r}, which {self.point.name} cannot use")
        return None

    async def _failed(self, hook: Hook, ctx: C, error: BaseException) -> None:
        hook.failures += 1
        await report(hook, ctx, error)
        if hook.failures >= FAILURES_TOLERATED and not hook.off:
            hook.off = True
            times = f"{FAILURES_TOLERATED} times in a row"
            text = f"the hook {hook} failed {times} and is switched off: {describe(error)}"
            await ctx.session.client.update(ctx.session.id, Notice(text, "warning", "hooks"))


class Wrap(Slot[C, Callable[[C, Next], Awaitable[Any]]]):
    """Nested around an operation, the first registered outermost."""

    __slots__ = ()

    async def fire(self, ctx: C, operation: Next) -> Any:
        """Run the operation inside the hooks; an error of a hook's is the operation's."""
        if not self.entries:
            return await operation()
        return await self._layer(0, ctx, operation)

    async def _layer(self, index: int, ctx: C, operation: Next) -> Any:
        while index < len(self.entries) and not self.entries[index].concerns(ctx):
            index += 1
        if index == len(self.entries):
            return await operation()
        hook = self.entries[index]

        async def call_next() -> Any:
            clock, owner = ctx.clock, ctx.owner
            if clock is not None:
                clock.pause()
            try:
                ctx.clock, ctx.owner = None, ""
                return await self._layer(index + 1, ctx, operation)
            finally:
                ctx.clock, ctx.owner = clock, owner
                if clock is not None:
                    clock.resume()

        ran = await run_hook(hook, ctx, call_next)
        note(hook, ctx, ran)
        if ran.error is not None:
            raise ran.error
        return ran.answer.value if isinstance(ran.answer, Answer) else ran.answer


class Ongoing(
    Slot[RunContext, "Callable[[RunContext], StopAnswer | Awaitable[StopAnswer]]"]
):
    """Who answers `Continue` keeps a finished run going; a broken hook never does."""

    __slots__ = ()

    async def fire(self, ctx: RunContext) -> Continue | None:
        """All reasons of all hooks as one message; None where the run may end."""
        reasons: list[str] = []
        for hook in self.entries:
            if hook.concerns(ctx):
                reasons += await self._consult(hook, ctx)
        if not reasons or ctx.stopping:
            return None
        if ctx.count_in_row >= ctx.cap or ctx.count >= TOTAL_CAP:
            text = f"kept going {ctx.count} times by a stop hook; ended all the same: {reasons[0]}"
            await ctx.agent.notify(ctx.session, "stop_cap", text)
            return None
        ctx.count += 1
        ctx.count_in_row += 1
        return Continue("\n\n".join(reasons))

    async def _consult(self, hook: Hook, ctx: RunContext) -> list[str]:
        ran = await run_hook(hook, ctx)
        reasons: list[str] = []
        match ran.answer:
            case Continue(message) if message:
                reasons = [message]
            case str(message) if message:
                reasons = [message]
            case Stop():
                _stop(hook, ctx, ran.answer)
            case None | "" | Continue() | Allow():
                pass
            case dict() if not ran.answer:
                pass
            case _:
                ran.error = TypeError(f"answered {ran.answer!r}, which on_stop cannot use")
        note(hook, ctx, ran, ran.answer)
        if ran.error is not None:
            await report(hook, ctx, ran.error)
        return reasons


def _stop(hook: Hook, ctx: Context, verdict: Stop) -> None:
    ctx.owner, owner = hook.owner.name, ctx.owner
    ctx.stop(verdict.reason)
    ctx.owner = owner


async def _inject(hook: Hook, ctx: Context, text: str) -> None:
    ctx.owner, owner = hook.owner.name, ctx.owner
    await ctx.inject_context(text)
    ctx.owner = owner


def _replaces(plain: str, ctx: Any, answer: Any) -> bool:
    """Put a plain answer where it belongs; False where it has the wrong type."""
    match plain, answer:
        case "messages", list():
            ctx.messages = answer
        case "summary", str():
            cast(CompactContext, ctx).summary = answer
        case "update", _ if hasattr(answer, "__dataclass_fields__"):
            cast(UpdateContext, ctx).update = answer
        case "reply", Completion() | Reply() if type(answer) is type(ctx.reply):
            ctx.reply = answer
        case "reply", str():
            ctx.reply = replace(ctx.reply, text=answer)
        case "context", Answer(value) | (ToolResult() as value) if isinstance(ctx, ToolContext):
            ctx.result = ToolResult.of(value)
        case _:
            return False
    return True


def snapshot(point: Point, ctx: Context) -> dict[str, Any]:
    """The fields that a hook may change, as they are now."""
    return {name: _kept(getattr(ctx, name)) for name in point.changes}


def _kept(value: Any) -> Any:
    if isinstance(value, list):
        return [*value]
    return deepcopy(value) if isinstance(value, dict) else copy(value)


def restore(point: Point, ctx: Context, before: dict[str, Any]) -> None:
    """Undo what a hook changed."""
    for name in point.changes:
        setattr(ctx, name, before[name])


def changes(point: Point, ctx: Context, before: dict[str, Any]) -> tuple[str, ...]:
    """Names of the fields that are not as they were."""
    return tuple(name for name in point.changes if getattr(ctx, name) != before[name])
