"""A moment made of what a loop of one's own has at hand: a call, its result, a prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crow.core.context import Context, RunContext
from crow.core.contexts import ToolContext
from crow.core.errors import HookError
from crow.core.session import Session
from crow.core.tasks import DOING, Spawned
from crow.core.tools import Call, ToolResult

if TYPE_CHECKING:
    from crow.core.session import Agent


def doing() -> Any:
    """The view of whatever hook, tool or command is at work; None where none is."""
    now = DOING.get()
    while isinstance(now, Spawned):
        now = now.whose
    return now


async def moment_of(
    wanted: type[Context], agent: Agent | None, session: Session | None, given: tuple[Any, ...]
) -> Context | None:
    """A context of a call, of a call and its result, or of a prompt; None for anything else.

    It is of the session, else of that of the hook that asks, else of the agent's only one, else of
    a new one. Raises `HookError` where it could be one of several.
    """
    match given:
        case (Context() as ctx,):
            return ctx
        case (Call() as call, *more) if wanted is ToolContext and len(more) <= 1:
            run = await _run(agent, session)
            ctx = ToolContext(run, call, run.agent.tool(call.name, run.session))
            ctx.result = ToolResult.of(more[0]) if more else None
            return ctx
        case (str() as prompt,) if wanted is RunContext:
            return await _run(agent, session, prompt)
        case _:
            return None


def give_back(ctx: Context, given: object) -> None:
    """Let a call that was given have the arguments that hooks have made of its own."""
    if isinstance(given, Call) and isinstance(ctx, ToolContext) and ctx.args != given.args:
        given.args.clear()
        given.args.update(ctx.args)


async def _run(agent: Agent | None, session: Session | None, prompt: str = "") -> RunContext:
    """The run that is at work, or one that stands for it."""
    now = doing()
    if now is not None and session in (None, now.session):
        agent, session = now.agent, now.session
        if now.run is not None and not prompt:
            return now.run
    if agent is None:
        raise HookError("these hooks are no agent's: hang them on one")
    if session is None:
        known = list(agent.sessions.values())
        if len(known) > 1:
            raise HookError("which session is it about? session.hooks.trigger_hooks(...) knows")
        session = known[0] if known else await agent.new_session()
    return RunContext(agent, session, prompt)
