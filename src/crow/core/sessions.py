"""The sessions of an agent: how one is loaded, changed, ended and forgotten."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from crow.core.cache import ENDING, Closable
from crow.core.errors import ModelError, SessionError
from crow.core.events import ConfigChanged
from crow.core.hooks.call_stack import is_own
from crow.core.hooks.contexts import ConfigContext, SessionContext
from crow.core.ports.client import Client, NullClient
from crow.core.ports.llm import model_named
from crow.core.prompt import following
from crow.core.session import Session
from crow.core.store import Store
from crow.core.support.validation import implementing, implements

if TYPE_CHECKING:
    from crow.core.host import Agent

logger = logging.getLogger("crow.agent")

SETTLING = 0.3
AFTERWARDS = 5.0


@runtime_checkable
class SessionKeeper(Protocol):
    """An extension that keeps something of sessions in a place of its own."""

    async def forget_session(self, session_id: str) -> None:
        """Throw away what it keeps of a session that is deleted."""
        ...


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


async def stored(
    agent: Agent, session_id: str, client: Client | None, fields: Mapping[str, Any]
) -> Session:
    """A session from the store of an agent, with other ``fields``; it is not open yet."""
    store = store_of(agent)
    session = await store.load(session_id)
    session.store = store
    session.client = client or NullClient()
    for name, value in fields.items():
        setattr(session, name, value)
    return session


def store_of(agent: Agent) -> Store:
    """The store of an agent. Raises `SessionError` where it has none."""
    if agent.store is None:
        raise SessionError(f"sessions are not stored: {agent.defaults.hint('store')}")
    return agent.store


async def delete(agent: Agent, session_id: str) -> bool:
    """Remove a session from the store, and what extensions keep of it; False for none."""
    store = store_of(agent)
    if session_id in agent.sessions:
        raise SessionError(f"session {session_id} is open here: close it first")
    removed = await store.delete(session_id)
    if removed:
        await forget(agent, session_id)
    return removed


async def forget(agent: Agent, session_id: str) -> None:
    """Let extensions throw away what they keep of a session; a broken one stops no other."""
    for name, thing in list(agent.extensions.items()):
        if implements(thing, SessionKeeper):
            try:
                await thing.forget_session(session_id)
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
    for held in implementing(list(session.cache.values()), Closable):
        await held.aclose()
    if session.hung is not None:
        await session.hung.close()


async def configure(agent: Agent, session: Session, changes: Mapping[str, Any]) -> str | None:
    """Make a change; the reason where somebody objects. A client that fails has permitted nothing.

    One that cannot be told afterwards changes nothing any more.
    """
    ctx = ConfigContext(agent, session, {**changes})
    try:
        ruling = await ctx.ui.agreed(await agent.hooks.on_config_change.fire(ctx))
    except Exception as error:  # noqa: BLE001 - of a client, which is anybody's
        return f"the user cannot be told: {type(error).__name__}: {error}"
    if (wrong := _no_such_model(agent, ctx.changes.get("model"))) is not None:
        return wrong
    if ruling.refused:
        return ruling.reason or "denied by a hook"
    if not ctx.changes.get("mode", "default"):
        return "there is no mode without a name"
    for name, value in ctx.changes.items():
        if name in ("model", "mode"):
            setattr(session, name, value)
        else:
            session.options[name] = value
    try:
        await ctx.emit(ConfigChanged({**ctx.changes}))
    except Exception as error:  # noqa: BLE001 - of a client, which is anybody's
        logging.getLogger("crow.hooks").warning(
            "the client cannot be told that its settings changed: %r", error
        )
    return None


def _no_such_model(agent: Agent, model: str | None) -> str | None:
    try:
        model_named(agent.llm, model)
    except ModelError as error:
        return str(error)
    return None
