"""The five kinds of points: what the answers of several hooks add up to, and what a failure does.

A point's kind is the whole of what its hooks' answers can do.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable  # noqa: F401 - in strings as well
from copy import copy
from typing import Any, Generic, TypeAlias, TypeVar, cast

from crow.core.events import Notice
from crow.core.hooks.call import finish_hook, run_hook
from crow.core.hooks.context import Context
from crow.core.hooks.hook import Hook
from crow.core.hooks.hook_point import HookPoint
from crow.core.hooks.multicall import calls
from crow.core.hooks.outcome import Ran, described, excused, note, report
from crow.core.hooks.output import HookResult, Said, is_result
from crow.core.hooks.points import Point, deny
from crow.core.hooks.proxy import lend, seen
from crow.core.hooks.run_context import RunContext
from crow.core.messages import text_of
from crow.core.support.validation import check, short
from crow.core.verdicts import (
    NO_RULING,
    Allow,
    Answer,
    Ask,
    Continue,
    Deny,
    Ruling,
    Stop,
    Undecided,
    Verdict,
    answerable,
)

logger = logging.getLogger("crow.hooks")

A = TypeVar("A")
C = TypeVar("C", bound=Context)
T = TypeVar("T")

Nothing: TypeAlias = "dict[str, Any] | HookResult | None"
"""What a hook can answer at every point: a dict is read as a `HookResult`, an empty one as None."""
GateAnswer: TypeAlias = "Verdict | str | Nothing"
StopAnswer: TypeAlias = "Continue | Stop | str | Nothing"

FAILURES_TOLERATED = 3
TOTAL_CAP = 25
FORGOTTEN = "answered nothing (is a return missing?)"


class Watch(HookPoint[C, Callable[[C], object]]):
    """All run; answers count for nothing; a failure is logged."""

    __slots__ = ()

    async def fire(self, ctx: C, told: set[object] | None = None) -> None:
        """Call the hooks. Those that are in ``told`` are left out, and the others put in."""
        for hook, view, ran in calls(self, ctx, told=told):
            if hook.background:
                ctx.session.spawn(beside(hook, copy(ctx), self.point))
            else:
                await listen(hook, ctx, view, ran, self.point)


class Gate(HookPoint[C, "Callable[[C], GateAnswer | Awaitable[GateAnswer]]"]):
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
        for call in calls(self, ctx):
            ruling = await self._consult(ctx, ruling, *call)
        return await self.judge(ctx, check, ruling)

    async def judge(
        self, ctx: C, check: Callable[[C], bool] | None = None, ruling: Ruling = NO_RULING
    ) -> Ruling:
        """Call the judges alone; also where what they have judged was changed since.

        What was refused already stays so, and needs no check of what nobody will run.
        """
        if ruling.spoken and excused(ctx):
            return ruling
        if check is not None and not check(ctx):
            return NO_RULING
        for call in calls(self, ctx, judge=True):
            ruling = await self._consult(ctx, ruling, *call)
        return ruling

    async def _consult(
        self, ctx: C, ruling: Ruling, hook: Hook, view: C, ran: Ran | None
    ) -> Ruling:
        ran, meant = await heard(hook, view, ran, self._meant)
        verdict: Verdict | str | None
        if isinstance(meant, Said):
            await meant.tell(view)
            ruling = ruling if meant.answer is None else ruling.joined(meant.answer)
            verdict = meant.verdict
        else:
            verdict = meant
        if isinstance(verdict, Allow) and not hook.owner.trusted:
            verdict = None
        if ran.error is not None:
            verdict = Undecided(f"the hook {hook} could not decide: {described(hook, ran.error)}")
            await report(hook, ctx, ran.error)
        elif isinstance(verdict, str):
            await view.inject_context(verdict)
            verdict = None
        noted = Deny(verdict.reason) if isinstance(verdict, Undecided) else verdict
        note(hook, ctx, ran, noted or ran.answer)
        return ruling if verdict is None else ruling.joined(verdict)

    def _meant(self, ctx: C, answer: Any) -> Verdict | Said | str | None:
        """What an answer means: a verdict, text that is context, or nothing."""
        match answer:
            case None:
                return None
            case HookResult():
                return understood(self.point, ctx, answer)
            case _ if answer == {}:
                return None
            case Allow() | Ask() | Deny() | Stop() | Answer():
                check("the answer", answer, type(answer))
                if isinstance(answer, Answer):
                    check("the answer's value", answer.value, answerable)
                return answer
            case _:
                meant = (self.point.plain or deny)(ctx, answer)
                if meant is not NotImplemented:
                    return meant
                if isinstance(answer, dict):
                    return understood(self.point, ctx, cast("dict[str, Any]", answer))
                known = "None, a text, Allow(), Ask(), Deny(), Stop() or Answer(value)"
                raise TypeError(f"answered {short(answer)}, which is no verdict: {known}")


class Fold(
    HookPoint[C, "Callable[[C], A | Stop | Nothing | Awaitable[A | Stop | Nothing]]"], Generic[C, A]
):
    """Each hook gets the previous one's value; a failing one is undone and skipped."""

    __slots__ = ()

    async def fire(self, ctx: C, told: set[object] | None = None) -> Deny | None:
        """Call the hooks; a `Deny` (only where the point takes one) ends the fold.

        Those that are in ``told`` are left out, and the others put in.
        """
        for hook, view, ran in calls(self, ctx, told=told):
            if hook.background:
                ctx.session.spawn(beside(hook, copy(ctx), self.point))
            elif (denied := await self._step(hook, ctx, view, ran)) is not None:
                return denied
        return None

    async def _step(self, hook: Hook, ctx: C, view: C, ran: Ran | None) -> Deny | None:
        ran, meant = await heard(hook, view, ran, self._meant)
        if ran.error is not None:
            await self._failed(hook, ctx, ran.error)
        else:
            hook.failures = 0
        if isinstance(ran.answer, Stop) and ran.error is None:
            view.stop(ran.answer.reason)
        elif isinstance(meant, str):
            await view.inject_context(meant)
        elif isinstance(meant, Said):
            await meant.tell(view)
            meant = meant.verdict
        note(hook, ctx, ran, ran.answer)
        return meant if isinstance(meant, Deny) else None

    def _meant(self, view: C, answer: Any) -> Deny | Said | str | None:
        """What an answer means here, put where it belongs. Raises ``TypeError`` for no use."""
        if answer is None or answer == {}:
            return None
        if isinstance(answer, HookResult):
            return understood(self.point, view, answer)
        if isinstance(answer, Stop | Deny):
            check("the answer", answer, type(answer))
        if isinstance(answer, Stop):
            return None
        plain = self.point.plain
        meant = NotImplemented if plain is None else plain(view, answer)
        if meant is not NotImplemented:
            return meant
        if isinstance(answer, dict):
            return understood(self.point, view, cast("dict[str, Any]", answer))
        raise TypeError(f"answered {short(answer)}, which {self.point.name} cannot use")

    async def _failed(self, hook: Hook, ctx: C, error: BaseException) -> None:
        if excused(ctx):
            return
        hook.failures += 1
        await report(hook, ctx, error)
        if hook.failures >= FAILURES_TOLERATED and not hook.off:
            hook.switch_off()
            times = f"{FAILURES_TOLERATED} times in a row"
            text = f"the hook {hook} failed {times} and is switched off: {described(hook, error)}"
            await ctx.session.client.update(ctx.session.id, Notice(text, "warning", "hooks"))


