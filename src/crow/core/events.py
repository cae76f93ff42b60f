"""The events of the loop, for whoever watches: one frozen dataclass a fact, no behaviour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Literal, TypeAlias

from crow.core.messages import Content, Usage
from crow.core.support.frozen import frozen
from crow.core.tools import Call, Location, Outcome, ToolKind, ToolResult

StopReason = Literal[
    "end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled", "hook_stopped", "error"
]
"""Why a run ended."""
Severity = Literal["info", "warning", "error"]
"""How much a notice matters."""


@frozen
class UserMessage:
    """A prompt that the client did not send itself (queued by a hook, or replayed).

    ``written`` is what the one who did send it wrote, where ``content`` says less.
    """

    content: Content
    message_id: str
    written: Sequence[dict[str, Any]] = ()


@frozen
class TextDelta:
    """A piece of the model's answer."""

    text: str
    message_id: str = ""


@frozen
class ThoughtDelta:
    """A piece of the model's reasoning."""

    text: str
    message_id: str = ""


@frozen
class CallDelta:
    """The model is writing a tool call: ``text`` is a piece of its arguments' JSON."""

    call_id: str
    name: str
    text: str


@frozen
class Retrying:
    """A request failed and is sent again after ``delay`` seconds. ``kind`` is a `ModelError`'s.

    ``status`` is what the server has answered, None for nothing; there are ``limit`` attempts at
    most, 0 where nobody counts them.
    """

    attempt: int
    delay: float
    reason: str
    kind: str = ""
    status: int | None = None
    limit: int = 0


@frozen
class ToolPending:
    """A call is complete and about to be judged. ``title`` is what a person reads."""

    call: Call
    title: str
    kind: ToolKind
    locations: tuple[Location, ...] = ()


@frozen
class ToolStarted:
    """A call was permitted and runs now, with these final arguments."""

    call: Call
    args: dict[str, Any]
    title: str


@frozen
class ToolProgress:
    """Output of a call that is still running; ``terminal`` where a client's terminal shows it."""

    call_id: str
    text: str
    terminal: str | None = None


@frozen
class ToolEnded:
    """A call has its result. ``duration`` in seconds, of the execution alone.

    ``hooks``, of a call that is told again, are what hooks did to it, as `ReplayStore` kept that.
    """

    call: Call
    outcome: Outcome
    result: ToolResult
    duration: float
    hooks: Sequence[dict[str, Any]] = ()


@frozen
class UsageReported:
    """Tokens of the last request, of the session so far, and the model's window."""

    last: Usage
    total: Usage
    context_tokens: int
    context_window: int | None


@frozen
class Notice:
    """Something a person should know; never part of the conversation."""

    text: str
    severity: Severity = "info"
    source: str = ""


@frozen
class PlanEntry:
    """One step of a plan."""

    content: str
    status: Literal["pending", "in_progress", "completed"] = "pending"
    priority: Literal["high", "medium", "low"] = "medium"


@frozen
class PlanChanged:
    """The whole plan, as it is now."""

    entries: tuple[PlanEntry, ...]


@frozen
class ConfigChanged:
    """Model, mode or an option has changed."""

    changes: dict[str, Any] = field(default_factory=dict[str, Any])


@frozen
class CommandsChanged:
    """The slash commands on offer have changed."""


@frozen
class TitleChanged:
    """The session has a (new) title."""

    title: str


@frozen
class Compacted:
    """The history was replaced by a shorter one."""

    summary: str
    trigger: str


@frozen
class RunEnded:
    """The last event of a run."""

    stop_reason: StopReason
    detail: str = ""


Event: TypeAlias = (
    UserMessage
    | TextDelta
    | ThoughtDelta
    | CallDelta
    | Retrying
    | ToolPending
    | ToolStarted
    | ToolProgress
    | ToolEnded
    | UsageReported
    | Notice
    | PlanChanged
    | ConfigChanged
    | CommandsChanged
    | TitleChanged
    | Compacted
    | RunEnded
)
"""Anything that a client is told."""
