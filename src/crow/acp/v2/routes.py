"""From the method of a message to what answers it in version 2."""

from __future__ import annotations

from typing import TYPE_CHECKING

import crow.acp.v2.schema as schema
from crow.acp.mcp_servers import MESSAGE
from crow.acp.routes import Route, Routes, shared
from crow.acp.v2.methods import Methods

if TYPE_CHECKING:
    from crow.acp.agent import AcpAgent


def routes(acp_agent: AcpAgent) -> Routes:
    """The methods of version 2."""
    own = Methods(acp_agent)
    requests: dict[str, Route] = {
        **shared(acp_agent, schema),
        "auth/login": (schema.LoginAuthRequest, acp_agent.auth.authenticate),
        "auth/logout": (schema.LogoutAuthRequest, own.logout),
        "session/resume": (schema.ResumeSessionRequest, own.resume_session),
        "session/list": (schema.ListSessionsRequest, own.list_sessions),
        "session/close": (schema.CloseSessionRequest, own.close_session),
        "session/prompt": (schema.PromptRequest, own.prompt),
        "session/set_config_option": (schema.SetSessionConfigOptionRequest, own.set_config_option),
        "tool_call/cancel": (schema.CancelToolCallRequest, own.cancel_tool_call),
        "terminal/cancel": (schema.CancelTerminalRequest, own.cancel_terminal),
    }
    notifications: dict[str, Route] = {
        MESSAGE: (schema.MessageMcpNotification, acp_agent.mcp.hear),
        "session/cancel": (schema.CancelSessionNotification, own.cancel),
    }
    return Routes(requests, notifications)
