"""The table of the moments at which hooks are called: names, kinds, fields, aliases.

A moment has one canonical name and any number of aliases; another vocabulary costs rows here
and no code. Nothing in this file runs a hook.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any, Literal, TypeAlias

from crow.core.context import Context, RunContext
from crow.core.contexts import (
    CommandContext,
    CompactContext,
    ConfigContext,
    ErrorContext,
    MessageContext,
    NotificationContext,
    SessionContext,
    ToolContext,
    TurnContext,
    UpdateContext,
)
from crow.core.events import ConfigChanged, TextDelta
from crow.core.frozen import frozen
from crow.core.ports import Completion
from crow.core.session import Reply
from crow.core.tools import ToolResult
from crow.core.validation import check
from crow.core.verdicts import Answer, Deny, answerable

Kind = Literal["gate", "fold", "watch", "wrap", "continue"]
Filter: TypeAlias = Callable[[Any], bool]
Plain: TypeAlias = Callable[[Any, Any], "Deny | str | None"]
"""What a plain answer means: called with the hook's context and the answer, it changes a field, or
returns a `Deny`, or text that becomes context. ``NotImplemented`` says that it means nothing."""


def inject(ctx: Any, answer: object) -> Any:
    """Text becomes context."""
    return answer if isinstance(answer, str) else NotImplemented


def deny(ctx: Any, answer: object) -> Any:
    """Text denies, and is the reason."""
    return Deny(answer) if isinstance(answer, str) else NotImplemented


def messages(ctx: Any, answer: object) -> Any:
    """A list becomes the messages of the request."""
    if not isinstance(answer, list):
        return NotImplemented
    ctx.messages = answer
    return None


def summary(ctx: Any, answer: object) -> Any:
    """Text becomes the summary, a `Deny` leaves the history as it is."""
    if isinstance(answer, str):
        ctx.summary = answer
        return None
    return answer if isinstance(answer, Deny) else NotImplemented


def update(ctx: Any, answer: object) -> Any:
    """An event goes to the client instead, a `Deny` lets none go."""
    if isinstance(answer, Deny):
        return answer
    if not hasattr(answer, "__dataclass_fields__"):
        return NotImplemented
    ctx.update = answer
    return None


def reply(ctx: Any, answer: object) -> Any:
    """Text becomes the reply's, a whole reply takes its place."""
    if isinstance(answer, str):
        ctx.reply = replace(ctx.reply, text=answer)
    elif isinstance(answer, Completion | Reply) and type(answer) is type(ctx.reply):
        ctx.reply = answer
    else:
        return NotImplemented
    return None


def result(ctx: Any, answer: object) -> Any:
    """Text becomes context, an `Answer` or a result takes the result's place."""
    if isinstance(answer, str):
        return answer
    if not isinstance(answer, Answer | ToolResult):
        return NotImplemented
    value = answer.value if isinstance(answer, Answer) else answer
    check("the answer's value", value, answerable)
    ctx.result = ToolResult.of(value)
    return None


@frozen
class Alias:
    """Another name of a point; ``when`` says for which contexts it fires."""

    name: str
    when: Filter | None = None


@frozen
class Point:
    """A moment at which hooks are called.

    ``fields`` are the context's fields that a hook can name as parameters, ``changes`` the ones
    it may change. ``plain`` is what a plain answer does; where it is None, text denies at a gate,
    and is of no use elsewhere. ``aliases`` are further names, ``other_names`` those of parameters.
    ``context`` is what it is fired with.
    """

    name: str
    kind: Kind
    fields: tuple[str, ...]
    changes: tuple[str, ...] = ()
    plain: Plain | None = None
    reverse: bool = False
    aliases: tuple[str | Alias, ...] = ()
    other_names: Mapping[str, str] = field(default_factory=dict[str, str])
    context: type[Context] = Context

    @property
    def names(self) -> dict[str, Filter | None]:
        """Every name that it has, and for which contexts it fires under that."""
        aliases = (Alias(each) if isinstance(each, str) else each for each in self.aliases)
        return {self.name: None, **{alias.name: alias.when for alias in aliases}}

    def attribute(self, parameter: str) -> str | None:
        """The context's attribute that fills a parameter of this name; None where none does."""
        if parameter in self.fields or parameter in COMMON:
            return parameter
        return self.other_names.get(parameter)


COMMON = ("agent", "session", "session_id", "cwd", "state", "ui", "trace")
TOOL = ("call", "tool", "args")
TOOL_NAMES = {"block": "call", "tool_call": "call", "tool_name": "name", "tool_input": "args"}


def main(ctx: Any) -> bool:
    """True in the session that a person talks to."""
    return ctx.session.parent is None


