"""Crow: a coding agent that is extended, not forked.

The front door: what most programs and extensions need. More of it has rooms of its own:
`crow.hooks`, `crow.events`, `crow.messages`, `crow.keys`, `crow.errors`, `crow.storage`,
`crow.ports`, `crow.dataclasses`, `crow.tools`, `crow.project`, `crow.process`, `crow.cli`,
`crow.extensions`, `crow.fleet` and `crow.testing`; ``docs/reference.md`` lists all that is public.
Names are imported when they are first used, so that ``import crow`` costs nothing.
"""

from __future__ import annotations

from crow._version import __version__ as __version__

TYPE_CHECKING = False  # what type checkers take for true; `typing` costs more than all of this
if TYPE_CHECKING:
    from crow.acp import run_agent as run_agent
    from crow.annotations import Arg as Arg
    from crow.app import build as build
    from crow.core.agent import Agent as Agent
    from crow.core.catalog import Command as Command
    from crow.core.catalog import Mode as Mode
    from crow.core.catalog import PromptSection as PromptSection
    from crow.core.errors import CrowError as CrowError
    from crow.core.hooks.agent_hook import AgentHook as AgentHook
    from crow.core.hooks.context import Context as Context
    from crow.core.hooks.contexts import CommandContext as CommandContext
    from crow.core.hooks.contexts import CompactContext as CompactContext
    from crow.core.hooks.contexts import ConfigContext as ConfigContext
    from crow.core.hooks.contexts import CwdContext as CwdContext
    from crow.core.hooks.contexts import ErrorContext as ErrorContext
    from crow.core.hooks.contexts import MessageContext as MessageContext
    from crow.core.hooks.contexts import NotificationContext as NotificationContext
    from crow.core.hooks.contexts import RequestContext as RequestContext
    from crow.core.hooks.contexts import SessionContext as SessionContext
    from crow.core.hooks.contexts import ToolContext as ToolContext
    from crow.core.hooks.contexts import TurnContext as TurnContext
    from crow.core.hooks.contexts import UpdateContext as UpdateContext
    from crow.core.hooks.contexts import WorktreeContext as WorktreeContext
    from crow.core.hooks.discovery import hook as hook
    from crow.core.hooks.registry import HookRegistry as HookRegistry
    from crow.core.hooks.run_context import Reply as Reply
    from crow.core.hooks.run_context import RunContext as RunContext
    from crow.core.messages import Message as Message
    from crow.core.messages import Usage as Usage
    from crow.core.ports.client import Client as Client
    from crow.core.ports.client import NullClient as NullClient
    from crow.core.ports.llm import LLM as LLM
    from crow.core.ports.llm import Completion as Completion
    from crow.core.ports.llm import Request as Request
    from crow.core.ports.tool import Tool as Tool
    from crow.core.ports.tool import ToolEnvironment as ToolEnvironment
    from crow.core.session import Session as Session
    from crow.core.tools import Call as Call
    from crow.core.tools import ToolResult as ToolResult
    from crow.core.ui import UI as UI
    from crow.core.verdicts import Allow as Allow
    from crow.core.verdicts import Answer as Answer
    from crow.core.verdicts import Ask as Ask
    from crow.core.verdicts import Continue as Continue
    from crow.core.verdicts import Deny as Deny
    from crow.core.verdicts import Stop as Stop
    from crow.core.verdicts import Verdict as Verdict
    from crow.tools import tool as tool

_ROOMS = {
    "crow.acp": "run_agent",
    "crow.annotations": "Arg",
    "crow.app": "build",
    "crow.core.agent": "Agent",
    "crow.core.catalog": "Command Mode PromptSection",
    "crow.core.errors": "CrowError",
    "crow.core.hooks.agent_hook": "AgentHook",
    "crow.core.hooks.context": "Context",
    "crow.core.hooks.contexts": (
        "CommandContext CompactContext ConfigContext CwdContext ErrorContext MessageContext "
        "NotificationContext RequestContext SessionContext ToolContext TurnContext UpdateContext "
        "WorktreeContext"
    ),
    "crow.core.hooks.discovery": "hook",
    "crow.core.hooks.registry": "HookRegistry",
    "crow.core.hooks.run_context": "Reply RunContext",
    "crow.core.messages": "Message Usage",
    "crow.core.ports.client": "Client NullClient",
    "crow.core.ports.llm": "Completion LLM Request",
    "crow.core.ports.tool": "Tool ToolEnvironment",
    "crow.core.session": "Session",
    "crow.core.tools": "Call ToolResult",
    "crow.core.ui": "UI",
    "crow.core.verdicts": "Allow Answer Ask Continue Deny Stop Verdict",
    "crow.tools": "tool",
}
_BESIDE = (
    "crow.hooks crow.errors crow.storage crow.ports crow.dataclasses crow.keys crow.project"
).split()
_HOMES = {name: room for room, names in _ROOMS.items() for name in names.split()}

__all__ = list(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]


if not TYPE_CHECKING:  # a checker takes any name for there where it sees one

    def __getattr__(name: str) -> object:
        """Import a name of the front door; `Agent` comes with the built-in tools and models."""
        from importlib import import_module

        home = _HOMES.get(name)
        if home is None:
            raise import_module("crow._lazy").missing("crow", name, _HOMES, _BESIDE)
        if name in ("Agent", "HookRegistry"):
            import_module("crow.defaults").install()
        room = import_module(home)
        for each in _ROOMS[home].split():
            globals()[each] = getattr(room, each)
        return globals()[name]


def __dir__() -> list[str]:
    return __all__
