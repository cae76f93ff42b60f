"""Other models that answer while the first one's endpoint cannot."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from crow import Completion, ModelError, NextRequest, TurnContext

AWAY = frozenset({"overloaded", "server", "network", "timeout", "rate_limit", "model_not_found"})
"""Kinds of `ModelError` that another model can do something about: what is wrong with the request,
the key or the account would be wrong there too, or has to be known."""
PAUSE = 60.0
"""Seconds in which a model that could not answer is not asked first."""


@dataclass(eq=False)
class FallbackHook:
    """Asks the next of some models where one is overloaded, not reached, or not there.

    What an answer had begun with is thrown away. The first model is asked again once a minute has
    passed since it failed. With ``--fallback-model A,B`` it is in use.
    """

    inherited = True

    models: list[str] = field(default_factory=list[str])
    """The names of the models, in the order in which they are asked."""

    def __post_init__(self) -> None:
        self._failed: dict[str, float] = {}

    async def around_llm_request(self, ctx: TurnContext, call_next: NextRequest) -> Completion:
        """Ask one after the other."""
        first = ctx.session.model or ctx.agent.llm.model
        names = [first, *(each for each in self.models if each != first)]
        ready = [name for name in names if not self._is_away(name)] or names
        for number, name in enumerate(ready, 1):
            try:
                done = await (call_next() if name == first else call_next(model=name))
            except ModelError as error:
                if error.kind not in AWAY:
                    raise
                self._failed[name] = time.monotonic()
                if number == len(ready):
                    raise
                await ctx.ui.notify(f"{error}: {ready[number]} is asked", severity="warning")
            else:
                self._failed.pop(name, None)
                return done
        raise AssertionError

    def _is_away(self, name: str) -> bool:
        return time.monotonic() - self._failed.get(name, -PAUSE) < PAUSE
