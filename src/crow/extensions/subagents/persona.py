"""A session that runs as one of the agents: with its prompt, tools, model and mode."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from crow import Deny
from crow.extensions.subagents.definition import Definition
from crow.extensions.subagents.memory import remembering
from crow.extensions.subagents.skills_and_servers import servers_of
from crow.extensions.subagents.work import model_of
from crow.keys import GIVEN_MODE, INITIAL_PROMPT, ROLE
from crow.ports import serves_session
from crow.project import matching_names, use_front_matter

if TYPE_CHECKING:
    from crow import LLM, RunContext, SessionContext, ToolContext, TurnContext
    from crow.messages import Content

STATE = "agent"
"""Under which a session remembers its name, for whoever goes on with it."""
MODE = ("permissionMode", "permission-mode")
BYPASS = "bypassPermissions"


def find_agent(name: str, agents: Mapping[str, Definition]) -> Definition | str:
    """The agent of a name, or the line that says why there is none."""
    known = matching_names(name, agents)
    if len(known) == 1:
        return agents[known[0]]
    return f"there is no agent {name!r}; there are: {', '.join(known or agents)}"


async def become(
    ctx: SessionContext, definition: Definition, models: Mapping[str, LLM | str]
) -> None:
    """Let a session be this agent from now on; a new one has its model and its mode, too."""
    definition, memory = remembering(definition, ctx.session.root.cwd)
    own = await servers_of(ctx, definition)
    for thing in filter(None, (Persona(definition), memory, own)):
        ctx.session.use(thing)
    ROLE.set(ctx, ("agent", definition.prompt))
    ctx.state[STATE] = ctx.session.agent_type = definition.name
    if ctx.source == "new":
        INITIAL_PROMPT.set(ctx, definition.first_prompt)
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


class Persona:
    """Lends a session the tools that its agent may have, and those that only lead to tools."""

    name = "persona"

    def __init__(self, definition: Definition) -> None:
        self.definition = definition

    def before_run(self, ctx: RunContext) -> None:
        """Put what the agent begins with before what the user says first."""
        if (first := INITIAL_PROMPT.pop(ctx)) and ctx.session.parent is None:
            ctx.prompt = preceded(first, ctx.prompt)

    def before_llm_request(self, ctx: TurnContext) -> None:
        """Leave out the others."""
        known = ctx.agent.tools_of(ctx.session)
        hidden = {name for name, tool in known.items() if self.hides(name, tool)}
        ctx.tools = [each for each in ctx.tools if each["function"]["name"] not in hidden]

    def before_tool(self, ctx: ToolContext) -> Deny | None:
        """Refuse the others."""
        known = ctx.agent.tools_of(ctx.session)
        name = next((each for each in known if each == ctx.name), ctx.name)
        if ctx.session.parent is not None or not self.hides(name, known.get(name)):
            return None
        return Deny(f"{ctx.name} is not in use here: the agent {self.definition.name} has it not")

    def hides(self, name: str, tool: object) -> bool:
        """True for a tool that the agent has not."""
        return not (self.definition.may_have(name) or serves_session(tool))


def preceded(first: str, prompt: Content) -> Content:
    """A prompt with a text before it."""
    if isinstance(prompt, str):
        return f"{first}\n\n{prompt}" if prompt else first
    return [{"type": "text", "text": first}, *prompt]
