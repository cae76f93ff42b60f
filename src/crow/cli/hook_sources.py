"""The sources of hooks: settings files, whose handlers run them, and Python."""

from __future__ import annotations

import inspect
from typing import Any

from crow.core.agent import Agent
from crow.core.hooks.hook import Hook
from crow.core.support.validation import implements
from crow.ports.extensions import HandlerProvider

SETTINGS_HOOKS = "shell_hooks"


def handlers_of(agent: Agent) -> list[Any]:
    """The handlers of settings files, in their order."""
    hooks = agent.extensions.get(SETTINGS_HOOKS)
    return list(hooks.entries) if implements(hooks, HandlerProvider) else []


def twin_of(agent: Agent, handler: Any) -> Any:
    """The handler before this one that does the same at the same event; None where none does."""
    for other in handlers_of(agent):
        if other is handler:
            break
        same = other.event is handler.event and other.key == handler.key
        if same and other.matcher == handler.matcher and not other.inactive:
            return other
    return None


def handler_described(handler: Any) -> dict[str, Any]:
    """A handler of a settings file as a JSON object."""
    return {
        "event": handler.event.name,
        "matcher": handler.matcher,
        "type": handler.kind,
        "handler": str(handler),
        "file": handler.source,
        "if": handler.condition or None,
        "timeout": handler.timeout,
        "on_failure": "block" if handler.blocks else "continue",
        "inactive": handler.inactive or None,
    }


def where(hook: Hook) -> str:
    """File and line of a hook."""
    written: Any = hook.function
    written = getattr(written, "__func__", written)
    try:
        file = inspect.getsourcefile(written)
        _, line = inspect.getsourcelines(written)
    except (OSError, TypeError):
        return ""
    return f"{file}:{line}"
