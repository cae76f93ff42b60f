"""A second model answers where the first one's endpoint fails.

    crow run --extension examples/model_fallback.py "Hello"

An answer that has begun is thrown away, and the user sees the other one. A request that is refused
for what it says would be refused by the next one as well: it is not sent again.
"""

from dataclasses import dataclass, field

from crow import Completion, TurnContext
from crow.errors import ModelError
from crow.hooks import NextRequest


@dataclass
class ModelFallback:
    models: list[str] = field(default_factory=lambda: ["ollama/qwen3"])

    async def around_llm_request(self, ctx: TurnContext, call_next: NextRequest) -> Completion:
        try:
            return await call_next()
        except ModelError as error:
            failure = error
        for model in (
            self.models if failure.kind not in {"context_length", "invalid_request"} else []
        ):
            await ctx.ui.notify(f"{failure}: asking {model} now", severity="warning")
            try:
                return await call_next(model=model)
            except ModelError as error:
                failure = error
        raise failure
