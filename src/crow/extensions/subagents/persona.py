"""A session that runs as one of the agents: with its prompt, tools, model and mode."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from crow import Deny, Key
from crow.extensions.subagents.definition import Definition
from crow.extensions.subagents.work import model_of
from crow.keys import GIVEN_MODE, ROLE
from crow.project import matching_names, use_front_matter

if TYPE_CHECKING:
    from crow import LLM, SessionContext, ToolContext, TurnContext

PERSONA: Key[Definition] = Key("subagents.persona")
STATE = "agent"
"""Under which a session remembers its name, for whoever goes on with it."""
MODE = ("permissionMode", "permission-mode")
BYPASS = "bypassPermissions"


def meant(name: str, agents: Mapping[str, Definition]) -> Definition | str:
    """The agent of a name, or the line that says why there is none."""
    known = matching_names(name, agents)
    if len(known) == 1:
        return agents[known[0]]
    return f"there is no agent {name!r}; there are: {', '.join(known or agents)}"


async def become(
    ctx: SessionContext, definition: Definition, models: Mapping[str, LLM | str]
) -> None:
    """Let a session be this agent from now on; a new one has its model and its mode, too."""
    PERSONA.set(ctx, definition)
    ROLE.set(ctx, ("agent", definition.prompt))
    ctx.state[STATE] = ctx.session.agent_type = definition.name
    if ctx.source == "new":
        _, model = model_of(definition.model, models)
        ctx.session.model = ctx.session.model or model or None
        for line in _choose_mode(ctx, definition.front_matter):
            await ctx.ui.notify(line, severity="warning")
    if definition.front_matter:
        await use_front_matter(ctx, definition.source, definition.front_matter)


def _choose_mode(ctx: SessionContext, told: Mapping[str, Any]) -> Iterable[str]:
    """Take the mode of an agent's file, unless the user has chosen one; what is wrong with it."""
    mode = next((str(told[name]) for name in MODE if told.get(name)), "")
    if not mode or ctx.session.mode not in {"default", GIVEN_MODE.get(ctx)} - {BYPASS}:
        return
    if mode == BYPASS:
        yield f"the agent does not choose the mode {BYPASS}: --mode {BYPASS} does"
    elif mode in ctx.agent.modes_of(ctx.session):
        ctx.session.mode = mode
    else:
        yield f"the agent wants a mode {mode!r}, which is not there"


def lend(ctx: TurnContext) -> None:
    """Leave out the tools that the session's agent has not got."""
    persona = PERSONA.get(ctx)
    if persona is not None:
        known = ctx.agent.tools_of(ctx.session)
        hidden = {name for name, tool in known.items() if not _has(persona, name, tool)}
        ctx.tools = [each for each in ctx.tools if each["function"]["name"] not in hidden]


def refusal(ctx: ToolContext) -> Deny | None:
    """Why a call may not be: the session's agent has not got the tool."""
    persona, known = PERSONA.get(ctx), ctx.agent.tools_of(ctx.session)
    name = next((each for each in known if each == ctx.name), ctx.name)
    if persona is None or _has(persona, name, known.get(name)):
        return None
    return Deny(f"{ctx.name} is not in use here: the agent {persona.name} has not got it")


def _has(persona: Definition, name: str, tool: object) -> bool:
    """True for a tool of the agent's, and for what only leads to tools."""
    return persona.may_have(name) or getattr(tool, "serves_session", False)
