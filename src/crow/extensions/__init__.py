"""Extensions that come with Crow: each a file of its own, hung on the loop, removable.

Names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crow.extensions.background import BackgroundHook
    from crow.extensions.commands import CommandsHook
    from crow.extensions.compaction import CompactionHook
    from crow.extensions.cost import CostHook
    from crow.extensions.file_watcher import FileWatcherHook
    from crow.extensions.hook_log import HookLog
    from crow.extensions.idle import IdleHook
    from crow.extensions.instructions import InstructionsHook
    from crow.extensions.limits import LimitsHook
    from crow.extensions.mcp import McpHook
    from crow.extensions.permissions import PermissionsHook
    from crow.extensions.persistence import PersistenceHook
    from crow.extensions.plan import PlanHook
    from crow.extensions.setup import SetupHook
    from crow.extensions.shell_hooks import ShellHooks
    from crow.extensions.skills import SkillsHook
    from crow.extensions.stuck import StuckHook
    from crow.extensions.subagents import SubagentsHook
    from crow.extensions.system_prompt import SystemPromptHook
    from crow.extensions.truncation import TruncationHook
    from crow.extensions.web import WebHook

__all__ = [
    "BackgroundHook",
    "CommandsHook",
    "CompactionHook",
    "CostHook",
    "FileWatcherHook",
    "HookLog",
    "IdleHook",
    "InstructionsHook",
    "LimitsHook",
    "McpHook",
    "PermissionsHook",
    "PersistenceHook",
    "PlanHook",
    "SetupHook",
    "ShellHooks",
    "SkillsHook",
    "StuckHook",
    "SubagentsHook",
    "SystemPromptHook",
    "TruncationHook",
    "WebHook",
]

_HOMES = {
    "BackgroundHook": "background",
    "CommandsHook": "commands",
    "CompactionHook": "compaction",
    "CostHook": "cost",
    "FileWatcherHook": "file_watcher",
    "HookLog": "hook_log",
    "IdleHook": "idle",
    "InstructionsHook": "instructions",
    "LimitsHook": "limits",
    "McpHook": "mcp",
    "PermissionsHook": "permissions",
    "PersistenceHook": "persistence",
    "PlanHook": "plan",
    "SetupHook": "setup",
    "ShellHooks": "shell_hooks",
    "SkillsHook": "skills",
    "StuckHook": "stuck",
    "SubagentsHook": "subagents",
    "SystemPromptHook": "system_prompt",
    "TruncationHook": "truncation",
    "WebHook": "web",
}


def __getattr__(name: str) -> Any:
    """Import an extension when its name is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    thing = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = thing
    return thing


def __dir__() -> list[str]:
    return __all__
