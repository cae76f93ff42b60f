"""From the method of a message to the agent: parameters in the schema's shape, errors as errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import ModuleType
from typing import Any, TypedDict

import crow.acp.schema as schema
from crow.acp.agent import AcpAgent
from crow.acp.errors import invalid, unknown_method
from crow.acp.jsonrpc import Message, Sent
from crow.acp.mcp_servers import MESSAGE
from crow.acp.params import MismatchError, reader

Method = Callable[[Message], Awaitable[Sent | None]]
Route = tuple[Any, Method]
"""What a method's parameters are, and what answers it."""


class SetModelRequest(TypedDict):
    """The parameters of ``session/set_model``, which came before the option of that name."""

    sessionId: str
    modelId: str


class Routes:
    """The methods that there are; a `crow.acp.connection.Methods`."""

    def __init__(self, requests: dict[str, Route], notifications: dict[str, Route]) -> None:
        self._requests = requests
        self._notifications = notifications

    async def answer(self, method: str, params: Message) -> Sent | None:
        """Answer a request."""
        if method not in self._requests:
            raise unknown_method(method=method)
        try:
            return await self._call(self._requests[method], method, params)
        except MismatchError as error:
            raise invalid(str(error)) from error

    async def notice(self, method: str, params: Message) -> None:
        """Take a notification; one that makes no sense is ignored."""
        if method in self._notifications:
            with suppress(MismatchError):
                await self._call(self._notifications[method], method, params)

    async def _call(self, route: Route, method: str, given: Message) -> Sent | None:
        shape, function = route
        return await function(reader(shape)(given))


def shared(acp_agent: AcpAgent, words: ModuleType) -> dict[str, Route]:
    """The methods that are the same in every version, but for the ``words`` of its schema."""
    shelf, providers = acp_agent.shelf, acp_agent.providers
    return {
        "auth/status": (words.AuthStatusRequest, acp_agent.auth.status),
        "providers/list": (words.ListProvidersRequest, providers.list),
        "providers/set": (words.SetProviderRequest, providers.set),
        "providers/disable": (words.DisableProviderRequest, providers.disable),
        "session/new": (words.NewSessionRequest, acp_agent.new_session),
        "session/fork": (words.ForkSessionRequest, acp_agent.fork_session),
        "session/delete": (words.DeleteSessionRequest, shelf.delete),
        "session/set_title": (words.SetSessionTitleRequest, shelf.set_title),
        "session/archive": (words.ArchiveSessionRequest, shelf.archive),
        "session/unarchive": (words.UnarchiveSessionRequest, shelf.unarchive),
        "session/status": (words.SessionStatusRequest, shelf.status),
        "_session/rename": (words.SetSessionTitleRequest, shelf.set_title),
        "_session/steering": (words.PromptRequest, acp_agent.steer),
        "_session/take_pen": (words.SessionStatusRequest, acp_agent.take_pen),
    }


def routes(acp_agent: AcpAgent) -> Routes:
    """The methods of version 1."""
    requests: dict[str, Route] = {
        **shared(acp_agent, schema),
        "authenticate": (schema.AuthenticateRequest, acp_agent.auth.authenticate),
        "logout": (schema.LogoutRequest, acp_agent.auth.logout),
        "session/load": (schema.LoadSessionRequest, acp_agent.load_session),
        "session/resume": (schema.ResumeSessionRequest, acp_agent.resume_session),
        "session/list": (schema.ListSessionsRequest, acp_agent.shelf.page),
        "session/close": (schema.CloseSessionRequest, acp_agent.close_session),
        "session/prompt": (schema.PromptRequest, acp_agent.prompt),
        "session/set_mode": (schema.SetSessionModeRequest, acp_agent.set_mode),
        "session/set_config_option": (
            schema.SetSessionConfigOptionRequest,
            acp_agent.set_config_option,
        ),
        "session/set_model": (SetModelRequest, acp_agent.set_model),
    }
    notifications: dict[str, Route] = {
        MESSAGE: (schema.MessageMcpNotification, acp_agent.mcp.hear),
        "session/cancel": (schema.CancelNotification, acp_agent.cancel),
    }
    return Routes(requests, notifications)
