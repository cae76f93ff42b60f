"""Sub-agents: named agents that work on a task by themselves and give back its result."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from crow import Arg, ToolResult
from crow.dataclasses import frozen
from crow.errors import ExtensionError
from crow.extensions.subagents.definition import (
    BUILT_IN,
    GENERAL_PURPOSE,
    Definition,
    Definitions,
    defined,
)
from crow.keys import Key
from crow.ports import Inherited, implements

if TYPE_CHECKING:
    from crow import LLM, Agent, Session, SessionContext, ToolContext, ToolEnvironment
    from crow.project import Brought, Plugin, ProjectSettings
    from crow.tools import ToolKind

FOLDERS = (".crow/agents", ".claude/agents")
USER_FOLDERS = tuple(f"~/{folder}" for folder in FOLDERS)
INHERITED = (
    "persistence",
    "instructions",
    "limits",
    "stuck",
    "truncation",
    "compaction",
    "cost",
    "prompt_cache",
    "rewind",
    "shell_hooks",
    "telemetry",
)
"""Extensions that look after a conversation, whoever has it, by name."""
SHOWN = 1000
TURN: Key[asyncio.Lock] = Key("subagents")
"""Sub-agents of one session are made one after another."""
DESCRIPTION = """\
Hand a task of which only the result matters to a sub-agent. It knows only the prompt, cannot ask, \
and answers you, not the user. Calls run side by side. description: 3-5 words.\
"""


def plainly(definition: Definition) -> Iterable[Any]:
    """A sub-agent's own extensions: its prompt as the system message."""
    from crow.extensions.subagents.role import Role

    return (Role(definition.prompt),)


@frozen
class SubagentsOptions:
    """The settings of sub-agents."""

    folders: Sequence[str]
    """Folders of definitions, in place of those of the project and the user's home."""
    inherit: Sequence[str] = INHERITED
    """Extensions that sub-agents have too."""
    extend_inherit: Sequence[str] = ()
    """More of them, beside those that say so themselves."""
    models: Mapping[str, str] | None = None
    """What names of models in definitions stand for, such as ``haiku``."""
    depth: Annotated[int, Arg(minimum=0)] = 1
    """How deep sub-agents may call sub-agents."""
    main: str = ""
    """The one that sessions run as: with its prompt, tools, model and mode."""
    agents: Mapping[str, Mapping[str, Any]] | None = None
    """Sub-agents by name: `description`, `prompt`, and what front matter has beside them."""


