"""The tool ``Agent``, which hands a task to a sub-agent; its arguments are Claude Code's."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from crow.core.calls import ToolKind, ToolResult
from crow.core.contexts import ToolContext
from crow.core.ports import ToolEnvironment
from crow.extensions.subagents.definition import GENERAL_PURPOSE, Definition
from crow.extensions.subagents.relay import Relay
from crow.extensions.subagents.work import Task, fields_of, hire, level, model_of, work
from crow.plugins import meant

if TYPE_CHECKING:
    from crow.extensions.subagents.hook import SubagentsHook

SHOWN = 1000
DESCRIPTION = """\
Hand a task to a sub-agent. It works by itself, with a conversation of its own, and cannot ask: \
say in the prompt all that it must know, and what it is to answer. Its last message is the result; \
the user does not see that, so tell them what matters. Several calls in one message run side by \
side.

Sub-agents:
"""


class AgentTool:
    """Hands a task to a sub-agent and waits for its result."""

    name = "Agent"
    kind: ToolKind = "think"

    def __init__(self, extension: SubagentsHook) -> None:
        self._extension = extension

    @property
    def description(self) -> str:
        """What the model is told: which sub-agents there are."""
        agents = self._extension.definitions.agents.values()
        return DESCRIPTION + "\n".join(map(_listed, agents))

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments' schema."""
        properties: dict[str, Any] = {
            "description": {"type": "string", "description": "The task in three to five words"},
            "prompt": {"type": "string", "description": "The task"},
            "subagent_type": {
                "type": "string",
                "description": f"Which sub-agent; {GENERAL_PURPOSE} where none is named",
            },
        }
        if self._extension.models:
            names = list(self._extension.models)
            told = "Another model than the sub-agent's own; only where the user wants that"
            properties["model"] = {"type": "string", "enum": names, "description": told}
        required = ["description", "prompt"]
        return {"type": "object", "properties": properties, "required": required}

    def title(self, args: dict[str, Any]) -> str:
        """The task in a few words."""
        return f"{self._whole(args)}: {args['description']}"

    def prepare(self, args: dict[str, Any], cwd: str) -> dict[str, Any]:
        """Name the sub-agent by its whole name, also where the model has not: rules speak of it."""
        return {**args, "subagent_type": self._whole(args)}

    def _whole(self, args: dict[str, Any]) -> str:
        wanted: str = args.get("subagent_type") or GENERAL_PURPOSE
        known = meant(wanted, self._extension.definitions.agents)
        return known[0] if len(known) == 1 else wanted

    async def run(self, args: dict[str, Any], ctx: ToolEnvironment) -> ToolResult:
        """Let the sub-agent do it."""
        call, extension = cast("ToolContext", ctx), self._extension
        agents, name = extension.definitions.agents, args["subagent_type"]
        definition = agents.get(name)
        if definition is None:
            known = ", ".join(meant(name, agents) or agents)
            return ToolResult.failure(f"there is no sub-agent {name!r}; there are: {known}")
        if level(call.session) >= extension.depth:
            return ToolResult.failure("a sub-agent cannot call others here: do it yourself")
        task = Task(args["prompt"], args["description"], args.get("model") or "")
        wish = task.model if task.model in extension.models else definition.model
        llm, model = model_of(wish, extension.models)
        fields = fields_of(call, definition, task, model)
        turn = call.cache.setdefault(extension.name, asyncio.Lock())
        hooks = extension.hooks_for(call.agent, definition)
        child = hire(call, definition, llm, hooks, extension.depth)
        return await work(call, Relay(call, turn), task, child, fields)


def _listed(definition: Definition) -> str:
    about = " ".join(definition.description.split())
    about = about if len(about) <= SHOWN else f"{about[: SHOWN - 1].rstrip()}…"
    tools = "all tools" if definition.tools is None else ", ".join(sorted(definition.tools))
    return f"- {definition.name}: {about} (tools: {tools or 'none'})"
