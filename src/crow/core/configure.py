"""A change of a session's model, mode or options: hooks judge it, the client is told."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from crow.core.errors import ModelError
from crow.core.events import ConfigChanged
from crow.core.hooks.contexts import ConfigContext
from crow.core.optional import model_named
from crow.core.session import Session

if TYPE_CHECKING:
    from crow.core.session import Agent

logger = logging.getLogger("crow.hooks")


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
        logger.warning("the client cannot be told that its settings changed: %r", error)
    return None


def _no_such_model(agent: Agent, model: str | None) -> str | None:
    try:
        model_named(agent.llm, model)
    except ModelError as error:
        return str(error)
    return None
