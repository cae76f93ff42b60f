"""Extensions that come with Crow: each a file of its own, hung on the loop, removable.

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crow._lazy import lazy

if TYPE_CHECKING:
    from crow.extensions.authoring import AuthoringHook as AuthoringHook
    from crow.extensions.background import BackgroundHook as BackgroundHook
    from crow.extensions.commands import CommandsHook as CommandsHook
    from crow.extensions.compaction import CompactionHook as CompactionHook
    from crow.extensions.cost import CostHook as CostHook
    from crow.extensions.deferred_tools import DeferredToolsHook as DeferredToolsHook
    from crow.extensions.fallback import FallbackHook as FallbackHook
    from crow.extensions.file_watcher import FileWatcherHook as FileWatcherHook
    from crow.extensions.hook_log import HookLog as HookLog
    from crow.extensions.idle import IdleHook as IdleHook
    from crow.extensions.instructions import InstructionsHook as InstructionsHook
    from crow.extensions.limits import LimitsHook as LimitsHook
    from crow.extensions.mcp import McpHook as McpHook
    from crow.extensions.output_styles import OutputStylesHook as OutputStylesHook
    from crow.extensions.permissions import PermissionsHook as PermissionsHook
    from crow.extensions.persistence import PersistenceHook as PersistenceHook
    from crow.extensions.plan import PlanHook as PlanHook
    from crow.extensions.presence import PresenceHook as PresenceHook
    from crow.extensions.prompt_cache import PromptCacheHook as PromptCacheHook
    from crow.extensions.questions import QuestionsHook as QuestionsHook
    from crow.extensions.rewind import RewindHook as RewindHook
    from crow.extensions.sandbox import SandboxHook as SandboxHook
    from crow.extensions.setup import SetupHook as SetupHook
    from crow.extensions.shell_hooks import ShellHooks as ShellHooks
    from crow.extensions.skills import SkillsHook as SkillsHook
    from crow.extensions.structured_output import StructuredOutputHook as StructuredOutputHook
    from crow.extensions.stuck import StuckHook as StuckHook
    from crow.extensions.subagents import SubagentsHook as SubagentsHook
    from crow.extensions.system_prompt import SystemPromptHook as SystemPromptHook
    from crow.extensions.telemetry import TelemetryHook as TelemetryHook
    from crow.extensions.titles import TitlesHook as TitlesHook
    from crow.extensions.truncation import TruncationHook as TruncationHook
    from crow.extensions.web import WebHook as WebHook
    from crow.extensions.worktrees import WorktreesHook as WorktreesHook

_ROOMS = {
    "crow.extensions.authoring": "AuthoringHook",
    "crow.extensions.background": "BackgroundHook",
    "crow.extensions.commands": "CommandsHook",
    "crow.extensions.compaction": "CompactionHook",
    "crow.extensions.cost": "CostHook",
    "crow.extensions.deferred_tools": "DeferredToolsHook",
    "crow.extensions.fallback": "FallbackHook",
    "crow.extensions.file_watcher": "FileWatcherHook",
    "crow.extensions.hook_log": "HookLog",
    "crow.extensions.idle": "IdleHook",
    "crow.extensions.instructions": "InstructionsHook",
    "crow.extensions.limits": "LimitsHook",
    "crow.extensions.mcp": "McpHook",
    "crow.extensions.output_styles": "OutputStylesHook",
    "crow.extensions.permissions": "PermissionsHook",
    "crow.extensions.persistence": "PersistenceHook",
    "crow.extensions.plan": "PlanHook",
    "crow.extensions.presence": "PresenceHook",
    "crow.extensions.prompt_cache": "PromptCacheHook",
    "crow.extensions.questions": "QuestionsHook",
    "crow.extensions.rewind": "RewindHook",
    "crow.extensions.sandbox": "SandboxHook",
    "crow.extensions.setup": "SetupHook",
    "crow.extensions.shell_hooks": "ShellHooks",
    "crow.extensions.skills": "SkillsHook",
    "crow.extensions.structured_output": "StructuredOutputHook",
    "crow.extensions.stuck": "StuckHook",
    "crow.extensions.subagents": "SubagentsHook",
    "crow.extensions.system_prompt": "SystemPromptHook",
    "crow.extensions.telemetry": "TelemetryHook",
    "crow.extensions.titles": "TitlesHook",
    "crow.extensions.truncation": "TruncationHook",
    "crow.extensions.web": "WebHook",
    "crow.extensions.worktrees": "WorktreesHook",
}

if not TYPE_CHECKING:  # a checker takes any name for there where it sees one
    __all__, __getattr__, __dir__ = lazy(__name__, _ROOMS)
