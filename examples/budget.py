"""A run stops when the session has used up its tokens; sub-agents' count as well.

    crow run --extension examples/budget.py "Read everything"

The loop adds what a sub-agent used to the session that called it, so one number is enough. The user
may go on: a question, which is a no where nobody can be asked.
"""

from dataclasses import dataclass

from crow import TurnContext


@dataclass
class Budget:
    tokens: int = 500_000
    """How many may be used before the user is asked; and so many again after a yes."""

    async def after_turn(self, ctx: TurnContext) -> None:
        usage = ctx.session.usage
        used = usage.get("input_tokens", 0) + usage.get("output_tokens", 0)
        allowed = ctx.state.setdefault("allowed", self.tokens)
        if used < allowed:
            return
        if await ctx.ui.confirm(f"{used} tokens are used. Go on with {self.tokens} more?"):
            ctx.state["allowed"] = used + self.tokens
        else:
            ctx.stop(f"the budget of {allowed} tokens is used up")
