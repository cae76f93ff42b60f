"""Crow: a coding agent that is extended, not forked.

The front door. Names are imported when they are first used, so that ``import crow`` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crow.acp import run_agent
    from crow.core.agent import Agent
    from crow.core.agent_hook import AgentHook
    from crow.core.contexts import Context, ToolContext
    from crow.core.hooks import FIRST, LAST, hook
    from crow.core.session import Reply
    from crow.core.verdicts import Allow, Answer, Ask, Continue, Deny, Stop, Verdict
    from crow.tools import tool

from crow._version import __version__ as __version__

__all__ = [
    "FIRST",
    "LAST",
    "Agent",
    "AgentHook",
    "Allow",
    "Answer",
    "Ask",
    "Context",
    "Continue",
    "Deny",
    "Reply",
    "Stop",
    "ToolContext",
    "Verdict",
    "hook",
    "run_agent",
    "tool",
]

_HOMES = {
    "run_agent": "crow.acp",
    "Agent": "crow.core.agent",
    "Context": "crow.core.context",
    "Reply": "crow.core.session",
    "ToolContext": "crow.core.contexts",
    "FIRST": "crow.core.hooks",
    "LAST": "crow.core.hooks",
    "AgentHook": "crow.core.agent_hook",
    "hook": "crow.core.hooks",
    "Allow": "crow.core.verdicts",
    "Answer": "crow.core.verdicts",
    "Ask": "crow.core.verdicts",
    "Continue": "crow.core.verdicts",
    "Deny": "crow.core.verdicts",
    "Stop": "crow.core.verdicts",
    "Verdict": "crow.core.verdicts",
    "tool": "crow.tools",
}


def __getattr__(name: str) -> Any:
    """Import a name of the front door; `Agent` comes with the built-in tools and models."""
    from importlib import import_module

    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'crow' has no attribute {name!r}")
    if name == "Agent":
        import_module("crow.defaults").install()
    thing = getattr(import_module(home), name)
    globals()[name] = thing
    return thing


def __dir__() -> list[str]:
    return __all__
