"""From a message of the client's to the method that answers it, in the version that it speaks."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING

from crow.acp.agent import AcpAgent
from crow.acp.initialize import DRAFT_VERSION
from crow.acp.jsonrpc import Message, Sent

if TYPE_CHECKING:
    from crow.acp.routes import Routes

ROUTES = {1: "crow.acp.routes", DRAFT_VERSION: "crow.acp.v2.routes"}


class Dispatcher:
    """The methods of an agent for one client; a `crow.acp.connection.Methods`."""

    def __init__(self, acp_agent: AcpAgent) -> None:
        self._acp_agent = acp_agent

    async def answer(self, method: str, params: Message) -> Sent | None:
        """The result of a request. Raises `Refusal`."""
        try:
            return await self._routes.answer(method, params)
        finally:
            self._acp_agent.auth.tell_change()

    async def notice(self, method: str, params: Message) -> None:
        """Take a notification."""
        await self._routes.notice(method, params)

    @cached_property
    def _routes(self) -> Routes:
        """The table of the client's version, which its first message settles."""
        return import_module(ROUTES[self._acp_agent.version.number]).routes(self._acp_agent)
