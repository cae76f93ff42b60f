"""Limits: how many requests, tokens, seconds and dollars a run may take, and how much nonsense."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from dataclasses import KW_ONLY
from time import monotonic
from typing import Annotated

from crow import Arg, Context, Continue, RunContext, ToolContext, TurnContext, hook
from crow.dataclasses import entity, mutable
from crow.events import StopReason
from crow.hooks import FIRST
from crow.keys import Key

NUDGE = (
    "Your last message was empty. If the task is done, say what you did; otherwise go on with it."
)


@mutable
class Spent:
    """The spending of one run so far."""

    turns: int = 0
    faults: int = 0
    nudged: bool = False
    began: float = 0.0


SPENT: Key[Spent] = Key("limits")


@entity
class LimitsHook:
    """Ends a run that takes too long, before the request that would be one too many.

    None is no limit. What a session has used is stored with it. Money is what ``usage`` says under
    ``cost``; that nobody knows the price is said once. The stop reason is ``max_tokens`` for
    tokens, ``max_turn_requests`` for all others: the run is not done. The reply's ``detail`` names
    the limit.
    """

    name = "limits"
    order = 50
    is_its_options = True

    turns: Annotated[int | None, Arg(minimum=0)] = 200
    """Requests in one run."""
    tokens: Annotated[int | None, Arg(minimum=0)] = None
    """Tokens in one run: input and output of all its requests."""
    _: KW_ONLY
    seconds: Annotated[float | None, Arg(minimum=0)] = None
    """Seconds of one run."""
    session_turns: Annotated[int | None, Arg(minimum=0)] = None
    """Requests in one session."""
    session_tokens: Annotated[int | None, Arg(minimum=0)] = None
    """Tokens in one session."""
    cost: Annotated[float | None, Arg(minimum=0)] = None
    """US dollars in one run."""
    session_cost: Annotated[float | None, Arg(minimum=0)] = None
    """US dollars in one session."""
    faults: Annotated[int | None, Arg(minimum=1)] = 3
    """Replies in a row in which no call could run, such as of a tool that does not exist."""
    nudge: bool = True
    """Ask about an empty answer, once a run."""

    def before_run(self, ctx: RunContext) -> None:
        """Begin to count."""
        SPENT.set(ctx, Spent(began=monotonic()))

    @hook("before_llm_request", order=FIRST)
    def count(self, ctx: TurnContext) -> None:
        """Count the request, or end the run in its place."""
        spent = self._spent(ctx)
        exceeded = next(self._exceeded(ctx, spent), None)
        if exceeded is not None:
            ctx.stop(exceeded[0], stop_reason=exceeded[1])
        else:
            spent.turns += 1
            ctx.state["turns"] = ctx.state.get("turns", 0) + 1

    def after_turn(self, ctx: TurnContext) -> Awaitable[None] | None:
        """End the run when reply after reply calls for what cannot run."""
        spent = self._spent(ctx)
        faulty = bool(ctx.results) and all(map(_could_not_run, ctx.results))
        spent.faults = spent.faults + 1 if faulty else 0
        if faulty and _reached(spent.faults, self.faults):
            last = " ".join(ctx.results[-1].output.split())[:200]
            text = f"{spent.faults} tool calls in a row could not run, the last one: {last}"
            ctx.stop(text, stop_reason="max_turn_requests")
        return self._need_price(ctx)

    def on_stop(self, ctx: RunContext) -> Continue | None:
        """Ask once about an empty answer."""
        spent = self._spent(ctx)
        finished = ctx.reply.text.strip() or ctx.stop_reason != "end_turn"
        if finished or spent.nudged or not self.nudge:
            return None
        spent.nudged = True
        return Continue(NUDGE)

    def _spent(self, ctx: Context) -> Spent:
        return SPENT.setdefault(ctx, Spent(began=monotonic()))

    def _exceeded(self, ctx: TurnContext, spent: Spent) -> Iterator[tuple[str, StopReason]]:
        session_turns = ctx.state.get("turns", 0)
        run_tokens = ctx.run.usage.get("total_tokens", 0)
        session_tokens = ctx.session.usage.get("total_tokens", 0)
        if _reached(spent.turns, self.turns):
            yield f"the limit of {self.turns} requests in one run is reached", "max_turn_requests"
        if _reached(session_turns, self.session_turns):
            text = f"the limit of {self.session_turns} requests in one session is reached"
            yield text, "max_turn_requests"
        if _reached(run_tokens, self.tokens):
            text = f"the limit of {self.tokens} tokens in one run is reached ({run_tokens} used)"
            yield text, "max_tokens"
        if _reached(session_tokens, self.session_tokens):
            text = f"the limit of {self.session_tokens} tokens in one session is reached"
            yield f"{text} ({session_tokens} used)", "max_tokens"
        if _reached(monotonic() - spent.began, self.seconds):
            yield f"the limit of {self.seconds:g} seconds is reached", "max_turn_requests"
        for limit, usage, where in (
            (self.cost, ctx.run.usage, "run"),
            (self.session_cost, ctx.session.usage, "session"),
        ):
            cost = usage.get("cost", 0.0)
            if limit is not None and cost >= limit:
                text = f"the limit of ${limit:.2f} in one {where} is reached (${cost:.2f} spent)"
                yield text, "max_turn_requests"

    def _need_price(self, ctx: TurnContext) -> Awaitable[None] | None:
        """Say once that a limit of money means nothing where nobody knows the price."""
        if self.cost is None and self.session_cost is None:
            return None
        if ctx.usage is None or "cost" in ctx.usage or ctx.state.get("no_price"):
            return None
        ctx.state["no_price"] = True
        model = ctx.model or ctx.agent.llm.model
        text = f"the price of {model} is not known, so the limit of money cannot be kept"
        return ctx.ui.notify(text, severity="warning")


def _reached(spent: float, limit: float | None) -> bool:
    return limit is not None and spent >= limit


def _could_not_run(call: ToolContext) -> bool:
    return call.outcome == "error" and call.duration == 0.0
