"""What an extension may offer or tell to faces: editors, the screen of ``crow``, programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from crow.core.session import Session
    from crow.core.tools import Call, ToolResult


# editors, and other faces with choices


@runtime_checkable
class ChoiceProvider(Protocol):
    """An extension with something to choose in a session."""

    @property
    def choices(self) -> Mapping[str, tuple[str, Mapping[str, str]]]:
        """By the name of an option of the session: a title, and what each value is about."""
        ...


@runtime_checkable
class SwitchProvider(Protocol):
    """An extension with something to switch in a session."""

    @property
    def switches(self) -> Mapping[str, tuple[str, str]]:
        """By the name of an option of the session a title, and what it is about.

        What is not among the options is on.
        """
        ...


@runtime_checkable
class McpConnector(Protocol):
    """An extension that connects to MCP servers."""

    @property
    def serves_mcp(self) -> bool:
        """True where it connects to those that an editor names."""
        ...


@runtime_checkable
class ClientPrompter(Protocol):
    """An extension that can put a client's own system prompt into requests."""

    @property
    def takes_prompts(self) -> bool:
        """True where it does (`CLIENT_PROMPT`)."""
        ...


@runtime_checkable
class MentionProvider(Protocol):
    """An extension with something that a prompt can mention."""

    def mentions(self, session: Session) -> Iterable[str]:
        """What can stand behind ``@``."""
        ...


# the screen of ``crow``: one that fails is named, and left alone


@runtime_checkable
class StatusProvider(Protocol):
    """An extension with a text for the line at the bottom."""

    def terminal_status(self, session: Session) -> str | None:
        """The text; none where it is empty."""
        ...


@runtime_checkable
class WidgetProvider(Protocol):
    """An extension with lines above the editor."""

    def terminal_widget(self, session: Session) -> str | Sequence[str] | None:
        """The lines."""
        ...


@runtime_checkable
class CardProvider(Protocol):
    """An extension with lines for the cards of calls."""

    def terminal_card(self, call: Call, result: ToolResult) -> str | Sequence[str] | None:
        """The lines for one; none where others may have some."""
        ...


@runtime_checkable
class CompletingCommand(Protocol):
    """A slash command that knows what can be typed behind its name."""

    @property
    def complete(self) -> Callable[[Session, str], Iterable[str]] | None:
        """Called with what is typed so far: what that can become."""
        ...


@runtime_checkable
class KeyProvider(Protocol):
    """An extension with keys of its own."""

    @property
    def terminal_keys(self) -> Mapping[str, Callable[[Session], Any]]:
        """What is called, or awaited, by the name of a key such as ``ctrl-g``."""
        ...


# programs that drive an agent: `crow run`, and ``stream-json``


@runtime_checkable
class SessionInventory(Protocol):
    """An extension that says what there is in a session by it."""

    def offers_in(self, session: Session) -> Mapping[str, Iterable[Any]]:
        """Things by their kind: ``agents``, ``skills``, ``plugins``, ``mcp_servers``."""
        ...


@runtime_checkable
class LateArrival(Protocol):
    """An extension with something that is still on its way to a session."""

    async def arrive(self, session: Session) -> None:
        """Wait for it."""
        ...


@runtime_checkable
class BackgroundWorker(Protocol):
    """An extension that has work go on beside a session."""

    async def settle(self, session: Session) -> Sequence[str]:
        """Wait for its end; the names of what took too long and was ended."""
        ...


@runtime_checkable
class ToolFilter(Protocol):
    """An extension that keeps tools from a model."""

    def hides(self, name: str, tool: object) -> bool:
        """True for one that it keeps."""
        ...


@runtime_checkable
class StyleProvider(Protocol):
    """An extension that knows ways in which an agent talks."""

    @property
    def styles(self) -> Iterable[str]:
        """Their names."""
        ...


class NamedAgent(Protocol):
    """A sub-agent that can be asked for."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...


@runtime_checkable
class AgentDefiner(Protocol):
    """An extension that takes definitions of sub-agents."""

    def define_agents(
        self, agents: Mapping[str, Mapping[str, Any]], source: str
    ) -> Sequence[NamedAgent]:
        """Define some by tables; all that there are then. Raises `ExtensionError`."""
        ...


class OpenSession(Protocol):
    """A session that some process has open.

    ``state`` is ``waits``, ``works`` or ``idle``; ``asks`` is what its user is asked, ``since`` are
    seconds of the epoch.
    """

    @property
    def id(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def since(self) -> float: ...
    @property
    def asks(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def cwd(self) -> str: ...
    @property
    def program(self) -> str: ...
    @property
    def pid(self) -> int: ...


@runtime_checkable
class PresenceProvider(Protocol):
    """An extension that knows what is open on this machine."""

    def present(self) -> Sequence[OpenSession]:
        """The sessions: first those that wait for their user, then those at work."""
        ...
