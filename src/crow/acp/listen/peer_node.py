"""A peer node as a client: it speaks for a client of its own, and may ask for a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crow.acp.listen.node import LET_GO

if TYPE_CHECKING:
    from crow.acp.connection import Methods
    from crow.acp.jsonrpc import Message, Sent
    from crow.acp.listen.session_pool import SessionPool


class PeerNode:
    """The methods that another node can ask; a `crow.acp.connection.Methods`.

    Nothing of it is passed on to a third one.
    """

    def __init__(self, here: Methods, pool: SessionPool) -> None:
        self._here = here
        self._pool = pool

    async def answer(self, method: str, params: Message) -> Sent | None:
        """The result of a request. Raises `Refusal`."""
        if method != LET_GO:
            return await self._here.answer(method, params)
        again = params.get("again") is True
        return {"isFree": await self._pool.let_go(str(params.get("sessionId")), again=again)}

    async def notice(self, method: str, params: Message) -> None:
        """Take a notification."""
        await self._here.notice(method, params)
