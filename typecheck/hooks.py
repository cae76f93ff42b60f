"""Typed attributes take the hooks that fit their point and refuse the others.

Checked by `make check`: a line with an ignore comment must be an error, or the comment is one.
"""

# pyright: strict, reportUnnecessaryTypeIgnoreComment=true, reportUnusedFunction=false

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any, assert_type

from crow import (
    Agent,
    Allow,
    Answer,
    Call,
    Completion,
    Context,
    Continue,
    Deny,
    HookRegistry,
    Message,
    Request,
    RunContext,
    Stop,
    ToolContext,
    ToolResult,
    TurnContext,
    UpdateContext,
    Verdict,
)
from crow.events import Delta, Event
from crow.hooks import FIRST, HookResult, Next, NextCall, NextRequest

agent = Agent()

# gates


@agent.hooks.before_tool
async def guard(ctx: ToolContext) -> Verdict | str | None:
    return Deny("not here") if ctx.args else None


@agent.hooks.before_tool
def guard_sync(ctx: ToolContext) -> Allow | None:
    return None


@agent.hooks.before_tool
def guard_in_other_words(ctx: ToolContext) -> HookResult:
    return HookResult(permissionBehavior="deny", hookPermissionDecisionReason="not here")


@agent.hooks.before_tool
async def guard_in_json(ctx: ToolContext) -> dict[str, Any]:
    return {"decision": "block", "reason": "not here"}


HookResult(permissionBehavior="alow")  # pyright: ignore[reportArgumentType]
HookResult(permission_behavior="allow")  # pyright: ignore[reportCallIssue]


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
async def timed(ctx: ToolContext, call_next: Callable[[], Awaitable[Any]]) -> Any:
    return await call_next()


@agent.hooks.around_tool
async def with_other_arguments(ctx: ToolContext, call_next: NextCall) -> ToolResult:
    first = await call_next({**ctx.args, "limit": 10})
    return first if not first.error else await call_next()


@agent.hooks.around_tool(tools={"Bash"})
async def limited(ctx: ToolContext, call_next: NextCall) -> ToolResult | Answer:
    try:
        return await asyncio.wait_for(call_next(), 60)
    except TimeoutError:
        return Answer("it took too long")


@agent.hooks.around_llm_request
async def retried(ctx: TurnContext, call_next: NextRequest) -> Completion:
    task = asyncio.create_task(call_next())
    return await task or await call_next(model="small", params={}, tools=[], messages=[])


@agent.hooks.around_llm_request
async def as_a_whole(ctx: TurnContext, call_next: NextRequest) -> Completion:
    return await call_next(Request(ctx.messages, model="small"))


@agent.hooks.around_llm_request
async def streamed(ctx: TurnContext, call_next: NextRequest) -> AsyncIterator[Delta | Completion]:
    async for piece in call_next(model=None):
        yield piece


@agent.hooks.around_llm_request
async def texts(ctx: TurnContext, call_next: NextRequest) -> AsyncGenerator[str]:
    yield "no model was asked"


@agent.hooks.around_run
async def around_a_run(ctx: RunContext, call_next: Next) -> None:
    await call_next()


@agent.hooks.around_tool  # pyright: ignore[reportArgumentType]
async def must_take_the_operation(ctx: ToolContext) -> Any: ...


@agent.hooks.around_tool  # pyright: ignore[reportArgumentType]
def must_be_async(ctx: ToolContext, call_next: NextCall) -> str:
    return ""


@agent.hooks.around_tool  # pyright: ignore[reportArgumentType]
async def must_return_a_result(ctx: ToolContext, call_next: NextCall) -> None: ...


@agent.hooks.around_llm_request  # pyright: ignore[reportArgumentType]
async def must_return_a_reply(ctx: TurnContext, call_next: NextRequest) -> str:
    return (await call_next()).text


@agent.hooks.around_llm_request  # pyright: ignore[reportArgumentType]
async def must_yield_pieces(ctx: TurnContext, call_next: NextRequest) -> AsyncIterator[int]:
    yield 1


@agent.hooks.around_tool  # pyright: ignore[reportArgumentType]
async def yields_around_a_tool(ctx: ToolContext, call_next: NextCall) -> AsyncIterator[ToolResult]:
    yield await call_next()


@agent.hooks.around_llm_request
async def changes_what_a_request_has(ctx: TurnContext, call_next: NextRequest) -> Completion:
    return await call_next(temperature=1)  # pyright: ignore[reportCallIssue, reportUnknownVariableType]


@agent.hooks.around_tool
async def gives_no_list_of_arguments(ctx: ToolContext, call_next: NextCall) -> ToolResult:
    return await call_next(["a"])  # pyright: ignore[reportArgumentType]


# continue


@agent.hooks.on_stop
def more(ctx: RunContext) -> Continue | str | None:
    return "go on"


@agent.hooks.on_stop
async def more_in_other_words(ctx: RunContext) -> HookResult | None:
    return None if ctx.stop_hook_active else HookResult(blockingError="go on")


@agent.hooks.on_stop  # pyright: ignore[reportArgumentType]
def a_stop_is_not_allowed_or_denied(ctx: RunContext) -> Deny:
    return Deny("no")


# by name, any signature


def by_name(block: Any, output: str) -> None: ...


agent.hooks.register("PostToolUse", by_name, tools={"bash"})
agent.hooks.register("PostToolUse", by_name, tool={"bash"})  # pyright: ignore[reportCallIssue]


@agent.hooks.register("PreToolUse", tools={"Bash"}, order=FIRST)
def by_decorator(block: Call) -> str | None:
    return None if block.input else "no"


@agent.hooks.register("PreToolUse", tool={"Bash"})  # pyright: ignore[reportCallIssue, reportUntypedFunctionDecorator]
def misspelt(block: Call) -> None: ...


registry = HookRegistry()
dispose = registry.register_hook("PostToolUse", by_name)
assert_type(dispose, Callable[[], None])
assert_type(by_decorator(Call("1", "Bash")), str | None)
Agent(hooks=[registry], entry_points=True)
Agent(entry_points={"weather": {"city": "Rome"}})
Agent(entry_points="weather")  # pyright: ignore[reportArgumentType]


async def deploy(ctx: Context) -> None:
    assert_type(await agent.hooks.trigger_hooks("before_deploy", ctx), str | None)
