"""The sign-in of a person with a browser: what a provider needs of it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from crow.extensions.mcp.failure import Refused

NEEDED = "it needs a sign-in"


class SignInNeeded(Refused):
    """Nobody has signed in, or not for this, and nobody is asked now."""


class Redirected(NamedTuple):
    """The address where the browser was sent in the end: its parameters."""

    code: str = ""
    state: str | None = None
    iss: str | None = None
    error: str = ""
    description: str = ""


class SignIn(Protocol):
    """Somebody in front of a browser."""

    async def open(self, port: int, host: str, path: str) -> str:
        """Listen on a port, any with 0; the address that the browser is to be sent to.

        Raises ``OSError`` where that port is somebody else's.
        """
        ...

    async def visit(self, url: str) -> None:
        """Show a page."""
        ...

    async def redirected(self) -> Redirected:
        """Wait for the browser. Raises ``OSError`` where nobody comes, and `SignInNeeded`."""
        ...

    async def close(self) -> None:
        """Listen no more."""
        ...


def needed(name: str) -> str:
    """What to do, in a line."""
    return f"{NEEDED}: crow mcp login {name}"
