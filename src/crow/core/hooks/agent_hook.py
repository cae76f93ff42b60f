"""The table of events: a method each of `AgentHook`, and an attribute each where hooks hang.

A row is a method, whose parameters are the fields. A moment has one canonical name and any number
of aliases; another vocabulary costs rows here and no code. Nothing in this file runs a hook.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any, cast

from crow.core.events import Event, StopReason
from crow.core.hooks.call_next import Next, NextCall, NextRequest
from crow.core.hooks.contexts import (
    CommandContext,
    CompactContext,
    ConfigContext,
    CwdContext,
    ErrorContext,
    MessageContext,
    NotificationContext,
    RequestContext,
    SessionContext,
    ToolContext,
    TurnContext,
    UpdateContext,
    WorktreeContext,
)
from crow.core.hooks.point_kinds import Fold, Gate, StopPoint, Watch
from crow.core.hooks.points import (
    TOOL_NAMES,
    ends_run,
    event,
    inject,
    is_text,
    main,
    messages,
    model_changed,
    outcome,
    path,
    reply,
    result,
    sub,
    summary,
    switches_model,
    update,
)
from crow.core.hooks.run_context import Reply, RunContext
from crow.core.hooks.wraps import ToolWrap, Wrap
from crow.core.hooks.wraps.request import RequestWrap
from crow.core.messages import Content, Message, ToolSpec, Usage
from crow.core.ports.client import Option
from crow.core.ports.llm import Completion
from crow.core.ports.tool import Tool
from crow.core.session import Session
from crow.core.tools import Call, Outcome, ToolResult
from crow.core.verdicts import Answer, Continue, Deny, Verdict


class AgentHook:
    """All events by name, for completion in editors. Optional: any object's methods are hooks.

    A method that is not overridden is not registered. A hook names the arguments it wants, or
    takes the context: ``async def after_turn(self, session, usage)``, ``def before_tool(self,
    ctx)``. The table in ``docs/hooks.md`` says the same of each event in a line.
    """

    @event(
        "fold", SessionContext, plain=inject, aliases={"SessionStart": main, "SubagentStart": sub}
    )
    def on_session_start(self, session: Session, source: str) -> str | None:
        """A session begins. Text becomes context."""

    @event("watch", SessionContext, reverse=True, aliases={"SessionEnd": main})
    def on_session_end(self, session: Session, reason: str) -> None:
        """A session ends."""

    @event(
        "gate",
        RunContext,
        changes=("prompt",),
        plain=inject,
        aliases=("pre_request", "UserPromptSubmit"),
        other_names={"user_input": "prompt", "query": "prompt"},
    )
    def before_run(self, prompt: Content, messages: list[Message]) -> Verdict | str | None:
        """A prompt arrived, and is not stored yet. Text becomes context."""

    @event(
        "gate", CommandContext, changes=("args",), plain=inject, aliases=("UserPromptExpansion",)
    )
    def before_command(self, command: str, args: str) -> Verdict | str | None:
        """A slash command was recognised. Text becomes context."""

    @event(
        "fold",
        TurnContext,
        changes=("messages", "tools", "model", "params"),
        plain=messages,
        aliases=("BeforeModel",),
    )
    def before_llm_request(
        self,
        messages: list[Message],
        tools: list[ToolSpec],
        model: str | None,
        params: dict[str, Any],
    ) -> list[Message] | None:
        """Before each request. A list becomes its messages."""

    @event("wrap", TurnContext, changes=("messages", "tools", "model", "params"))
    def around_llm_request(
        self,
        messages: list[Message],
        tools: list[ToolSpec],
        model: str | None,
        params: dict[str, Any],
        call_next: NextRequest,
    ) -> Completion:
        """Around each request: returns the reply, this one or another, or yields its pieces."""
        return cast(Any, call_next())  # to be awaited or iterated

    @event("watch", RequestContext)
    def on_llm_request(
        self,
        messages: list[Message],
        tools: list[ToolSpec],
        model: str | None,
        params: dict[str, Any],
    ) -> None:
        """A request goes to the model, as all hooks have left it."""

    @event(
        "fold", TurnContext, changes=("reply",), plain=reply, aliases=("mid_react", "AfterModel")
    )
    def after_llm_response(
        self, reply: Completion, usage: Usage | None, messages: list[Message]
    ) -> Completion | str | None:
        """The reply is complete, and no tool has run. Text becomes the reply's."""

    @event("gate", ToolContext, changes=("args",), aliases=("PreToolUse",), other_names=TOOL_NAMES)
    def before_tool(self, call: Call, tool: Tool, args: dict[str, Any]) -> Verdict | str | None:
        """Before each call. Text denies it, a verdict decides."""

    @event(
        "gate",
        ToolContext,
        changes=("args",),
        aliases=("PermissionRequest",),
        other_names=TOOL_NAMES,
    )
    def on_permission(
        self, call: Call, tool: Tool, args: dict[str, Any], options: Sequence[Option], reason: str
    ) -> Verdict | str | None:
        """The user is about to be asked. Text denies the call, a verdict answers."""

    @event("wrap", ToolContext, changes=("launcher",), other_names=TOOL_NAMES)
    async def around_tool(
        self, call: Call, tool: Tool, args: dict[str, Any], call_next: NextCall
    ) -> ToolResult:
        """Around each execution: returns the result, this one or another."""
        return await call_next()

    @event(
        "fold",
        ToolContext,
        changes=("result",),
        plain=result,
        reverse=True,
        aliases={
            "PostToolUse": outcome("ok", "answered"),
            "PostToolUseFailure": outcome("error"),
            "PermissionDenied": outcome("denied"),
        },
        other_names={**TOOL_NAMES, "tool_response": "output"},
    )
    def after_tool(
        self,
        call: Call,
        tool: Tool | None,
        args: dict[str, Any],
        result: ToolResult,
        output: str,
        outcome: Outcome,
        error: str | None,
        duration: float,
    ) -> ToolResult | Answer | str | None:
        """Once a call, whatever came of it. Text becomes context, a result takes its place."""

    @event("watch", MessageContext)
    def on_message(self, message: Message) -> None:
        """A message was appended to the history."""

    @event("watch", TurnContext, reverse=True, aliases=("PostToolBatch",))
    def after_turn(
        self,
        usage: Usage | None,
        results: list[ToolContext],
        reply: Completion,
        messages: list[Message],
    ) -> None:
        """Reply and results are in the history."""

    @event(
        "continue",
        RunContext,
        aliases={"Stop": main, "SubagentStop": sub},
        other_names={"stop_hook_active": "stop_hook_active"},
    )
    def on_stop(
        self, reply: Reply, count: int, cap: int, messages: list[Message]
    ) -> Continue | str | None:
        """The loop is about to end. Text or `Continue` goes on."""

    @event("wrap", RunContext)
    async def around_run(self, prompt: Content, messages: list[Message], call_next: Next) -> None:
        """Around the loop."""
        await call_next()

    @event(
        "fold",
        RunContext,
        changes=("reply",),
        plain=reply,
        reverse=True,
        aliases=("post_react_loop",),
    )
    def after_loop(
        self, reply: Reply, stop_reason: StopReason, messages: list[Message], usage: Usage
    ) -> Reply | str | None:
        """The loop ended, and the answer is not returned yet. Text becomes the reply's."""

    @event("watch", RunContext, reverse=True, aliases=("post_request",))
    def after_run(
        self,
        reply: Reply,
        stop_reason: StopReason,
        prompt: Content,
        messages: list[Message],
        usage: Usage,
    ) -> None:
        """The answer was returned."""

    @event(
        "fold",
        CompactContext,
        changes=("summary", "messages"),
        plain=summary,
        aliases=("PreCompact",),
    )
    def before_compact(
        self, messages: list[Message], summary: str, trigger: str
    ) -> Deny | str | None:
        """The history is about to be replaced. Text becomes the summary."""

    @event("watch", CompactContext, aliases=("PostCompact",))
    def after_compact(self, summary: str, trigger: str) -> None:
        """The history was replaced."""

    @event(
        "gate",
        ConfigContext,
        changes=("changes",),
        aliases={"ConfigChange": None, "PreModelSwitch": switches_model},
        other_names={"file_path": "path"},
    )
    def on_config_change(
        self, changes: dict[str, Any], source: str, path: str
    ) -> Verdict | str | None:
        """Model, mode or an option is about to change. Text denies it."""

    @event(
        "fold",
        UpdateContext,
        changes=("update",),
        plain=update,
        aliases={"MessageDisplay": is_text, "PostModelSwitch": model_changed},
        other_names={"event": "update"},
    )
    def on_update(self, update: Event) -> Event | Deny | None:
        """An event is on its way to the client. Another one takes its place."""

    @event(
        "watch",
        ErrorContext,
        aliases={"StopFailure": ends_run},
    )
    def on_error(self, error: BaseException, where: str, place: str) -> None:
        """Something failed."""

    @event("watch", CwdContext, aliases=("CwdChanged",))
    def on_cwd_changed(self, old_cwd: str, new_cwd: str) -> None:
        """The session works in another directory."""

    @event(
        "gate",
        WorktreeContext,
        changes=("path",),
        plain=path,
        aliases=("WorktreeCreate",),
        other_names={"worktree_path": "path"},
    )
    def on_worktree_create(self, name: str, path: str) -> Verdict | str | None:
        """A working tree is wanted. Text is where the hook has made it."""

    @event(
        "watch",
        WorktreeContext,
        aliases=("WorktreeRemove",),
        other_names={"worktree_path": "path"},
    )
    def on_worktree_remove(self, name: str, path: str) -> None:
        """A working tree is no longer needed."""

    @event("watch", NotificationContext, aliases=("Notification",))
    def on_notification(self, kind: str, message: str) -> None:
        """The user's attention is wanted."""


