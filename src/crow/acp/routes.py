"""From the method of a message to the agent: parameters in the schema's shape, errors as errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import crow.acp.schema as schema
from crow.acp.agent import AcpAgent
from crow.acp.drafts import (
    Archived,
    Nothing,
    OfProvider,
    OfSession,
    Prompted,
    SetModel,
    SetProvider,
    SetTitle,
)
from crow.acp.errors import invalid, unknown_method
from crow.acp.jsonrpc import Message, Sent
from crow.acp.mcp_servers import MESSAGE, Notice
from crow.acp.params import MismatchError, reader

Method = Callable[[Message], Awaitable[Sent | None]]
Route = tuple[type[Any], Method]
"""What a method's parameters are, and what answers it."""
OPENS_SESSION = ("session/new", "session/load", "session/resume", "session/fork")
Option = schema.SetSessionConfigOptionSelectRequest
Switch = schema.SetSessionConfigOptionBooleanRequest


class ListSessions(schema.ListSessionsRequest, Archived):
    """The parameters of ``session/list``."""


class NewSession(schema.NewSessionRequest, Prompted):
    """The parameters of ``session/new``."""


class LoadSession(schema.LoadSessionRequest, Prompted):
    """The parameters of ``session/load``."""


class ResumeSession(schema.ResumeSessionRequest, Prompted):
    """The parameters of ``session/resume``."""


class ForkSession(schema.ForkSessionRequest, Prompted):
    """The parameters of ``session/fork``."""


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
        if shape is Option and given.get("type") == "boolean":
            shape = Switch
        if method in OPENS_SESSION:
            given = {"mcpServers": [], **given}
        return await function(reader(shape)(given))


def shared(acp_agent: AcpAgent, delete: type[Any], prompt: type[Any]) -> dict[str, Route]:
    """The methods that are the same in every version, but for what a schema says of two of them."""
    shelf, providers = acp_agent.shelf, acp_agent.providers
    return {
        "auth/status": (Nothing, acp_agent.auth.status),
        "providers/list": (Nothing, providers.list),
        "providers/set": (SetProvider, providers.set),
        "providers/disable": (OfProvider, providers.disable),
        "session/delete": (delete, shelf.delete),
        "session/set_title": (SetTitle, shelf.set_title),
        "session/archive": (OfSession, shelf.archive),
        "session/unarchive": (OfSession, shelf.unarchive),
        "session/status": (OfSession, shelf.status),
        "_session/rename": (SetTitle, shelf.set_title),
        "_session/steering": (prompt, acp_agent.steer),
        "_session/take_pen": (OfSession, acp_agent.take_pen),
    }


def routes(acp_agent: AcpAgent) -> Routes:
    """The methods of version 1."""
    requests: dict[str, Route] = {
        **shared(acp_agent, schema.DeleteSessionRequest, schema.PromptRequest),
        "authenticate": (schema.AuthenticateRequest, acp_agent.auth.authenticate),
        "logout": (schema.LogoutRequest, acp_agent.auth.logout),
        "session/new": (NewSession, acp_agent.new_session),
        "session/load": (LoadSession, acp_agent.load_session),
        "session/resume": (ResumeSession, acp_agent.resume_session),
        "session/fork": (ForkSession, acp_agent.fork_session),
        "session/list": (ListSessions, acp_agent.shelf.page),
        "session/close": (schema.CloseSessionRequest, acp_agent.close_session),
        "session/prompt": (schema.PromptRequest, acp_agent.prompt),
        "session/set_mode": (schema.SetSessionModeRequest, acp_agent.set_mode),
        "session/set_config_option": (Option, acp_agent.set_config_option),
        "session/set_model": (SetModel, acp_agent.set_model),
    }
    notifications: dict[str, Route] = {
        MESSAGE: (Notice, acp_agent.mcp.hear),
        "session/cancel": (schema.CancelNotification, acp_agent.cancel),
    }
    return Routes(requests, notifications)
