"""The extension: named agents, and the tool that hands them tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from crow.core.agent import Agent
from crow.core.contexts import SessionContext
from crow.core.errors import ExtensionError
from crow.core.ports import LLM
from crow.extensions.subagents.definition import Definition, Definitions
from crow.extensions.subagents.role import Role
from crow.extensions.subagents.tool import AgentTool
from crow.plugins import Plugin

USER_FOLDERS = ("~/.crow/agents", "~/.claude/agents")
INHERITED = (
    "persistence",
    "instructions",
    "limits",
    "stuck",
    "truncation",
    "compaction",
    "cost",
    "shell_hooks",
)
"""Extensions that look after a conversation, whoever has it, by name."""


def plainly(definition: Definition) -> Iterable[Any]:
    """A sub-agent's own extensions: its prompt as the system message."""
    return (Role(definition.prompt),)


class SubagentsHook:
    """Adds the tool ``Agent``, which hands a task to a sub-agent and gives back its last words.

    ``folders`` hold their definitions (Markdown with front matter: ``name``, ``description``,
    ``tools``, ``disallowedTools``, ``model``), the first of a name counts; they are read once,
    and ``agents`` are defined beside them. Give no folder that its user does not trust.
    ``general-purpose`` is always there. Those of ``plugins`` are called ``plugin:name``, and by
    their name alone where only one can be meant.

    A sub-agent has a history of its own, its caller's gates (permissions among them, with the mode
    that holds at every call), its caller's tools as far as its definition names them, and those of
    its caller's extensions that ``inherit`` names. ``hooks`` makes the ones that are its own, from
    its definition: without it the prompt is the system message. ``models`` gives names in
    definitions (``haiku``) a model. Sub-agents of sub-agents end at ``depth``.
    """

    name = "subagents"

    def __init__(
        self,
        folders: Sequence[str | Path] = USER_FOLDERS,
        *,
        agents: Iterable[Definition] = (),
        plugins: Iterable[Plugin] = (),
        inherit: Sequence[str] = INHERITED,
        hooks: Callable[[Definition], Iterable[Any]] = plainly,
        models: Mapping[str, LLM | str] | None = None,
        depth: int = 1,
    ) -> None:
        if isinstance(folders, str) or isinstance(inherit, str):
            raise ExtensionError("subagents: folders and inherit are lists")
        self.folders = tuple(folders)
        self.agents = tuple(agents)
        self.plugins = tuple(plugins)
        self.inherit = tuple(inherit)
        self.hooks = hooks
        self.models = dict(models or {})
        self.depth = depth

    def init_agent(self, agent: Agent) -> None:
        """Add the tool."""
        agent.add_tool(AgentTool(self))

    @cached_property
    def definitions(self) -> Definitions:
        """The sub-agents by name, and what is wrong with the files."""
        folders = (Path(folder).expanduser() for folder in self.folders)
        read = Definitions.of(folders, self.plugins)
        read.agents = {**read.agents, **{agent.name: agent for agent in self.agents}}
        return read

    async def on_session_start(self, ctx: SessionContext) -> None:
        """Say what is wrong with the files."""
        for problem in self.definitions.problems:
            await ctx.ui.notify(problem, severity="warning")

    def hooks_for(self, parent: Agent, definition: Definition) -> Iterator[Any]:
        """What hangs on a sub-agent."""
        for name in self.inherit:
            if name in parent.extensions:
                yield parent.extensions[name]
        yield from self.hooks(definition)
