"""The event ``on_front_matter``: a file's front matter comes into force."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crow.core.agent import Agent
from crow.core.hooks.context import Context
from crow.core.hooks.points import Point

FRONT_MATTER = Point(
    "on_front_matter",
    "watch",
    ("path", "front_matter", "trusted", "skill"),
    aliases={"on_skill": lambda ctx: bool(ctx.skill)},
)


class FrontMatterContext(Context):
    """The front matter of a file, which holds in a session from now on.

    ``skill`` is the name of the skill that was loaded, empty where the file defines an agent that
    begins. ``trusted`` is False for a file of a project that the user has not trusted as it is now:
    nothing of it may run.
    """

    __slots__ = ("front_matter", "path", "skill", "trusted")

    def __init__(
        self, ctx: Context, path: str, front_matter: Mapping[str, Any], skill: str, trusted: bool
    ) -> None:
        super().__init__(ctx.agent, ctx.session, ctx.run)
        self.path = path
        self.front_matter = front_matter
        self.skill = skill
        self.trusted = trusted


def define_front_matter(agent: Agent) -> None:
    """Add the event ``on_front_matter``, which is ``on_skill`` as well where a skill is loaded."""
    if not agent.hooks.knows(FRONT_MATTER.name):
        agent.hooks.define(FRONT_MATTER)


async def use_front_matter(
    ctx: Context,
    path: str,
    front_matter: Mapping[str, Any],
    *,
    skill: str = "",
    trusted: bool = True,
) -> None:
    """Fire ``on_front_matter`` in a session; hooks of those that it works for hear of it, too."""
    agent = ctx.agent
    while agent.parent is not None:
        agent = agent.parent
    define_front_matter(agent)
    use = FrontMatterContext(ctx, path, front_matter, skill, trusted)
    await agent.hooks[FRONT_MATTER.name].fire(use)
