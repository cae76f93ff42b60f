"""The bindings of settings hooks' events to points, and what is called there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crow.extensions.shell_hooks.display import show_left, show_writing
from crow.extensions.shell_hooks.event import KNOWN
from crow.extensions.shell_hooks.project_events import (
    cwd_changed,
    directory_added,
    file_changed,
    project_set_up,
    worktree_unwanted,
    worktree_wanted,
)
from crow.extensions.shell_hooks.prompt_events import broken, expanded, finished, prompted, replied
from crow.extensions.shell_hooks.request_events import before_request
from crow.extensions.shell_hooks.session_events import (
    compacted,
    compacting,
    elicitation_answered,
    elicitation_asked,
    instructions_loaded,
    model_switched,
    model_switching,
    notified,
    session_ended,
    session_started,
    settings_edited,
    subagent_started,
    task_completed,
    task_created,
)
from crow.extensions.shell_hooks.tool_events import (
    after_call,
    batch_done,
    before_call,
    permission_asked,
)

Moment = Callable[..., Any]

GATES: tuple[tuple[str, tuple[str, ...], Moment], ...] = (
    ("UserPromptSubmit", tuple(KNOWN), prompted),
    ("UserPromptExpansion", ("UserPromptExpansion",), expanded),
    ("PreToolUse", ("PreToolUse",), before_call),
    ("PermissionRequest", ("PermissionRequest",), permission_asked),
    ("PreModelSwitch", ("PreModelSwitch",), model_switching),
    ("ConfigChange", ("ConfigChange",), settings_edited),
    ("TaskCreated", ("TaskCreated",), task_created),
    ("TaskCompleted", ("TaskCompleted",), task_completed),
    ("WorktreeCreate", ("WorktreeCreate",), worktree_wanted),
    ("Elicitation", ("Elicitation",), elicitation_asked),
    ("ElicitationResult", ("ElicitationResult",), elicitation_answered),
    ("SubagentStart", ("SubagentStart", "SessionStart"), subagent_started),
    ("SubagentStop", ("SubagentStop",), finished),
)
"""Where something hangs, for which events, and what is called. Sub-agents inherit these."""
OWN: tuple[tuple[str, tuple[str, ...], Moment], ...] = (
    ("SessionStart", ("SessionStart", "PostModelSwitch", "FileChanged"), session_started),
    ("SessionEnd", ("SessionEnd",), session_ended),
    ("before_llm_request", ("BeforeModel", "AfterModel"), before_request),
    ("after_llm_response", tuple(KNOWN), replied),
    ("after_tool", tuple(KNOWN), after_call),
    ("PostToolBatch", ("PostToolBatch",), batch_done),
    ("Stop", ("Stop", "StopFailure"), finished),
    ("on_error", ("StopFailure",), broken),
    ("PreCompact", ("PreCompact",), compacting),
    ("PostCompact", ("PostCompact", "SessionStart", "SessionEnd"), compacted),
    ("Setup", ("Setup",), project_set_up),
    ("FileChanged", ("FileChanged",), file_changed),
    ("CwdChanged", ("CwdChanged", "FileChanged"), cwd_changed),
    ("WorktreeRemove", ("WorktreeRemove",), worktree_unwanted),
    ("DirectoryAdded", ("DirectoryAdded",), directory_added),
    ("PostModelSwitch", ("PostModelSwitch",), model_switched),
    ("Notification", ("Notification",), notified),
    ("MessageDisplay", ("MessageDisplay",), show_writing),
    ("after_loop", ("MessageDisplay",), show_left),
    ("InstructionsLoaded", ("InstructionsLoaded",), instructions_loaded),
)
"""The same for what hangs on an agent and on each of its sub-agents by itself."""