class StopPoint(
    HookPoint[RunContext, "Callable[[RunContext], StopAnswer | Awaitable[StopAnswer]]"]
):
    """Who answers `Continue` keeps a finished run going; a broken hook never does."""

    __slots__ = ()

    async def fire(self, ctx: RunContext) -> Continue | None:
        """All reasons of all hooks as one message; None where the run may end.

        The message is empty where hooks of other points have put prompts into it: they count, too.
        """
        reasons: list[str] = []
        for call in calls(self, ctx):
            reasons += await self._consult(ctx, *call)
        said = [text_of(each.get("content")) for each in ctx.session.pending.prompts(by_hooks=True)]
        if ctx.stopping or not (reasons or said):
            return None
        if ctx.count_in_row >= ctx.cap or ctx.count >= TOTAL_CAP:
            why = [*reasons, *said][0]
            text = f"kept going {ctx.count} times by hooks; ended all the same: {why}"
            await ctx.ui.notify(text, severity="warning")
            await ctx.agent.notify(ctx.session, "stop_cap", text)
            return None
        ctx.keep_going()
        return Continue("\n\n".join(reasons))

    async def _consult(
        self, ctx: RunContext, hook: Hook, view: RunContext, ran: Ran | None
    ) -> list[str]:
        ran, said = await heard(hook, view, ran, self._reasons)
        note(hook, ctx, ran, ran.answer)
        if ran.error is not None:
            await report(hook, ctx, ran.error)
        if isinstance(said, Said):
            await said.tell(view)
            return said.reasons
        return said or []

    def _reasons(self, view: RunContext, answer: object) -> list[str] | Said:
        """Why to go on. Raises ``TypeError`` for an answer that says nothing about that."""
        match answer:
            case HookResult() | dict() if answer:
                return understood(self.point, view, cast(Any, answer))
            case Continue(message):
                check("Continue.message", message, str)
                return [message] if message else []
            case str(message):
                return [message] if message else []
            case Stop():
                check("the answer", answer, Stop)
                view.stop(answer.reason)
            case None | Allow():
                pass
            case _ if answer == {}:
                pass
            case _:
                raise TypeError(f"answered {short(answer)}, which {self.point.name} cannot use")
        return []


