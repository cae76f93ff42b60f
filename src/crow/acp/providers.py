"""Providers of models, as a client lists, routes and disables them (a draft of the protocol)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from crow.acp.errors import invalid, unknown_method
from crow.acp.jsonrpc import Message
from crow.core.agent import Agent
from crow.core.support.validation import implements
from crow.ports.models import RoutedModels

if TYPE_CHECKING:
    import crow.acp.outgoing as v1


class Providers:
    """Providers as a client routes them, for as long as the process lives.

    Requests that are being answered end where they began, the next ones go where the client wants.
    Methods raise `Refusal`.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    async def list(self, params: Message) -> v1.ListProvidersResponse:
        """Every provider with its place; headers are told to nobody."""
        routes = self._routes()

        def look() -> list[
            v1.ProviderInfo
        ]:  # clouds say where they are by libraries that take a second
            return [self._info(routes, each) for each in routes.providers]

        return {"providers": await asyncio.to_thread(look)}

    async def set(self, params: Message) -> v1.SetProviderResponse:
        """Ask a provider elsewhere, with these headers and no key of the user's."""
        routes = self._routes()
        try:
            routes.set(
                params["providerId"],
                params["apiType"],
                params["baseUrl"],
                params.get("headers") or {},
            )
        except ValueError as error:
            raise invalid(str(error)) from error
        self._agent.known_secrets |= routes.secrets
        return self._renewed()

    async def disable(self, params: Message) -> v1.DisableProviderResponse:
        """Ask a provider no more."""
        try:
            self._routes().disable(params["providerId"])
        except ValueError as error:
            raise invalid(str(error)) from error
        return self._renewed()

    def _routes(self) -> Any:
        llm = self._agent.llm
        if not implements(llm, RoutedModels) or llm.routes is None:
            raise unknown_method(details="this agent's model is no provider's that could be routed")
        return llm.routes()

    def _renewed(self) -> v1.Extensible:
        llm = self._agent.llm
        if implements(llm, RoutedModels):
            llm.renew()
        return {}

    def _info(self, routes: Any, provider: str) -> v1.ProviderInfo:
        current = routes.current(provider)
        return {
            "providerId": provider,
            "supported": routes.api_types,
            "required": provider in routes.required,
            "current": current and {"apiType": current[0], "baseUrl": current[1]},
        }
