"""Typed attributes take the hooks that fit their point and refuse the others.

Checked by `make check`: a line with an ignore comment must be an error, or the comment is one.
"""

# pyright: strict, reportUnnecessaryTypeIgnoreComment=true, reportUnusedFunction=false

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from crow import (
    Agent,
    Allow,
    Answer,
    Completion,
    Context,
    Continue,
    Deny,
    Message,
    RunContext,
    Stop,
    ToolContext,
    ToolResult,
    TurnContext,
    UpdateContext,
    Verdict,
)
from crow.events import Event

agent = Agent()
Next = Callable[[], Awaitable[Any]]

# gates


@agent.hooks.before_tool
async def guard(ctx: ToolContext) -> Verdict | str | None:
    return Deny("not here") if ctx.args else None


@agent.hooks.before_tool
def guard_sync(ctx: ToolContext) -> Allow | None:
    return None


@agent.hooks.before_tool
def guard_any_moment(ctx: Context) -> None: ...


@agent.hooks.before_tool(tools={"Bash"}, order=1, timeout=5)
async def guard_bash(ctx: ToolContext) -> str | None:
    return "no"


@agent.hooks.before_run
def at_start(ctx: RunContext) -> str:
    return "context"


@agent.hooks.before_tool  # pyright: ignore[reportArgumentType]
def a_number_is_no_verdict(ctx: ToolContext) -> int:
    return 1


@agent.hooks.before_tool  # pyright: ignore[reportArgumentType]
def a_gate_of_runs_is_no_gate_of_tools(ctx: RunContext) -> None: ...


@agent.hooks.before_tool  # pyright: ignore[reportArgumentType]
def a_gate_keeps_nothing_going(ctx: ToolContext) -> Continue:
    return Continue("more")


@agent.hooks.before_tool  # pyright: ignore[reportArgumentType]
def two_arguments(ctx: ToolContext, more: str) -> None: ...


@agent.hooks.before_tool(toolz={"Bash"})  # pyright: ignore[reportCallIssue, reportUntypedFunctionDecorator]
def a_misspelt_option(ctx: ToolContext) -> None: ...


@agent.hooks.before_tol  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUntypedFunctionDecorator]
def a_misspelt_point(ctx: ToolContext) -> None: ...


# folds


@agent.hooks.before_llm_request
def system_prompt(ctx: TurnContext) -> list[Message]:
    return [{"role": "system", "content": "You are Crow."}, *ctx.messages]


@agent.hooks.before_llm_request
async def looks_on(ctx: TurnContext) -> None: ...


@agent.hooks.after_llm_response
def another_reply(ctx: TurnContext) -> Completion:
    return ctx.reply


@agent.hooks.after_tool(tools={"Read"})
def more_context(ctx: ToolContext) -> str | ToolResult | Answer | Stop | None:
    return None


@agent.hooks.on_update
def another_event(ctx: UpdateContext) -> Event | Deny:
    return ctx.update


@agent.hooks.before_llm_request  # pyright: ignore[reportArgumentType]
def a_text_is_no_messages(ctx: TurnContext) -> str:
    return "text"


@agent.hooks.after_tool  # pyright: ignore[reportArgumentType]
def it_is_too_late_to_deny(ctx: ToolContext) -> Deny:
    return Deny("too late")


# watches


@agent.hooks.after_turn
async def anything_goes(ctx: TurnContext) -> int:
    return 1


@agent.hooks.after_turn  # pyright: ignore[reportArgumentType]
def not_with_a_tool(ctx: ToolContext) -> None: ...


# wraps


@agent.hooks.around_tool
async def timed(ctx: ToolContext, call_next: Next) -> Any:
    return await call_next()


@agent.hooks.around_tool  # pyright: ignore[reportArgumentType]
async def must_take_the_operation(ctx: ToolContext) -> Any: ...


@agent.hooks.around_tool  # pyright: ignore[reportArgumentType]
def must_be_async(ctx: ToolContext, call_next: Next) -> str:
    return ""


# continue


@agent.hooks.on_stop
def more(ctx: RunContext) -> Continue | str | None:
    return "go on"


@agent.hooks.on_stop  # pyright: ignore[reportArgumentType]
def a_stop_is_not_allowed_or_denied(ctx: RunContext) -> Deny:
    return Deny("no")


# by name, any signature


def by_name(block: Any, output: str) -> None: ...


agent.hooks.register("PostToolUse", by_name, tools={"bash"})
agent.hooks.register("PostToolUse", by_name, tool={"bash"})  # pyright: ignore[reportCallIssue]
