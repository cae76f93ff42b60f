"""From the method of a message to what answers it in version 2."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

import crow.acp.v2.schema as schema
from crow.acp.drafts import (
    Archived,
    Prompted,
)
from crow.acp.mcp_servers import MESSAGE, Notice
from crow.acp.routes import Route, Routes, shared
from crow.acp.v2.methods import Methods

if TYPE_CHECKING:
    from crow.acp.agent import AcpAgent


class ListSessions(schema.ListSessionsRequest, Archived):
    """The parameters of ``session/list``."""


class NewSession(schema.NewSessionRequest, Prompted):
    """The parameters of ``session/new``."""


class ResumeSession(schema.ResumeSessionRequest, Prompted):
    """The parameters of ``session/resume``."""


class ForkSession(schema.ForkSessionRequest, Prompted):
    """The parameters of ``session/fork``."""


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
        **shared(acp_agent, schema.DeleteSessionRequest, schema.PromptRequest),
        "auth/login": (schema.LoginAuthRequest, acp_agent.auth.authenticate),
        "auth/logout": (schema.LogoutAuthRequest, own.logout),
        "session/new": (NewSession, acp_agent.new_session),
        "session/resume": (ResumeSession, own.resume_session),
        "session/fork": (ForkSession, acp_agent.fork_session),
        "session/list": (ListSessions, own.list_sessions),
        "session/close": (schema.CloseSessionRequest, own.close_session),
        "session/prompt": (schema.PromptRequest, own.prompt),
        "session/set_config_option": (SetOption, own.set_config_option),
        "tool_call/cancel": (CancelToolCall, own.cancel_tool_call),
        "terminal/cancel": (CancelTerminal, own.cancel_terminal),
    }
    notifications: dict[str, Route] = {
        MESSAGE: (Notice, acp_agent.mcp.hear),
        "session/cancel": (schema.CancelSessionNotification, own.cancel),
    }
    return Routes(requests, notifications)