class SubagentsHook:
    """Adds the tool ``Agent``, which hands a task to a sub-agent and gives back its last words.

    ``folders`` hold their definitions (Markdown with front matter: ``name``, ``description``,
    ``tools``, ``disallowedTools``, ``model``), the first of a name counts; they are read once, and
    ``agents`` (definitions, or tables by name) stand beside them, or in their place. Give no folder
    that its user does not trust. ``general-purpose`` is always there. Those of ``plugins`` are
    called ``plugin:name``, and by their name alone where only one can be meant. Those ``brought``
    along from other agents have their names there, where no other has.

    A sub-agent has a history of its own, its caller's gates (permissions among them, with the mode
    that holds at every call), its caller's tools as far as its definition names them, and those of
    its caller's extensions that ``inherit`` or ``extend_inherit`` names, or whose attribute
    ``inherited`` is true: it uses them once more. ``hooks`` makes the ones that are its own, from
    its definition: without it the prompt is the system message. ``models`` gives names in
    definitions (``haiku``) a model. Sub-agents of sub-agents end at ``depth``. ``main`` names the
    one that sessions themselves run as.
    """

    name = "subagents"
    order = 150
    options = SubagentsOptions

    def __init__(
        self,
        folders: Sequence[str | Path] = USER_FOLDERS,
        *,
        agents: Iterable[Definition] | Mapping[str, Mapping[str, Any]] | None = None,
        plugins: Iterable[Plugin] = (),
        brought: Iterable[Brought] = (),
        inherit: Sequence[str] = INHERITED,
        extend_inherit: Sequence[str] = (),
        hooks: Callable[[Definition], Iterable[Any]] = plainly,
        models: Mapping[str, LLM | str] | None = None,
        depth: int = 1,
        main: str = "",
    ) -> None:
        if any(isinstance(each, str) for each in (folders, inherit, extend_inherit)):
            raise ExtensionError("subagents: folders, inherit and extend_inherit are lists")
        self.folders = tuple(folders)
        self.agents: tuple[Definition, ...] = ()
        if isinstance(agents, Mapping):
            self.define_agents(cast("Mapping[str, Mapping[str, Any]]", agents))
        else:
            self.agents = tuple(agents or ())
        self.plugins = tuple(plugins)
        self.brought = [each for each in brought if each.kind == "agent"]
        self.inherit = (*inherit, *extend_inherit)
        self.hooks = hooks
        self.models = dict(models or {})
        self.depth = depth
        self.main = main

    @classmethod
    def options_from(cls, settings: ProjectSettings, own: Mapping[str, Any]) -> dict[str, Any]:
        """The options, with the folders of a trusted project, the strongest, and the plugins."""

        def prompted(definition: Definition) -> Iterable[Any]:
            return settings.prompted(definition.prompt) or plainly(definition)

        projects = [Path(settings.project)] if settings.trusted else []
        roots = dict.fromkeys([*projects, Path.home()])
        folders = [root / name for root in roots for name in FOLDERS]
        theirs = {"plugins": settings.plugins, "brought": settings.brought}
        return {"folders": folders, **theirs, "hooks": prompted, **own}

    def configure(self, **options: Any) -> None:
        """Take other options; definitions are read again where they come from elsewhere."""
        before = self.folders, self.plugins, self.brought
        kept = {} if options.get("agents") else {"agents": self.agents}
        vars(self).update({**vars(type(self)(**options)), **kept})
        if not kept or before != (self.folders, self.plugins, self.brought):
            vars(self).pop("definitions", None)

    def define_agents(
        self, agents: Mapping[str, Mapping[str, Any]], source: str = "settings"
    ) -> list[Definition]:
        """Define sub-agents by tables, as in Claude Code's ``--agents``; all that there are then.

        A table has ``description`` and ``prompt``, and whatever front matter has beside them.
        Raises `ExtensionError` for one that makes no sense.
        """
        made: dict[str, Definition] = {each.name: each for each in self.agents}
        for name, table in agents.items():
            try:
                made[name] = defined(name, table, source)
            except (ValueError, TypeError, AttributeError) as error:
                raise ExtensionError(f"the sub-agent {name!r} ({source}): {error}") from None
        self.agents = tuple(made.values())
        vars(self).pop("definitions", None)
        return list(made.values())

    def brought_by(self, plugin: Plugin) -> dict[str, list[str]]:
        """The sub-agents of a plugin, by their names."""
        agents = Definitions.of((), [plugin]).agents
        return {"agents": [name for name in agents if name != GENERAL_PURPOSE]}

    def offers_in(self, session: Session) -> dict[str, list[str]]:
        """The sub-agents that there are, by their names."""
        del session
        return {"agents": [*self.definitions.agents]}

    def init_agent(self, agent: Agent) -> None:
        """Add the tool."""
        agent.add_tool(AgentTool(self))

    @cached_property
    def definitions(self) -> Definitions:
        """The sub-agents by name, and what is wrong with the files."""
        folders = (Path(os.path.expanduser(folder)) for folder in self.folders)
        read = Definitions.of(folders, self.plugins)
        for each in self.brought:
            read.take(each)
        read.agents = {**read.agents, **{agent.name: agent for agent in self.agents}}
        return read

    async def on_session_start(self, ctx: SessionContext) -> None:
        """Say what is wrong with the files."""
        for problem in self.definitions.problems:
            await ctx.ui.notify(problem, severity="warning")
        if name := self.main or ctx.state.get("agent"):
            await self._become(ctx, name)

    async def _become(self, ctx: SessionContext, name: str) -> None:
        """Let a person's session be the agent of this name."""
        from crow.extensions.subagents.persona import become, find_agent

        definition = find_agent(name, self.definitions.agents)
        if isinstance(definition, str):
            await ctx.ui.notify(f"{definition}; nobody stands in", severity="warning")
        elif ctx.session.parent is None:
            await become(ctx, definition, self.models)

    def check_agent(self, name: str) -> None:
        """Raise `ExtensionError` for a name that no agent has."""
        from crow.extensions.subagents.persona import find_agent

        if isinstance(why := find_agent(name, self.definitions.agents), str):
            raise ExtensionError(why)

    def inherited(self, call: ToolContext) -> dict[str, Any]:
        """The caller's extensions that a sub-agent has as well, by name."""
        known = call.agent.extensions_of(call.session)
        own = [name for name, each in known.items() if _goes_along(each)]
        return {name: known[name] for name in (*self.inherit, *own) if name in known}


def _goes_along(extension: object) -> bool:
    """True for one that each sub-agent has; an extension such as this one has a method so named."""
    return implements(extension, Inherited) and extension.inherited is True


