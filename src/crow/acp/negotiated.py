"""The methods of the version of the protocol that a client and an agent have agreed on."""

from __future__ import annotations

from typing import Any

from crow.acp.agent import AcpAgent
from crow.acp.handshake import DRAFT_VERSION
from crow.acp.routes import Routes, routes


class Negotiated:
    """The methods of the version that the client speaks, which its first message settles."""

    def __init__(self, acp_agent: AcpAgent) -> None:
        self._acp_agent = acp_agent
        self._routes: Routes | None = None

    async def __call__(self, method: str, params: Any, is_notification: bool) -> Any:
        """Answer a request, or take a notification."""
        if self._routes is None:
            self._routes = routes_of(self._acp_agent)
        return await self._routes(method, params, is_notification)


def routes_of(acp_agent: AcpAgent) -> Routes:
    """The methods of the version that the client speaks."""
    if acp_agent.dialect.version != DRAFT_VERSION:
        return routes(acp_agent)
    from crow.acp.v2.routes import routes as routes_of_draft

    return routes_of_draft(acp_agent)
