"""From the method of a message to the agent: parameters in the schema's shape, errors as errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypedDict

import crow.acp.schema as schema
from crow.acp.agent import AcpAgent
from crow.acp.errors import invalid, unknown_method
from crow.acp.jsonrpc import Message
from crow.acp.params import MismatchError, reader

Method = Callable[[Message], Awaitable[Message | None]]
Route = tuple[type[Any], Method]
"""What a method's parameters are, and what answers it."""
OPENS_SESSION = ("session/new", "session/load", "session/resume", "session/fork")
Option = schema.SetSessionConfigOptionSelectRequest
Switch = schema.SetSessionConfigOptionBooleanRequest


class Nothing(TypedDict):
    """The parameters of a method that takes none."""


class OfSession(TypedDict):
    """The parameters of a method that takes a session's id."""

    sessionId: str


class SetTitle(TypedDict):
    """The parameters of ``session/set_title``, which the library does not know yet."""

    sessionId: str
    title: str


class Routes:
    """The methods that there are; a `crow.acp.connection.Methods`."""

    def __init__(self, requests: dict[str, Route], notifications: dict[str, Route]) -> None:
        self._requests = requests
        self._notifications = notifications

    async def answer(self, method: str, params: Message) -> Message | None:
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

    async def _call(self, route: Route, method: str, given: Message) -> Message | None:
        shape, function = route
        if shape is Option and given.get("type") == "boolean":
            shape = Switch
        if method in OPENS_SESSION:
            given = {"mcpServers": [], **given}
        return await function(reader(shape)(given))


def routes(acp_agent: AcpAgent) -> Routes:
    """The methods of version 1."""
    requests: dict[str, Route] = {
        "authenticate": (schema.AuthenticateRequest, acp_agent.auth.authenticate),
        "auth/status": (Nothing, acp_agent.auth.status),
        "logout": (schema.LogoutRequest, acp_agent.auth.logout),
        "session/new": (schema.NewSessionRequest, acp_agent.new_session),
        "session/load": (schema.LoadSessionRequest, acp_agent.load_session),
        "session/resume": (schema.ResumeSessionRequest, acp_agent.resume_session),
        "session/fork": (schema.ForkSessionRequest, acp_agent.fork_session),
        "session/list": (schema.ListSessionsRequest, acp_agent.list_sessions),
        "session/close": (schema.CloseSessionRequest, acp_agent.close_session),
        "session/delete": (schema.DeleteSessionRequest, acp_agent.delete_session),
        "session/set_title": (SetTitle, acp_agent.set_title),
        "session/status": (OfSession, acp_agent.session_status),
        "session/prompt": (schema.PromptRequest, acp_agent.prompt),
        "session/set_mode": (schema.SetSessionModeRequest, acp_agent.set_mode),
        "session/set_config_option": (Option, acp_agent.set_config_option),
        "_session/steering": (schema.PromptRequest, acp_agent.steer),
    }
    notifications: dict[str, Route] = {
        "session/cancel": (schema.CancelNotification, acp_agent.cancel),
    }
    return Routes(requests, notifications)
