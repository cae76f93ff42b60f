"""The five kinds of points: what the answers of several hooks add up to, and what a failure does.

A point's kind is the whole of what its hooks' answers can do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from copy import copy
from dataclasses import replace
from typing import Any, Generic, TypeAlias, TypeVar, cast, overload

from crow.core.calls import ToolResult
from crow.core.context import CompactContext, Context, Reply, RunContext, ToolContext, UpdateContext
from crow.core.errors import CrowError
from crow.core.events import Notice
from crow.core.points import Point, sub
from crow.core.ports import Completion
from crow.core.running import (
    Hook,
    Next,
    changes,
    describe,
    note,
    report,
    restore,
    run_hook,
    snapshot,
)
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

C = TypeVar("C", bound=Context)
F = TypeVar("F", bound=Callable[..., Any])
A = TypeVar("A")
FAILURES_TOLERATED = 3
TOTAL_CAP = 25

Nothing: TypeAlias = "dict[str, None] | None"
GateAnswer: TypeAlias = "Verdict | str | Nothing"
StopAnswer: TypeAlias = "Continue | Stop | str | Nothing"


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
        /,
        *,
        tools: Iterable[str] | None = None,
        order: int = 0,
        timeout: float = 60.0,
        background: bool = False,
        judge: bool = False,
    ) -> Callable[[F], F]: ...
    def __call__(self, fn: F | None = None, /, **options: Any) -> F | Callable[[F], F]:
        """Register a hook at this point, with the options of `Hooks.register`."""

        def add(fn: F) -> F:
            self.register(self.point.name, fn, **options)
            return fn

        return add if fn is None else add(fn)

    def put(self, hooks: list[Hook]) -> None:
        """Replace the hooks; sorts them by their order, ties stay as they are."""
        hooks.sort(key=lambda hook: (hook.judge, hook.order))
        self.entries = tuple(reversed(hooks)) if self.point.reverse else tuple(hooks)

    @property
    def inherited(self) -> tuple[Hook, ...]:
        """What of the parent agent's hangs here, too: every gate, else what names sub-agents."""
        if self.parent is None:
            return ()
        gate = self.point.kind == "gate"
        own = [hook for hook in self.parent.entries if gate or hook.when is sub]
        return (*self.parent.inherited, *own)

    @property
    def running(self) -> tuple[Hook, ...]:
        """The hooks that a firing calls, the parent agent's first, none twice."""
        if self.parent is None:
            return self.entries
        inherited = self.inherited
        known = [hook.function for hook in inherited]
        return (*inherited, *(hook for hook in self.entries if hook.function not in known))

    def __bool__(self) -> bool:
        return bool(self.entries)


class Watch(Slot[C, Callable[[C], object]]):
    """All run; answers count for nothing; a failure is logged."""

    __slots__ = ()

    async def fire(self, ctx: C) -> None:
        """Call the hooks."""
        for hook in self.running:
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
        ruling = NO_RULING
        for hook in self.running:
            if not hook.judge and hook.concerns(ctx):
                ruling = await self._consult(hook, ctx, ruling)
        return await self.judge(ctx, check, ruling)

    async def judge(
        self, ctx: C, check: Callable[[C], bool] | None = None, ruling: Ruling = NO_RULING
    ) -> Ruling:
        """Call the judges alone; also where what they have judged was changed since."""
        if check is not None and not check(ctx):
            return NO_RULING
        for hook in self.running:
            if hook.judge and hook.concerns(ctx):
                ruling = await self._consult(hook, ctx, ruling)
        return ruling

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
            case _ if answer == {}:
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


class Fold(
    Slot[C, "Callable[[C], A | Stop | Nothing | Awaitable[A | Stop | Nothing]]"], Generic[C, A]
):
    """Each hook gets the previous one's value; a failing one is undone and skipped."""

    __slots__ = ()

    async def fire(self, ctx: C) -> Deny | None:
        """Call the hooks; a `Deny` (only where the point takes one) ends the fold."""
        for hook in self.running:
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
            case _ if answer == {}:
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
        layers = [hook for hook in self.running if hook.concerns(ctx)]
        return await self._layer(layers, ctx, operation) if layers else await operation()

    async def _layer(self, layers: list[Hook], ctx: C, operation: Next) -> Any:
        if not layers:
            return await operation()
        hook, *rest = layers
        inside: list[BaseException] = []

        async def call_next() -> Any:
            clock, owner = ctx.clock, ctx.owner
            if clock is not None:  # pragma: no branch - None only once the run is cancelled
                clock.pause()
            try:
                ctx.clock, ctx.owner = None, ""
                return await self._layer(rest, ctx, operation)
            except BaseException as error:
                inside.append(error)
                raise
            finally:
                ctx.clock, ctx.owner = clock, owner
                if clock is not None:  # pragma: no branch
                    clock.resume()

        ran = await run_hook(hook, ctx, call_next)
        note(hook, ctx, ran)
        if ran.error is not None:
            if ran.error not in inside and not isinstance(ran.error, CrowError):
                ran.error.add_note(f"in the hook {hook}")
            raise ran.error
        return ran.answer.value if isinstance(ran.answer, Answer) else ran.answer


class Ongoing(Slot[RunContext, "Callable[[RunContext], StopAnswer | Awaitable[StopAnswer]]"]):
    """Who answers `Continue` keeps a finished run going; a broken hook never does."""

    __slots__ = ()

    async def fire(self, ctx: RunContext) -> Continue | None:
        """All reasons of all hooks as one message; None where the run may end."""
        reasons: list[str] = []
        for hook in self.running:
            if hook.concerns(ctx):
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
        ran = await run_hook(hook, ctx)
        reasons: list[str] = []
        answer: object = ran.answer
        match answer:
            case Continue(message) if message:
                reasons = [message]
            case str(message) if message:
                reasons = [message]
            case Stop():
                _stop(hook, ctx, answer)
            case None | "" | Continue() | Allow():
                pass
            case _ if answer == {}:
                pass
            case _:
                ran.error = TypeError(f"answered {answer!r}, which on_stop cannot use")
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