async def beside(hook: Hook, ctx: Context, point: Point) -> None:
    """Run a hook in the background."""
    await listen(hook, ctx, lend(ctx, hook.role), None, point)


async def listen(hook: Hook, ctx: C, view: C, ran: Ran | None, point: Point) -> None:
    """Take an answer that counts for nothing, unless it is a `Stop` or a `HookResult`."""
    ran, said = await heard(hook, view, ran, lambda view, answer: looked(point, view, answer))
    note(hook, ctx, ran, ran.answer)
    if ran.error is not None:
        await report(hook, ctx, ran.error)
    elif said is not None:
        await said.tell(view)
    elif point.kind == "watch" and isinstance(ran.answer, Stop):
        view.stop(str(ran.answer.reason))


def understood(point: Point, view: Any, answer: HookResult | dict[str, Any]) -> Said:
    """What an answer in Claude Code's words comes to; these are read when they are first used."""
    from crow.core.hooks.output import effects

    return effects.understood(point, view, answer)


def looked(point: Point, view: Context, answer: object) -> Said | None:
    """What somebody says who only looks on; None for what is no `HookResult`."""
    if not is_result(answer):
        return None
    said = understood(point, view, answer)
    if point.kind != "watch":  # it ran beside what it could have stopped
        said.stop = None
    return said


async def heard(
    hook: Hook, view: C, ran: Ran | None, meaning: Callable[[C, Any], T]
) -> tuple[Ran, T | None]:
    """Hear a hook out; what it has changed reaches the run if its answer has a meaning there."""
    if ran is None:
        ran = await run_hook(hook, view)
    elif ran.unfinished:
        await finish_hook(hook, view, ran)
    meant = None
    if ran.error is None:
        try:
            meant = meaning(view, ran.answer)
            if changed := seen(view).settle(ends=True):
                ran.changed += changed
        except Exception as error:  # noqa: BLE001 - what a hook leaves behind may raise anything
            ran.error, meant = error, None
    seen(view).close()
    return ran, meant
