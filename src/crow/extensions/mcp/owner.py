"""Whoever a connection to a server belongs to, as that sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from crow.extensions.mcp.auth.credential_store import CredentialStore
    from crow.extensions.mcp.auth.sign_in import SignIn
    from crow.extensions.mcp.description import Description
    from crow.extensions.mcp.limits import Limits
    from crow.extensions.mcp.negotiation import ConnectionMode
    from crow.keys import Launcher
    from crow.process import ProcessReaper


class Owner(Protocol):
    """Whoever a connection belongs to: asked and told by it."""

    description: Description
    limits: Limits
    reaper: ProcessReaper
    vault: CredentialStore

    @property
    def cwd(self) -> str:
        """Where a process runs."""
        ...

    @property
    def launcher(self) -> Launcher | None:
        """Who confines a process."""
        ...

    @property
    def roots(self) -> Sequence[str]:
        """The folders that are worked in."""
        ...

    @property
    def way(self) -> ConnectionMode | None:
        """How it was reached the last time."""
        ...

    def remember(self, way: ConnectionMode | None) -> None:
        """It was reached in this way."""
        ...

    def drop(self, tool: str, reason: str) -> None:
        """A tool was left out."""
        ...

    def changed(self, what: str) -> None:
        """The list of ``tools``, ``prompts`` or ``resources`` is another one now."""
        ...

    async def elicit(self, params: dict[str, Any]) -> tuple[str, dict[str, Any] | None]:
        """Ask the user: ``accept``, ``decline`` or ``cancel``, and the content."""
        ...

    async def completed(self, elicitation_id: str) -> None:
        """The user is done with a page."""
        ...

    async def sample(self, wish: dict[str, Any]) -> dict[str, Any]:
        """Ask the model, if the user wants that. Raises `Refused`."""
        ...

    def log(self, level: str, text: str) -> None:
        """Keep a line that the server logs."""
        ...

    def person(self) -> SignIn | None:
        """Who can sign in now."""
        ...

    def learn(self, secret: str) -> None:
        """Know something that nobody may see."""
        ...
