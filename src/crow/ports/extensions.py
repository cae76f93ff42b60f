"""What an extension may say of itself, to whoever puts an agent together, and do for others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from crow.core.agent import Agent, Mode
    from crow.core.hooks.context import Context
    from crow.core.hooks.contexts import SessionContext
    from crow.core.messages import Content
    from crow.core.session import Session
    from crow.project.plugins import Plugin
    from crow.project.settings import ProjectSettings


@runtime_checkable
class Ordered(Protocol):
    """An extension, or its class, with a place among those that come with Crow."""

    @property
    def order(self) -> int:
        """The lowest hangs first; above 1000 behind those of other packages and files, too."""
        ...


@runtime_checkable
class OptionsReader(Protocol):
    """A class of extensions that takes more from the settings than its own table."""

    def options_from(self, settings: ProjectSettings, own: Mapping[str, Any]) -> Mapping[str, Any]:
        """The options to make one with; ``own`` is its table. A class method."""
        ...


@runtime_checkable
class ModeProvider(Protocol):
    """An extension that knows modes."""

    @property
    def modes(self) -> Iterable[Mode]:
        """Those that a session may begin in; the user can choose from those that have a name."""
        ...


@runtime_checkable
class WarningProvider(Protocol):
    """An extension that looks at its options."""

    @property
    def warnings(self) -> Iterable[str]:
        """What is wrong with them, a line each: people hear of it before the first prompt."""
        ...


@runtime_checkable
class Configurable(Protocol):
    """An extension that takes other options while it is in use."""

    def configure(self, **options: Any) -> None:
        """Take them. Raises `CrowError`, ``TypeError`` or ``ValueError`` where they do not fit."""
        ...


@runtime_checkable
class OptionsHolder(Protocol):
    """An extension whose attributes are its options, and nothing that was made of them."""

    @property
    def is_its_options(self) -> bool:
        """True where others can take their place while it is in use."""
        ...


@runtime_checkable
class Successor(Protocol):
    """An extension that can hang in the place of one that other settings have made."""

    async def catch_up(self, ctx: SessionContext, before: Any) -> None:
        """Make up for what it has missed of a session; ``before`` is what hung there until then."""
        ...


@runtime_checkable
class SubagentPrompter(Protocol):
    """An extension that can put a sub-agent's prompt before its requests."""

    def for_sub_agent(self, prompt: str) -> object:
        """An extension that does so."""
        ...


@runtime_checkable
class Inherited(Protocol):
    """An extension that sub-agents may have as well."""

    @property
    def inherited(self) -> bool:
        """True where each has it whose caller has it."""
        ...


@runtime_checkable
class PluginReader(Protocol):
    """An extension that takes something from plugins."""

    def brought_by(self, plugin: Plugin) -> Mapping[str, Collection[str]]:
        """What it takes from one: the sort of thing, and its names, for `crow ext`."""
        ...


@runtime_checkable
class CommandChecker(Protocol):
    """An extension that knows what a command looks like."""

    def no_such_command(self, prompt: Content, commands: Iterable[str]) -> str:
        """What a person is told where a prompt means a command and names none; else empty."""
        ...


@runtime_checkable
class ServerBringer(Protocol):
    """An extension that brings MCP servers along."""

    @property
    def mcp_servers(self) -> Mapping[str, Any] | None:
        """Their descriptions by name, as in ``.mcp.json``."""
        ...


@runtime_checkable
class ToolBringer(Protocol):
    """An extension that may bring tools in the middle of a session."""

    def brings_tools(self, session: Session) -> bool:
        """True where it may: the model gets a way to call what is announced at the tail."""
        ...


# what extensions do for each other, which do not know each other


@runtime_checkable
class RuleMatcher(Protocol):
    """An extension that reads permission rules."""

    def rule_applies(self, rule: str, tool: str, args: Mapping[str, Any], cwd: str) -> bool:
        """True where a rule speaks of a call, for the ``if`` of hooks in settings files."""
        ...


@runtime_checkable
class HandlerProvider(Protocol):
    """An extension that runs the handlers of settings files."""

    @property
    def entries(self) -> Sequence[Any]:
        """All of them, in their order."""
        ...

    def chosen(self, event: str, about: str) -> Sequence[Any]:
        """Those that run at an event; ``about`` is what matchers look at."""
        ...


@runtime_checkable
class WorktreeProvider(Protocol):
    """An extension that makes git worktrees."""

    async def enter_worktree(self, agent: Agent, session: Session, name: str = "") -> str:
        """Let a session work in one; says so. Raises `HookError` where there can be none."""
        ...

    async def leave_unused(self, agent: Agent, session: Session) -> bool:
        """Leave it where nothing was changed in it; True where it is gone."""
        ...


class RewindStep(Protocol):
    """What is to happen to a path: ``leave`` it, for a ``reason``, or something else."""

    @property
    def path(self) -> str: ...
    @property
    def action(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def is_folder(self) -> bool: ...


class RewindPlan(Protocol):
    """What it takes to have files as they were. ``notes`` are what cannot be known."""

    @property
    def steps(self) -> Sequence[RewindStep]: ...
    @property
    def notes(self) -> Sequence[str]: ...
    @property
    def foreign(self) -> Sequence[RewindStep]:
        """What somebody else changed, and is left alone unless the user says otherwise."""
        ...

    def lines(self, cwd: str) -> list[str]:
        """It as a person reads it, a path a line."""
        ...


class RewindOutcome(Protocol):
    """What came of a plan: ``failed`` are paths with the reason why they are as they were."""

    @property
    def done(self) -> Sequence[RewindStep]: ...
    @property
    def failed(self) -> Sequence[tuple[str, str]]: ...
    @property
    def since(self) -> float:
        """The time of the rewind: going back to it takes it back."""
        ...


@runtime_checkable
class FileKeeper(Protocol):
    """An extension that can bring files back as they were."""

    async def plan_rewind(self, session: Session, since: float) -> RewindPlan:
        """What it takes to go back to a time, in seconds of the epoch. Raises ``OSError``."""
        ...

    async def carry_out_rewind(
        self, session: Session, plan: Any, *, overwrite: bool = False
    ) -> RewindOutcome:
        """Do what a plan says; with ``overwrite`` also where somebody else changed a file since."""
        ...

    async def rewinds(self, session: Session) -> Sequence[float]:
        """When files were brought back in a session, oldest first."""
        ...


@runtime_checkable
class SkillReader(Protocol):
    """An extension that knows skills."""

    async def skill_text(self, ctx: Context, name: str) -> str | None:
        """The text of one; None where there is none of that name."""
        ...


@runtime_checkable
class ServerConnector(Protocol):
    """An extension that can connect to MCP servers for one session alone."""

    def own_servers(
        self, described: Mapping[str, Any], source: str, may_have: Callable[[str], bool]
    ) -> object:
        """An extension that does so; ``may_have`` says which of their tools there are."""
        ...
