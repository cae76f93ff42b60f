"""What a client may have beside what a `Client` must."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class OpeningClient(Protocol):
    """A client that learns of a session after it was opened."""

    async def ready(self) -> None:
        """Wait until it knows the session, and questions can be asked."""
        ...


@runtime_checkable
class OneShotClient(Protocol):
    """A client that says whether a run's end is the end of it all, as that of `crow run` is.

    Then servers are waited for, and sub-agents too: nobody is there for what comes later.
    """

    @property
    def waits_for_servers(self) -> bool: ...


@runtime_checkable
class SubagentClient(Protocol):
    """A client that may show sub-agents in places of their own."""

    @property
    def shows_subagents(self) -> bool:
        """True where it does: it is told all that one does, under the sub-agent's own id."""
        ...


@runtime_checkable
class BrowserClient(Protocol):
    """A client on a terminal, whose user pastes where a page has led them."""

    @property
    def opens_pages(self) -> bool:
        """True where pages can be opened on its machine."""
        ...


@runtime_checkable
class TerminalClient(Protocol):
    """A client that is a terminal."""

    def obey(self, sequence: str) -> None:
        """Send it a control sequence."""
        ...


@runtime_checkable
class HookClient(Protocol):
    """A client that follows the hooks of settings files."""

    def follow_hook(self, session_id: str, subtype: str, fields: Mapping[str, Any]) -> None:
        """See one begin, go on or end: ``hook_started``, ``hook_progress``, ``hook_response``."""
        ...


@runtime_checkable
class ServerClient(Protocol):
    """A client that names MCP servers."""

    @property
    def mcp_servers(self) -> Any:
        """Their descriptions, as `CLIENT_SERVERS` has them."""
        ...


def waits_for_servers(client: object) -> bool:
    """True where the end of a run is the end of all that a client is there for."""
    from crow.core.support.validation import implements

    return implements(client, OneShotClient) and client.waits_for_servers
