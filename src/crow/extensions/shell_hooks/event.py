"""The events of a settings file: what their matchers look at and what an answer can do.

They are Claude Code's 33, and two of Crow's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Literal

from crow.dataclasses import frozen

Blocking = Literal["block", "tell", "user", "ignore"]
ALL = ("command", "http", "mcp_tool", "prompt", "agent")
SHORT = ("command", "http", "mcp_tool")


@frozen
class Event:
    """One event.

    ``matches`` is the input field that matchers look at, empty where matchers mean nothing.
    ``blocking`` is what exit status 2 does: it blocks, tells the model, tells the user, or nothing.
    ``plain`` events take plain output for context. ``quiet`` ones discard ``systemMessage`` and
    ``continue``. ``mode`` says that the input has ``permission_mode``. ``types`` of handlers run
    there. ``absent`` says why Crow never fires it.
    """

    name: str
    matches: str = ""
    blocking: Blocking = "ignore"
    plain: bool = False
    quiet: bool = False
    mode: bool = False
    types: tuple[str, ...] = SHORT
    seconds: float = 600.0
    absent: str = ""

    @property
    def has_tool(self) -> bool:
        """True for events about a tool call: the only ones where ``if`` has a meaning."""
        return self.matches == "tool_name"

    @property
    def has_effort(self) -> bool:
        """True where the input says how hard the model is made to think."""
        return self.has_tool or self.name in ("PostToolBatch", "Stop", "SubagentStop")

    def about(self, fields: Mapping[str, Any]) -> str:
        """What matchers look at in an input; of a file only its name, without the folder."""
        text = str(fields.get(self.matches, "")) if self.matches else ""
        return PurePath(text).name if self.name == "FileChanged" else text

    @property
    def names_only(self) -> bool:
        """True where a matcher with a blank, a comma or a hyphen is a regular expression."""
        return self.name in ("FileChanged", "StopFailure")


NO_TEAMS = "there are no teams of agents"

_TABLE = (
    Event("SessionStart", "source", "user", plain=True, types=("command", "mcp_tool")),
    Event("Setup", "trigger", quiet=True, types=("command",)),
    Event("InstructionsLoaded", "load_reason", quiet=True),
    Event("UserPromptSubmit", "", "block", plain=True, mode=True, types=ALL, seconds=30),
    Event("UserPromptExpansion", "command_name", "block", plain=True, mode=True, types=ALL),
    Event("MessageDisplay", "", quiet=True, seconds=10),
    Event("PreToolUse", "tool_name", "block", mode=True, types=ALL),
    Event("PermissionRequest", "tool_name", mode=True, types=ALL[:-1]),
    Event("PermissionDenied", "tool_name", mode=True, types=ALL),
    Event("PostToolUse", "tool_name", "tell", mode=True, types=ALL),
    Event("PostToolUseFailure", "tool_name", "tell", mode=True, types=ALL),
    Event("PostToolBatch", "", "block", mode=True, types=ALL),
    Event("Notification", "notification_type"),
    Event("SubagentStart", "agent_type", "user"),
    Event("SubagentStop", "agent_type", "block", mode=True, types=ALL),
    Event("TaskCreated", "", "block", types=ALL),
    Event("TaskCompleted", "", "block", mode=True, types=ALL),
    Event("Stop", "", "block", mode=True, types=ALL),
    Event("StopFailure", "error"),
    Event("TeammateIdle", "", "block", mode=True, types=ALL, absent=NO_TEAMS),
    Event("ConfigChange", "source", "block", quiet=True),
    Event("CwdChanged", "", "user"),
    Event("DirectoryAdded", "source", quiet=True),
    Event("FileChanged", "file_path", "user"),
    Event("WorktreeCreate", "", "block", plain=True, quiet=True),
    Event("WorktreeRemove", quiet=True),
    Event("PreCompact", "trigger", "block", quiet=True),
    Event("PostCompact", "trigger", "user", quiet=True),
    Event("PreModelSwitch", "to_model", "block", seconds=30),
    Event("PostModelSwitch", "to_model", "user", plain=True, seconds=30),
    Event("Elicitation", "mcp_server_name", "block", quiet=True, mode=True),
    Event("ElicitationResult", "mcp_server_name", "block", quiet=True, mode=True),
    Event("SessionEnd", "reason", "user", quiet=True, seconds=1.5),
)
EVENTS: Mapping[str, Event] = {event.name: event for event in _TABLE}
_OWN = (
    Event("BeforeModel", "model", "block", mode=True, types=ALL[:-1]),
    Event("AfterModel", "model", "block", mode=True, types=ALL[:-1]),
)
OWN_EVENTS: Mapping[str, Event] = {event.name: event for event in _OWN}
"""Crow's own, which count in Crow's own files; whoever else reads these passes over them."""
KNOWN: Mapping[str, Event] = {**EVENTS, **OWN_EVENTS}
POLICY = frozenset(
    {"PreToolUse", "UserPromptSubmit", "UserPromptExpansion", "TaskCreated", "PreModelSwitch"}
    | {"BeforeModel"}
)
"""Where a hook of Crow's own settings files that fails blocks, unless ``onFailure`` says else."""
MUST_DECIDE = POLICY | {"ConfigChange", "Elicitation", "ElicitationResult"}
"""Gates: where an answer that cannot be read refuses, unless ``onFailure`` says else."""
OPEN = frozenset({"Stop", "SubagentStop", "TaskCompleted", "TeammateIdle"})
"""Where ``onFailure`` means nothing: a broken hook must not keep a finished run going."""
