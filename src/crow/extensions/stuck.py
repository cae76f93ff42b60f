"""Stuck: notices when the model goes round in circles, tells it so once, then ends the run."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Awaitable, Sequence
from dataclasses import KW_ONLY, field
from hashlib import blake2b
from typing import Annotated

from crow import Arg, RunContext, ToolContext, TurnContext
from crow.dataclasses import entity, frozen, mutable
from crow.keys import Key

LONGEST_PERIOD = 5
NUDGE = (
    "You are going in circles: {what}. Doing the same once more will give the same. Look at what "
    "came back, and try something else; or say what is in the way and end here."
)


@frozen
class Step:
    """One tool call as it is compared: what was called, what came of it, and whether it failed."""

    name: str
    call: bytes
    result: bytes
    failed: bool


@mutable
class Path:
    """The last steps of a run."""

    steps: deque[Step] = field(default_factory=lambda: deque[Step](maxlen=64))
    nudged: bool = False


PATH: Key[Path] = Key("stuck")


@entity
class StuckHook:
    """Tells a model that repeats itself, and ends the run of one that goes on.

    The first time in a run the model is told; the next time the run ends with the stop reason
    ``max_turn_requests``, for it is not done, and the reply's ``detail`` says why.
    """

    name = "stuck"
    order = 60
    is_its_options = True

    _: KW_ONLY
    same: Annotated[int, Arg(minimum=1)] = 4
    """How often in a row a call returns the same."""
    errors: Annotated[int, Arg(minimum=1)] = 3
    """How often in a row an error comes."""
    rounds: Annotated[int, Arg(minimum=1)] = 3
    """How often a cycle of two to five calls comes round; a single call twice as often."""

    def before_run(self, ctx: RunContext) -> None:
        """Begin anew: a person has spoken."""
        PATH.pop(ctx)

    def after_turn(self, ctx: TurnContext) -> Awaitable[None] | None:
        """Look at the steps so far."""
        path = PATH.setdefault(ctx, Path())
        path.steps.extend(map(_step, ctx.results))
        what = self.circle(path.steps) if ctx.results else None
        if what is None:
            return None
        if path.nudged:
            ctx.stop(f"going in circles: {what}", stop_reason="max_turn_requests")
            return None
        path.nudged = True
        return ctx.inject_context(NUDGE.format(what=what))

    def circle(self, steps: Sequence[Step]) -> str | None:
        """What repeats at the end of the steps, in words; None where nothing does."""
        last = steps[-1]
        results = [(step.call, step.result) for step in steps]
        if last.failed and _repeats([(s.name, s.result) for s in steps], 1, self.errors):
            return f"{last.name} gave the same error {self.errors} times in a row"
        if _repeats(results, 1, self.same):
            return f"the same call of {last.name} returned the same {self.same} times in a row"
        calls = [step.call for step in steps]
        if _repeats(calls, 1, 2 * self.rounds):
            return f"the same call of {last.name} was made {2 * self.rounds} times in a row"
        for period in range(2, LONGEST_PERIOD + 1):
            if _repeats(calls, period, self.rounds):
                names = ", ".join(step.name for step in list(steps)[-period:])
                return f"the same {period} calls ({names}) came round {self.rounds} times"
        return None


def _repeats(items: Sequence[object], period: int, rounds: int) -> bool:
    """True where the items end with ``rounds`` rounds of the same ``period`` items."""
    end = [*items[-period * rounds :]]
    return len(end) == period * rounds and end == end[:period] * rounds


def _step(call: ToolContext) -> Step:
    arguments = encode(call.call.args)
    faulty = call.call.raw if call.call.fault else ""
    return Step(
        call.name,
        _digest(f"{call.name} {arguments} {faulty}"),
        _digest(call.output),
        call.outcome in ("error", "denied"),
    )


encode = json.JSONEncoder(sort_keys=True, ensure_ascii=False).encode


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