class AgentTool:
    """Hands a task to a sub-agent and waits for its result."""

    name = "Agent"
    kind: ToolKind = "think"

    def __init__(self, extension: SubagentsHook) -> None:
        self._extension = extension

    @property
    def description(self) -> str:
        """What the model is told: which sub-agents there are, where it has a choice."""
        agents = self._extension.definitions.agents
        listed = map(_listed, agents.values()) if self._has_choice else ()
        return "\n".join([DESCRIPTION, *listed])

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments' schema."""
        properties: dict[str, Any] = {
            "description": {"type": "string"},
            "prompt": {"type": "string"},
        }
        if self._has_choice:
            properties["subagent_type"] = {"type": "string"}
        if self._extension.models:
            names = list(self._extension.models)
            told = "Another model than the sub-agent's own; only where the user wants that"
            properties["model"] = {"type": "string", "enum": names, "description": told}
        required = ["description", "prompt"]
        return {"type": "object", "properties": properties, "required": required}

    @property
    def _has_choice(self) -> bool:
        return any(each is not BUILT_IN for each in self._extension.definitions.agents.values())

    def title(self, args: dict[str, Any]) -> str:
        """The task in a few words, and who does it where that is not anybody."""
        name = self._whole(args)
        task: str = args["description"]
        return task if name == GENERAL_PURPOSE else f"{task} ({name})"

    def prepare(self, args: dict[str, Any], cwd: str) -> dict[str, Any]:
        """Name the sub-agent by its whole name, also where the model has not: rules speak of it."""
        return {**args, "subagent_type": self._whole(args)}

    def _whole(self, args: dict[str, Any]) -> str:
        from crow.project import matching_names

        wanted: str = args.get("subagent_type") or GENERAL_PURPOSE
        known = matching_names(wanted, self._extension.definitions.agents)
        return known[0] if len(known) == 1 else wanted

    def _chosen(self, args: dict[str, Any], call: ToolContext) -> Definition | ToolResult:
        """The sub-agent that is meant, or why none can be given the task."""
        from crow.extensions.subagents.work import level
        from crow.project import matching_names

        agents, name = self._extension.definitions.agents, args["subagent_type"]
        if name not in agents:
            known = ", ".join(matching_names(name, agents) or agents)
            return ToolResult.failure(f"there is no sub-agent {name!r}; there are: {known}")
        if level(call.session) >= self._extension.depth:
            return ToolResult.failure("a sub-agent cannot call others here: do it yourself")
        if not args["prompt"].strip():
            return ToolResult.failure("without a prompt the sub-agent has nothing to do")
        return agents[name]

    async def preview(self, args: dict[str, Any], ctx: ToolEnvironment) -> ToolResult | None:
        """Nothing but why it cannot be done."""
        chosen = self._chosen(args, cast("ToolContext", ctx))
        return chosen if isinstance(chosen, ToolResult) else None

    async def run(self, args: dict[str, Any], ctx: ToolEnvironment) -> ToolResult:
        """Let the sub-agent do it."""
        from crow.extensions.subagents.background import is_left, leave
        from crow.extensions.subagents.memory import remembering
        from crow.extensions.subagents.relay import Relay
        from crow.extensions.subagents.skills_and_servers import prepared, servers_of
        from crow.extensions.subagents.work import Task, fields_of, hire, model_of, work

        call, extension = cast("ToolContext", ctx), self._extension
        chosen = self._chosen(args, call)
        if isinstance(chosen, ToolResult):
            return chosen
        definition, memory = remembering(await prepared(call, chosen), call.session.root.cwd)
        wanted = args.get("model") or ""
        task = Task(args["prompt"], args["description"], wanted, definition.isolated)
        wish = task.model if task.model in extension.models else definition.model
        llm, model = model_of(wish, extension.models)
        fields = fields_of(call, definition, task, model)
        turn = TURN.setdefault(call, asyncio.Lock())
        inherited = extension.inherited(call)
        if definition.front_matter.get("omitClaudeMd"):
            inherited.pop("instructions", None)
        child = hire(call, definition, llm, inherited, extension.depth)
        own = [memory, await servers_of(call, definition)]
        for thing in [*extension.hooks(definition), *filter(None, own)]:
            child.use(thing)
        relay = Relay(call, turn)
        working = work(call, relay, task, child, fields)
        if is_left(definition, args, call):
            return leave(call, definition, relay, task, working)
        return await working


def _listed(definition: Definition) -> str:
    about = " ".join(definition.description.split())
    about = about if len(about) <= SHOWN else f"{about[: SHOWN - 1].rstrip()}…"
    if definition.tools is None:
        return f"- {definition.name}: {about}"
    return f"- {definition.name}: {about} (tools: {', '.join(sorted(definition.tools)) or 'none'})"