def sub(ctx: Any) -> bool:
    """True in a sub-agent's session."""
    return ctx.session.parent is not None


def outcome(*outcomes: str) -> Filter:
    """A filter for tool calls that ended so."""
    return lambda ctx: ctx.outcome in outcomes


def is_text(ctx: Any) -> bool:
    """True for a piece of the model's answer."""
    return isinstance(ctx.update, TextDelta)


def model_changed(ctx: Any) -> bool:
    """True for the update that says that the model was switched."""
    return isinstance(ctx.update, ConfigChanged) and "model" in ctx.update.changes


POINTS = (
    Point(
        "on_session_start",
        "fold",
        ("source",),
        plain=inject,
        aliases=(Alias("SessionStart", main), Alias("SubagentStart", sub)),
        context=SessionContext,
    ),
    Point(
        "on_session_end",
        "watch",
        ("reason",),
        reverse=True,
        aliases=(Alias("SessionEnd", main),),
        context=SessionContext,
    ),
    Point(
        "before_run",
        "gate",
        ("prompt", "messages"),
        changes=("prompt",),
        plain=inject,
        aliases=("pre_request", "UserPromptSubmit"),
        other_names={"user_input": "prompt", "query": "prompt"},
        context=RunContext,
    ),
    Point(
        "before_command",
        "gate",
        ("command", "args"),
        changes=("args",),
        plain=inject,
        aliases=("UserPromptExpansion",),
        context=CommandContext,
    ),
    Point(
        "before_llm_request",
        "fold",
        ("messages", "tools", "model", "params"),
        changes=("messages", "tools", "model", "params"),
        plain=messages,
        aliases=("BeforeModel",),
        context=TurnContext,
    ),
    Point(
        "around_llm_request",
        "wrap",
        ("messages", "tools", "model", "params"),
        changes=("messages", "tools", "model", "params"),
        context=TurnContext,
    ),
    Point(
        "after_llm_response",
        "fold",
        ("reply", "usage", "messages"),
        changes=("reply",),
        plain=reply,
        aliases=("mid_react", "AfterModel"),
        context=TurnContext,
    ),
    Point(
        "before_tool",
        "gate",
        TOOL,
        changes=("args",),
        aliases=("PreToolUse",),
        other_names=TOOL_NAMES,
        context=ToolContext,
    ),
    Point(
        "on_permission",
        "gate",
        (*TOOL, "options", "reason"),
        changes=("args",),
        aliases=("PermissionRequest",),
        other_names=TOOL_NAMES,
        context=ToolContext,
    ),
    Point("around_tool", "wrap", TOOL, other_names=TOOL_NAMES, context=ToolContext),
    Point(
        "after_tool",
        "fold",
        (*TOOL, "result", "output", "outcome", "error", "duration"),
        changes=("result",),
        plain=result,
        reverse=True,
        aliases=(
            Alias("PostToolUse", outcome("ok", "answered")),
            Alias("PostToolUseFailure", outcome("error")),
            Alias("PermissionDenied", outcome("denied")),
        ),
        other_names={**TOOL_NAMES, "tool_response": "output"},
        context=ToolContext,
    ),
    Point("on_message", "watch", ("message",), context=MessageContext),
    Point(
        "after_turn",
        "watch",
        ("usage", "results", "reply", "messages"),
        reverse=True,
        aliases=("PostToolBatch",),
        context=TurnContext,
    ),
    Point(
        "on_stop",
        "continue",
        ("reply", "count", "cap", "messages"),
        aliases=(Alias("Stop", main), Alias("SubagentStop", sub)),
        context=RunContext,
    ),
    Point("around_run", "wrap", ("prompt", "messages"), context=RunContext),
    Point(
        "after_loop",
        "fold",
        ("reply", "stop_reason", "messages", "usage"),
        changes=("reply",),
        plain=reply,
        reverse=True,
        aliases=("post_react_loop",),
        context=RunContext,
    ),
    Point(
        "after_run",
        "watch",
        ("reply", "stop_reason", "prompt", "messages", "usage"),
        reverse=True,
        aliases=("post_request",),
        context=RunContext,
    ),
    Point(
        "before_compact",
        "fold",
        ("messages", "summary", "trigger"),
        changes=("messages", "summary"),
        plain=summary,
        aliases=("PreCompact",),
        context=CompactContext,
    ),
    Point(
        "after_compact",
        "watch",
        ("summary", "trigger"),
        aliases=("PostCompact",),
        context=CompactContext,
    ),
    Point(
        "on_config_change",
        "gate",
        ("changes", "source", "path"),
        changes=("changes",),
        aliases=("ConfigChange", Alias("PreModelSwitch", lambda c: "model" in c.changes)),
        other_names={"file_path": "path"},
        context=ConfigContext,
    ),
    Point(
        "on_update",
        "fold",
        ("update",),
        changes=("update",),
        plain=update,
        aliases=(Alias("MessageDisplay", is_text), Alias("PostModelSwitch", model_changed)),
        other_names={"event": "update"},
        context=UpdateContext,
    ),
    Point(
        "on_error",
        "watch",
        ("error", "where", "place"),
        aliases=(Alias("StopFailure", lambda ctx: ctx.where in ("model", "loop")),),
        context=ErrorContext,
    ),
    Point(
        "on_notification",
        "watch",
        ("kind", "message"),
        aliases=("Notification",),
        context=NotificationContext,
    ),
)

