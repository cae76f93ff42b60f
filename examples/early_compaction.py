"""The history is replaced by a list of what was asked once it is long: no model writes the summary.

    crow run --extension examples/early_compaction.py "Go on"

Between two turns every call has its answer, so that a history can be cut; in the middle of one a
call would lose its own. What is kept whole begins with a prompt.
"""

from dataclasses import dataclass

from crow import TurnContext
from crow.messages import is_prompt, text_of


@dataclass
class EarlyCompaction:
    tokens: int = 60_000

    async def after_turn(self, ctx: TurnContext) -> None:
        if (await ctx.get_token_count())["total_tokens"] < self.tokens:
            return
        messages = await ctx.get_messages()
        prompts = [number for number, message in enumerate(messages) if is_prompt(message)]
        last = prompts[-1]
        asked = [f"- {text_of(messages[number].get('content'))}" for number in prompts[:-1]]
        if asked:
            await ctx.compact(messages[last:], "The user asked before:\n" + "\n".join(asked))
