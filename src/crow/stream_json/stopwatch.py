"""A stopwatch on the model: how long it is asked, and how often."""

from __future__ import annotations

from time import perf_counter

from crow.core.hooks.contexts import TurnContext
from crow.core.messages import Usage, add_usage


class Stopwatch:
    """Hangs on a session; ``turns`` requests took ``seconds`` so far.

    ``usage`` is what each model has used that a request named, since somebody last emptied it.
    """

    def __init__(self) -> None:
        self.turns = 0
        self.seconds = 0.0
        self.usage: dict[str, Usage] = {}
        self._began = 0.0

    def on_llm_request(self) -> None:
        """A request leaves."""
        self.turns += 1
        self._began = perf_counter()

    def after_llm_response(self, ctx: TurnContext) -> None:
        """Its answer is there."""
        self.seconds += perf_counter() - self._began
        if ctx.model is not None:
            self.usage[ctx.model] = add_usage(self.usage.get(ctx.model, {}), ctx.usage)
