"""A notification when nobody has typed anything for a while: the answer waits to be read."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

from crow import Arg, RunContext, Session
from crow.dataclasses import entity
from crow.keys import Key

if TYPE_CHECKING:
    from crow import Agent

NAME = "idle"
WAITING: Key[asyncio.Task[object]] = Key(NAME)
KIND = "idle_prompt"
TEXT = "Crow is waiting for your input"


@entity
class IdleHook:
    """Fires a notification (``idle_prompt``) when a session was idle for ``after`` seconds.

    Once for every answer; not in sub-agents, and not where nobody listens to notifications.
    """

    name = NAME
    order = 180
    is_its_options = True

    after: Annotated[float, Arg(above=0)] = 60.0
    """Seconds of waiting."""

    def before_run(self, ctx: RunContext) -> None:
        """Somebody has typed something."""
        waiting = WAITING.pop(ctx)
        if waiting is not None:
            waiting.cancel()

    def after_run(self, ctx: RunContext) -> None:
        """Begin to wait, unless the next prompt is there already."""
        session, listeners = ctx.session, ctx.agent.hooks.on_notification.chain(ctx.session)
        if listeners and session.parent is None and not session.busy and not session.closed:
            WAITING.set(ctx, session.spawn(self._wait(ctx.agent, session)))

    async def _wait(self, agent: Agent, session: Session) -> None:
        await asyncio.sleep(self.after)
        await agent.notify(session, KIND, TEXT)
