"""What a run did, in a line for the user when it stops.

    crow run --extension examples/summary.py "Read README.md"

A notice is no part of the conversation: the model does not read it, and nothing is asked again.
"""

from collections import Counter

from crow import RunContext, hook


@hook("Stop")
async def summary(ctx: RunContext) -> None:
    calls = Counter(
        each["function"]["name"]
        for message in ctx.messages
        for each in message.get("tool_calls", ())
    )
    told = ", ".join(f"{name} {count}" for name, count in calls.most_common())
    await ctx.ui.notify(f"calls in this session: {told or 'none'}")
