"""`AgentHook` can be overridden with any signature, and the front door's names have types.

Checked by `make check`: a line with an ignore comment must be an error, or the comment is one.
"""

# pyright: strict, reportUnnecessaryTypeIgnoreComment=true

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, assert_type

from openai import AsyncOpenAI

from crow import (
    Agent,
    AgentHook,
    Deny,
    Message,
    Reply,
    RunContext,
    Session,
    ToolContext,
    TurnContext,
    Usage,
    build,
    hook,
)
from crow.extensions import (
    HookLog,
    InstructionsHook,
    LimitsHook,
    PersistenceHook,
    StuckHook,
    SystemPromptHook,
    TruncationHook,
)
from crow.keys import JOBS, Key
from crow.testing import ScriptedModel, call


class ByName(AgentHook):
    async def on_session_start(self, session: Session) -> None: ...
    async def before_run(self, session: Session, user_input: str) -> str | None: ...
    async def before_llm_request(
        self, session: Session, messages: list[Message]
    ) -> list[Message]: ...
    async def after_turn(self, session: Session, usage: Usage | None) -> None: ...
    def before_tool(self, call: Any, args: dict[str, Any], limit: int = 3) -> Deny | None: ...
    def on_stop(self) -> None: ...


class ByContext(AgentHook):
    async def before_run(self, ctx: RunContext) -> None: ...
    def before_llm_request(self, ctx: TurnContext) -> list[Message]: ...
    def after_tool(self, ctx: ToolContext) -> str: ...


class CallsSuper(AgentHook):
    async def before_llm_request(self, session: Session, messages: list[Message]) -> list[Message]:
        return await super().before_llm_request(session, messages)

    async def around_tool(self, ctx: ToolContext, call_next: Callable[[], Awaitable[Any]]) -> Any:
        return await super().around_tool(ctx, call_next)


class OfAnySort:
    def init_agent(self, agent: Agent) -> None:
        agent.hooks.register("pre_request", self.pre_request)
        agent.extensions["of_any_sort"] = self

    async def pre_request(self, ctx: RunContext) -> None: ...

    @hook("before_tool", tools={"Bash"})
    async def guard(self, ctx: ToolContext) -> str:
        return "no"


def function(ctx: ToolContext) -> None: ...


agent = Agent(
    hooks=[
        ByName(),
        ByContext,
        OfAnySort(),
        function,
        HookLog(print, events=["PreToolUse"]),
        InstructionsHook(),
        LimitsHook(turns=3, seconds=1.5),
        PersistenceHook(db_path="~/.crow/crow.db"),
        StuckHook(),
        SystemPromptHook("You are Crow."),
        TruncationHook(limit=1000),
    ]
)
hook("before_tool", jugde=True)  # pyright: ignore[reportCallIssue]
pieces = ["Good ", "day."]
Agent(ScriptedModel(pieces, [call("LS")], "Done."))
assert_type(agent.use(OfAnySort), OfAnySort)
assert_type(agent.use(OfAnySort()), OfAnySort)
Agent(AsyncOpenAI(), model="gpt-5")
build(model="ollama/qwen3", hooks=[ByName()])
build(model=AsyncOpenAI())
build(model=1)  # pyright: ignore[reportArgumentType]
Agent([ByName()])  # pyright: ignore[reportArgumentType]
SystemPromptHook(1)  # pyright: ignore[reportArgumentType]
LimitsHook(turn=3)  # pyright: ignore[reportCallIssue]


SEEN: Key[set[str]] = Key("seen")


def remember(ctx: ToolContext) -> None:
    assert_type(SEEN.get(ctx), set[str] | None)
    SEEN.setdefault(ctx.session, set()).add(ctx.name)
    SEEN.set(ctx, [])  # pyright: ignore[reportArgumentType]
    JOBS.set(ctx, {"a": 1})  # pyright: ignore[reportArgumentType]


async def drive() -> None:
    reply = await agent.run("Hi", cwd="/")
    assert_type(reply, Reply)
    assert_type(reply.text, str)
    assert_type(reply.session.messages, list[Message])
    await OfAnySort().guard(ToolContext.__new__(ToolContext))
