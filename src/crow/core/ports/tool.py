"""The port of a tool or a command, and what one has at hand while it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

from crow.core.events import Event
from crow.core.ports.client import Client
from crow.core.tools import Call, Location, ToolKind, ToolResult


class Launch(Protocol):
    """The way in which a program is started, in the place of the one that was meant."""

    @property
    def argv(self) -> Sequence[str]:
        """What is started."""
        ...

    @property
    def env(self) -> Mapping[str, str]:
        """All of its environment."""
        ...

    @property
    def pass_fds(self) -> Sequence[int]:
        """The descriptors that it inherits."""
        ...

    @property
    def restrict(self) -> Callable[[], object] | None:
        """What the thread that starts it calls before, so that it begins with less."""
        ...

    @property
    def started(self) -> Callable[[int], object] | None:
        """What is called with the number of its process, once it runs."""
        ...

    @property
    def ask(self) -> Callable[[int], bool] | None:
        """What sends a signal (its number) to the command where what is started stands for it.

        False where that cannot be, and what is started gets it. A launch need not have this.
        """
        ...

    @property
    def ended(self) -> Callable[[int | None], object] | None:
        """What is called with the exit status when nobody waits for the program any more.

        None where it still runs, minus the signal where one has ended it. A launch need not have
        this.
        """
        ...


class Launcher(Protocol):
    """Says how programs are started for a model, so that they can be confined."""

    def launch(
        self, argv: Sequence[str], cwd: str, env: Mapping[str, str]
    ) -> AbstractContextManager[Launch]:
        """How a program is started; the context is left when it and its output have ended.

        Raises ``OSError`` where it cannot be.
        """
        ...


class ToolEnvironment(Protocol):
    """The surroundings of a running tool; a `ToolContext` is one.

    ``cwd`` is the session's directory (absolute), ``state`` is JSON kept with the session,
    ``cache`` is memory of the session that is not stored.
    """

    @property
    def call(self) -> Call: ...
    @property
    def cwd(self) -> str: ...
    @property
    def roots(self) -> tuple[str, ...]:
        """``cwd`` and the session's additional directories, absolute."""
        ...

    @property
    def session_id(self) -> str: ...
    @property
    def state(self) -> dict[str, Any]: ...
    @property
    def cache(self) -> dict[str, Any]: ...
    @property
    def client(self) -> Client: ...
    @property
    def environment(self) -> Mapping[str, str]:
        """What a program that the tool starts finds: this process's, without keys of models."""
        ...

    @property
    def secrets(self) -> Sequence[str]:
        """What no output may show, such as keys of models; results are without it in any case."""
        ...

    @property
    def launcher(self) -> Launcher | None:
        """Who says how programs of this call are started; without one as they are."""
        ...

    async def progress(self, text: str, *, terminal: str | None = None) -> None:
        """Show output of the call while it runs."""
        ...

    async def emit(self, event: Event) -> None:
        """Tell whoever watches."""
        ...


class Tool(Protocol):
    """Something a model can call. ``parameters`` is JSON Schema of an object.

    It may have more: the core asks for `TitledTool`, `LocatedTool`, `PreparingTool`, `CheckedTool`
    and `PreviewTool`, extensions for the protocols of `crow.ports.tools`.
    """

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> dict[str, Any]: ...
    @property
    def kind(self) -> ToolKind: ...
    async def run(self, args: dict[str, Any], ctx: ToolEnvironment) -> ToolResult | str:
        """Do it. Errors meant for the model are results; a raised exception becomes one."""
        ...


@runtime_checkable
class TitledTool(Protocol):
    """A tool that says a call in a line."""

    def title(self, args: dict[str, Any]) -> str:
        """What a person reads; the tool's name where it is empty."""
        ...


@runtime_checkable
class LocatedTool(Protocol):
    """A tool whose calls are about files."""

    def locations(self, args: dict[str, Any], cwd: str) -> Iterable[Location]:
        """The files of one, absolute, for editors that go along."""
        ...


@runtime_checkable
class PreparingTool(Protocol):
    """A tool that has its arguments put right before anybody looks at them."""

    def prepare(self, args: dict[str, Any], cwd: str) -> dict[str, Any] | None:
        """The arguments as hooks are to see them, paths absolute; None leaves them as they are."""
        ...


@runtime_checkable
class CheckedTool(Protocol):
    """A tool that checks arguments itself; else the core checks required keys and plain types."""

    def check(self, args: dict[str, Any]) -> str | None:
        """What is wrong with them."""
        ...


@runtime_checkable
class PreviewTool(Protocol):
    """A tool that can tell what a call would do."""

    async def preview(self, args: dict[str, Any], ctx: ToolEnvironment) -> ToolResult | None:
        """That, as ``diffs``, or the failure that the call cannot but end in; changes nothing.

        It is called before the user is asked about the call.
        """
        ...


@runtime_checkable
class HintedTool(Protocol):
    """A tool of whose use the system prompt says something."""

    @property
    def hint(self) -> str:
        """A line of it; empty for none."""
        ...


@runtime_checkable
class DeferrableTool(Protocol):
    """A tool whose definition may wait until the model looks for it."""

    @property
    def defer_loading(self) -> bool: ...


@runtime_checkable
class AskingTool(Protocol):
    """A tool whose work is to ask its user: nobody is asked before whether it may."""

    @property
    def asks_user(self) -> bool: ...


@runtime_checkable
class InteractiveTool(Protocol):
    """A tool that wants its user asked each time, whatever rules allow."""

    @property
    def interactive(self) -> bool: ...


class SlashCommand(Protocol):
    """A slash command, as a session's own ones are kept; a `Command` is one."""

    @property
    def name(self) -> str:
        """What is typed behind the slash."""
        ...

    @property
    def description(self) -> str:
        """What it does, in a line."""
        ...

    @property
    def hint(self) -> str:
        """What can be typed behind the name."""
        ...

    @property
    def run(self) -> Callable[[Any], Any]:
        """What is called with the `CommandContext`."""
        ...
