"""Tells the agent the weather when somebody speaks of it, and gives it a tool to ask for more."""

from __future__ import annotations

from crow import Agent, Context, tool


@tool(kind="fetch")
def weather(place: str, days: int = 1) -> str:
    """Say how the weather will be.

    Args:
        place: A town.
        days: How many days ahead.
    """
    return f"{place}, in {days} days: 19 degrees, light rain"


class WeatherSkill:
    def __init__(self, place: str = "here") -> None:
        self.place = place

    def init_agent(self, agent: Agent) -> None:
        agent.add_tool(weather)

    async def before_run(self, ctx: Context) -> str | None:
        said = await ctx.get_latest_user_message()
        return f"Now: {weather(self.place, 0)}" if "weather" in said.lower() else None