class HookPoints:
    """All points by name, an attribute each, where hooks of the right type hang.

    ``@agent.hooks.before_tool`` hangs one; a type checker refuses a wrong one.
    """

    on_session_start: Fold[SessionContext, str]
    on_session_end: Watch[SessionContext]
    before_run: Gate[RunContext]
    before_command: Gate[CommandContext]
    before_llm_request: Fold[TurnContext, list[Message]]
    around_llm_request: RequestWrap
    on_llm_request: Watch[RequestContext]
    after_llm_response: Fold[TurnContext, Completion | str]
    before_tool: Gate[ToolContext]
    on_permission: Gate[ToolContext]
    around_tool: ToolWrap
    after_tool: Fold[ToolContext, str | ToolResult | Answer]
    on_message: Watch[MessageContext]
    after_turn: Watch[TurnContext]
    on_stop: StopPoint
    around_run: Wrap[RunContext, Next, Awaitable[object]]
    after_loop: Fold[RunContext, Reply | str]
    after_run: Watch[RunContext]
    before_compact: Fold[CompactContext, str | Deny]
    after_compact: Watch[CompactContext]
    on_config_change: Gate[ConfigContext]
    on_update: Fold[UpdateContext, Event | Deny]
    on_error: Watch[ErrorContext]
    on_cwd_changed: Watch[CwdContext]
    on_worktree_create: Gate[WorktreeContext]
    on_worktree_remove: Watch[WorktreeContext]
    on_notification: Watch[NotificationContext]
