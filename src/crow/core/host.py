"""The host of extensions: what they hang on.

The arrow from here to the types of the agent, and of what hangs on one, is the only one that runs
back: whoever is below them imports these types from here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from crow.core.errors import ExtensionError
from crow.core.ports.tool import SlashCommand, Tool

if TYPE_CHECKING:
    from crow.core.agent import Agent as Agent  # noqa: PLC0414
    from crow.core.agent import HookRegistry as HookRegistry  # noqa: PLC0414
    from crow.core.agent import Mode, PromptSection
    from crow.core.agent import RunContext as RunContext  # noqa: PLC0414
    from crow.core.agent import Scope as Scope  # noqa: PLC0414
    from crow.core.agent import Session as Session  # noqa: PLC0414
    from crow.core.agent import Store as Store  # noqa: PLC0414

T = TypeVar("T")
TYPED = re.compile(r"[^\s/]+").fullmatch
"""The name of a command; what is typed is cut at blanks."""


class Host:
    """A host of extensions: an agent, or one of its sessions, where they count alone."""

    __slots__ = ()

    scope: Scope

    @overload
    def use(
        self,
        thing: type[T],
        *,
        name: str | None = None,
        trusted: bool = True,
        source: str = "code",
        **options: Any,
    ) -> T: ...
    @overload
    def use(
        self,
        thing: T,
        *,
        name: str | None = None,
        trusted: bool = True,
        source: str = "code",
    ) -> T: ...
    def use(
        self,
        thing: Any,
        *,
        name: str | None = None,
        trusted: bool = True,
        source: str = "code",
        **options: Any,
    ) -> Any:
        """Hang an extension here; returns it.

        It is an object, a class (made with ``options``), a module or a function. Calls its
        ``init_agent(agent)`` if it has one, on a session its ``init_session(session)``, then
        registers its methods that are named like events. What fails half-way leaves nothing behind.
        Raises `ExtensionError` or `HookError`.

        On a session it stands in the place of the agent's extension of that name; a ``lifespan`` is
        called with the session, entered before the next prompt is answered and left at its end.
        """
        return self.scope.use(thing, name=name, trusted=trusted, source=source, **options)

    def remove(self, name: str) -> None:
        """Take an extension away with all that it added. Raises `ExtensionError` for no such one.

        What its ``lifespan`` holds is released at the end, or now by ``await agent.stop(name)``.
        """
        self.scope.remove(name)

    def add_tool(self, tool: Tool, *, replace: bool = False) -> Callable[[], None]:
        """Let the model call a tool; returns the disposer."""
        if not hasattr(tool, "parameters"):
            raise ExtensionError(f"{tool!r} is no tool: decorate the function with @tool")
        scope = self.scope
        return scope.tools.add(tool.name, tool, scope.hooks.whose(), replace=replace)

    def add_command(self, command: SlashCommand, *, replace: bool = False) -> Callable[[], None]:
        """Offer a slash command; returns the disposer. Its name is one word, as ``git:review``."""
        if not callable(getattr(command, "run", None)):
            raise ExtensionError(f"{command!r} is no command: it has no 'run'")
        if not isinstance(cast("object", command.name), str) or not TYPED(command.name):
            raise ExtensionError(_untypable(command.name))
        scope = self.scope
        return scope.commands.add(command.name, command, scope.hooks.whose(), replace=replace)

    def add_mode(self, mode: Mode, *, replace: bool = False) -> Callable[[], None]:
        """Offer a mode; returns the disposer."""
        if not hasattr(mode, "id"):
            raise ExtensionError(f"{mode!r} is no mode: Mode(id, name, description) is one")
        scope = self.scope
        return scope.modes.add(mode.id, mode, scope.hooks.whose(), replace=replace)

    def add_section(self, section: PromptSection, *, replace: bool = False) -> Callable[[], None]:
        """Add a part to the system prompt; returns the disposer."""
        if not hasattr(section, "text"):
            raise ExtensionError(f"{section!r} is no section: PromptSection(name, text) is one")
        scope = self.scope
        return scope.sections.add(section.name, section, scope.hooks.whose(), replace=replace)


def _untypable(name: object) -> str:
    """What is said of a name that no prompt can begin with: a prompt is cut at blanks.

    Clients take a slash for the end of one, or of what they know of it.
    """
    words = name.replace("/", " ").split() if isinstance(name, str) else []
    better = repr("-".join(words)) if words else "a name such as 'review' or 'git:review'"
    return f"{name!r} is no name of a command, which is one word without a slash: {better}"
