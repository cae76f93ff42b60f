"""An extension with a tool and a command that fail."""

from __future__ import annotations

from crow import Agent, Command, CommandContext, tool


@tool(name="Break")
def broken() -> str:
    """Fail."""
    raise OSError("it is broken")


async def fail(ctx: CommandContext) -> None:
    """Fail, too."""
    raise OSError("it is broken")


def init_agent(agent: Agent) -> None:
    """Add both."""
    agent.add_tool(broken)
    agent.add_command(Command("break", "Fail", fail))
