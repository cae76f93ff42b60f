"""Other models that answer where the first one is overloaded, unreachable or not there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from crow import Completion, RunContext, TurnContext
from crow.dataclasses import entity
from crow.errors import ModelError
from crow.hooks import NextRequest
from crow.keys import Key

if TYPE_CHECKING:
    from crow.project import ProjectSettings

ABSENT = frozenset({"overloaded", "rate_limit", "server", "network", "timeout", "model_not_found"})
"""Kinds of errors that say nothing of the request: another model may answer it."""
PASSED: Key[int] = Key("fallback")
"""How many models have failed in a run."""


@entity
class FallbackHook:
    """Asks the next of ``models`` where one is overloaded, unavailable or not found.

    A request that is refused for what it says, or for who asks, is not asked again. The model that
    has answered goes on until the run ends; the next one begins with the session's own again. What
    was shown of an answer that broke off is not shown twice.
    """

    name = "fallback"
    order = 190
    inherited = True

    models: list[str] = field(default_factory=list[str])
    """The models to ask, one after the other; without it those of `fallbackModel`."""

    @classmethod
    def options_from(cls, settings: ProjectSettings, own: Mapping[str, Any]) -> dict[str, Any]:
        """The options, with the settings' models where it has none of its own."""
        return {"models": list(settings.fallback_models), **own}

    def before_run(self, ctx: RunContext) -> None:
        """Begin with the session's own model."""
        PASSED.set(ctx, 0)

    async def around_llm_request(self, ctx: TurnContext, call_next: NextRequest) -> Completion:
        """Ask, and ask the next one where nobody has answered. Raises the last `ModelError`."""
        chain = [None, *(each for each in self.models if each != ctx.model)]
        passed = min(PASSED.get(ctx) or 0, len(chain) - 1)
        while True:
            model = chain[passed]
            try:
                return await (call_next() if model is None else call_next(model=model))
            except ModelError as error:
                if error.kind not in ABSENT or passed + 1 == len(chain):
                    raise
                passed += 1
                PASSED.set(ctx, passed)
                text = f"{error}; {chain[passed]} answers until the next prompt"
            await ctx.ui.notify(text, severity="warning")
