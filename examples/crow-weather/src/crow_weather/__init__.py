"""Tells the agent the weather when somebody speaks of it, and gives it a tool to ask for more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from crow import Agent, Arg, Context, tool


@tool(kind="fetch")
def weather(place: str, days: int = 1) -> str:
    """Say how the weather will be.

    Args:
        place: A town.
        days: How many days ahead.
    """
    return f"{place}, in {days} days: 19 degrees, light rain"


@dataclass
class WeatherSkill:
    """Tells the weather when somebody speaks of it."""

    place: str = "here"
    """A town."""
    days: Annotated[int, Arg(minimum=0, maximum=7)] = 0
    """How many days ahead."""

    is_its_options = True

    def init_agent(self, agent: Agent) -> None:
        agent.add_tool(weather)

    async def before_run(self, ctx: Context) -> str | None:
        said = await ctx.get_latest_user_message()
        return f"Now: {weather(self.place, self.days)}" if "weather" in said.lower() else None
