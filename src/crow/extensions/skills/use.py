"""The event of a skill being used, for whoever wants to know what its front matter says."""

from __future__ import annotations

from typing import Any, cast

from crow.core.agent import Agent
from crow.core.context import Context
from crow.core.errors import CrowError
from crow.core.hook_points import Watch
from crow.core.points import Point
from crow.extensions.skills.skill import Skill, front_matter
from crow.project import is_trusted

POINT = Point("on_skill", "watch", ("skill", "path", "front_matter", "trusted"))


class SkillContext(Context):
    """The text of a skill was loaded.

    ``skill`` is its name, ``path`` that of its ``SKILL.md``. ``trusted`` is False for a skill of a
    project that the user has not trusted as it is now: nothing of it may run.
    """

    __slots__ = ("front_matter", "path", "skill", "trusted")

    def __init__(self, ctx: Context, skill: Skill, front_matter: dict[str, Any]) -> None:
        super().__init__(ctx.agent, ctx.session, ctx.run)
        self.skill = skill.name
        self.path = str(skill.path)
        self.front_matter = front_matter
        self.trusted = skill.project is None or is_trusted(skill.project)


async def tell(ctx: Context, skill: Skill) -> None:
    """Fire ``on_skill``, also for a sub-agent that uses a skill of its caller's."""
    agent: Agent | None = ctx.agent
    while agent is not None and POINT.name not in agent.hooks.names:
        agent = agent.parent
    point = cast("Watch[SkillContext]", agent.hooks[POINT.name]) if agent is not None else None
    if point is None or not point.chain(ctx.session):
        return
    try:
        front = front_matter(skill)
    except (CrowError, OSError):
        return
    await point.fire(SkillContext(ctx, skill, front))
