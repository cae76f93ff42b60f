"""What the client lends to tools: requests that no person has to answer, and so wait only so long.

A client that falls silent is given little time from then on, until it answers again; the user is
told once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from crow.acp.connection import Connection
from crow.acp.jsonrpc import Message

Tell = Callable[[str], Awaitable[None]]
RELUCTANT = 1.0
"""Seconds for a client that has left a request of this kind unanswered."""
INSTEAD = {
    "fs/read_text_file": "what is on the disk counts until it does",
    "fs/write_text_file": "files without unsaved changes are written to the disk until it does",
    "terminal/create": "commands run outside of its terminals until it does",
}
"""What the user is told of the methods that something else stands in for."""


class Lender:
    """Asks the client in the name of one session; ``tell`` says something to its user."""

    def __init__(self, connection: Connection, session_id: str, tell: Tell) -> None:
        self._connection = connection
        self._session_id = session_id
        self._tell = tell
        self._silent: set[str] = set()

    async def request(self, method: str, params: Message, patience: float | None) -> Message:
        """Ask, and wait ``patience`` seconds or as long as the client said. Raises ``OSError``."""
        kind = method.partition("/")[0]
        try:
            params = {"sessionId": self._session_id, **params}
            answer = await self._connection.request(method, params, self._limit(kind, patience))
        except TimeoutError as error:
            if kind not in self._silent and method in INSTEAD:
                await self._tell(f"{error}: {INSTEAD[method]}")
            self._silent.add(kind)
            raise
        self._silent.discard(kind)
        return answer

    def _limit(self, kind: str, patience: float | None) -> float | None:
        if patience is None:
            return None
        patience = self._connection.capabilities.patience or patience
        return min(patience, RELUCTANT) if kind in self._silent else patience
