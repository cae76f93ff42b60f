"""A session's end: what runs is ended, hooks are told, what it holds is let go."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from crow.core.hooks.contexts import SessionContext
from crow.core.hooks.work import is_own
from crow.core.prompt import following
from crow.core.session import ENDING, Session

if TYPE_CHECKING:
    from crow.core.session import Agent

logger = logging.getLogger("crow.agent")

SETTLING = 0.3
AFTERWARDS = 5.0


def who_waits(session: Session) -> set[asyncio.Task[Any]]:
    """The tasks that wait for the end: the one that wants it, and in the session's own work all."""
    waiting = {*following(session)} if is_own(session) else set[asyncio.Task[Any]]()
    return {*waiting, cast("asyncio.Task[Any]", asyncio.current_task())}


async def end(agent: Agent, session: Session, reason: str, waiting: set[asyncio.Task[Any]]) -> None:
    """End what goes on in a session of an agent's, for some who wait for that."""
    for task in ENDING.get(session) or ():
        task.cancel()
    if not waiting & {*following(session)}:
        await _followed_up(session)
    ending = session.tasks - waiting
    for task in ending:
        task.cancel()
    if ending:
        await asyncio.wait(ending, timeout=SETTLING)
    await agent.hooks.on_session_end.fire(SessionContext(agent, session, reason=reason))
    await asyncio.sleep(0)
    for task in session.tasks - waiting:  # hooks that were left behind
        task.cancel()
    await _let_go(session)


async def forget(agent: Agent, session_id: str) -> None:
    """Let extensions throw away what they keep of a session; a broken one stops no other."""
    for name, thing in list(agent.extensions.items()):
        forgets: Any = getattr(thing, "forget_session", None)
        if forgets is not None:
            try:
                await forgets(session_id)
            except Exception as error:  # noqa: BLE001 - of an extension, which is anybody's
                told = "the extension %s has not forgotten session %s: %r"
                logger.warning(told, name, session_id, error)


async def _followed_up(session: Session) -> None:
    """Wait until the last prompt is done with, for some seconds at most."""
    with suppress(TimeoutError):
        async with asyncio.timeout(AFTERWARDS):
            await session.lock.acquire()
            session.lock.release()
            await asyncio.gather(*following(session), return_exceptions=True)


async def _let_go(session: Session) -> None:
    """Release what a session holds, such as the commands in the background."""
    for held in list(session.cache.values()):
        if hasattr(held, "aclose"):
            await held.aclose()
    if session.hung is not None:
        await session.hung.close()
