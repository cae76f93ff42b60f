"""From the method of a message to what answers it in version 2."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

import crow.acp.v2.schema as schema
from crow.acp.routes import Nothing, OfSession, Route, Routes, SetTitle
from crow.acp.v2.methods import Methods

if TYPE_CHECKING:
    from crow.acp.agent import AcpAgent


class CancelToolCall(TypedDict):
    """The parameters of ``tool_call/cancel``, which the library does not know yet."""

    sessionId: str
    toolCallId: str


class CancelTerminal(TypedDict):
    """The parameters of ``terminal/cancel``, which the library does not know yet."""

    sessionId: str
    terminalId: str


class SetOption(TypedDict):
    """The parameters of ``session/set_config_option``, whatever their type."""

    sessionId: str
    configId: str
    type: str
    value: str | bool


def routes(acp_agent: AcpAgent) -> Routes:
    """The methods of version 2."""
    own = Methods(acp_agent)
    requests: dict[str, Route] = {
        "auth/login": (schema.LoginAuthRequest, acp_agent.auth.authenticate),
        "auth/logout": (schema.LogoutAuthRequest, own.logout),
        "auth/status": (Nothing, acp_agent.auth.status),
        "session/new": (schema.NewSessionRequest, acp_agent.new_session),
        "session/resume": (schema.ResumeSessionRequest, own.resume_session),
        "session/fork": (schema.ForkSessionRequest, acp_agent.fork_session),
        "session/list": (schema.ListSessionsRequest, own.list_sessions),
        "session/close": (schema.CloseSessionRequest, own.close_session),
        "session/delete": (schema.DeleteSessionRequest, acp_agent.delete_session),
        "session/set_title": (SetTitle, acp_agent.set_title),
        "session/status": (OfSession, acp_agent.session_status),
        "session/prompt": (schema.PromptRequest, own.prompt),
        "session/set_config_option": (SetOption, own.set_config_option),
        "tool_call/cancel": (CancelToolCall, own.cancel_tool_call),
        "terminal/cancel": (CancelTerminal, own.cancel_terminal),
        "_session/steering": (schema.PromptRequest, acp_agent.steer),
    }
    notifications: dict[str, Route] = {
        "session/cancel": (schema.CancelSessionNotification, own.cancel),
    }
    return Routes(requests, notifications)
