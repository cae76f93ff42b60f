"""Setting a project up: an event before a session begins, where a command line asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from crow import Context, Session, SessionContext, hook
from crow.dataclasses import entity
from crow.hooks import FIRST, Point

if TYPE_CHECKING:
    from crow import Agent

Trigger = Literal["init", "maintenance"]
POINT = Point("on_setup", "watch", ("trigger",), aliases=("Setup",))


class SetupContext(Context):
    """A project is to be set up (``trigger`` is ``init``) or looked after (``maintenance``)."""

    __slots__ = ("trigger",)

    def __init__(self, agent: Agent, session: Session, trigger: Trigger) -> None:
        super().__init__(agent, session)
        self.trigger = trigger


@entity
class SetupHook:
    """Fires ``on_setup`` (``Setup``) before anything else happens in a session."""

    name = "setup"

    trigger: Trigger = "init"
    """Whether the project is to be set up or looked after."""

    def init_agent(self, agent: Agent) -> None:
        """Add the event."""
        if POINT.name not in agent.hooks.names:
            agent.hooks.define(POINT)

    @hook("on_session_start", order=FIRST)
    async def begin(self, ctx: SessionContext) -> None:
        """Fire, once for the session that a person talks to."""
        if ctx.session.parent is None:
            setup = SetupContext(ctx.agent, ctx.session, self.trigger)
            await ctx.agent.hooks[POINT.name].fire(setup)