# Names of Claude Code's that belong to the extension that makes them happen, which defines them.
ELSEWHERE: Mapping[str, str] = {
    "TaskCreated": "plan",
    "TaskCompleted": "plan",
    "Elicitation": "mcp",
    "ElicitationResult": "mcp",
    "InstructionsLoaded": "instructions",
    "FileChanged": "file_watcher",
    "CwdChanged": "persistent_shell",
    "DirectoryAdded": "commands",
    "WorktreeCreate": "worktrees",
    "WorktreeRemove": "worktrees",
    "TeammateIdle": "teams",
    "Setup": "setup",
}


class AgentHook:
    """All events by name, for completion in editors. Optional: any object's methods are hooks.

    A method that is not overridden is not registered. A hook names the arguments it wants, or
    takes the context: ``async def after_turn(self, session, usage)``, ``def before_tool(self,
    ctx)``. The table in ``docs/hooks.md`` says what each event offers.
    """

    def on_session_start(self, *args: Any, **kwargs: Any) -> Any:
        """A session begins (``session, source``). Text becomes context."""

    def on_session_end(self, *args: Any, **kwargs: Any) -> Any:
        """A session ends (``session, reason``)."""

    def before_run(self, *args: Any, **kwargs: Any) -> Any:
        """A prompt arrived (``session, prompt`` or ``user_input``). Text becomes context."""

    def before_command(self, *args: Any, **kwargs: Any) -> Any:
        """A slash command was recognised (``command, args``)."""

    def before_llm_request(self, *args: Any, **kwargs: Any) -> Any:
        """Before each request (``session, messages, tools, model, params``); the messages."""

    def around_llm_request(self, *args: Any, **kwargs: Any) -> Any:
        """Around each request (``messages, call_next``); returns the reply."""

    def after_llm_response(self, *args: Any, **kwargs: Any) -> Any:
        """The reply is complete, no tool has run (``reply, usage``)."""

    def before_tool(self, *args: Any, **kwargs: Any) -> Any:
        """Before each call (``call, tool, args``). Text denies it, a verdict decides."""

    def on_permission(self, *args: Any, **kwargs: Any) -> Any:
        """The user is about to be asked (``call, args, options``)."""

    def around_tool(self, *args: Any, **kwargs: Any) -> Any:
        """Around each execution (``call, args, call_next``); returns the result."""

    def after_tool(self, *args: Any, **kwargs: Any) -> Any:
        """Once per call (``call, args, result, outcome, error, duration``)."""

    def on_message(self, *args: Any, **kwargs: Any) -> Any:
        """A message was appended to the history (``session, message``)."""

    def after_turn(self, *args: Any, **kwargs: Any) -> Any:
        """Reply and results are in the history (``session, usage, results``)."""

    def on_stop(self, *args: Any, **kwargs: Any) -> Any:
        """The loop is about to end (``reply, count, cap``). Text or `Continue` goes on."""

    def around_run(self, *args: Any, **kwargs: Any) -> Any:
        """Around the loop (``call_next``)."""

    def after_loop(self, *args: Any, **kwargs: Any) -> Any:
        """The loop ended (``reply, stop_reason``); the answer is not returned yet."""

    def after_run(self, *args: Any, **kwargs: Any) -> Any:
        """The answer was returned (``reply, stop_reason``)."""

    def before_compact(self, *args: Any, **kwargs: Any) -> Any:
        """The history is about to be replaced (``messages, summary, trigger``)."""

    def after_compact(self, *args: Any, **kwargs: Any) -> Any:
        """The history was replaced (``session, summary``)."""

    def on_config_change(self, *args: Any, **kwargs: Any) -> Any:
        """Model, mode or an option is about to change (``changes``). Text denies it."""

    def on_update(self, *args: Any, **kwargs: Any) -> Any:
        """An event is on its way to the client (``update``)."""

    def on_error(self, *args: Any, **kwargs: Any) -> Any:
        """Something failed (``error, where``)."""

    def on_notification(self, *args: Any, **kwargs: Any) -> Any:
        """The user's attention is wanted (``kind, message``)."""
