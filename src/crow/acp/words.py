"""Messages in the words of either version. For type checkers only, as the words themselves."""

from __future__ import annotations

from typing import TypeAlias

import crow.acp.outgoing as v1
import crow.acp.v2.outgoing as v2

Update: TypeAlias = v1.SessionUpdate | v2.SessionUpdate
CardUpdate: TypeAlias = v2.SessionUpdateToolCallUpdate
Card: TypeAlias = v1.SessionUpdateToolCall | v1.SessionUpdateToolCallUpdate | CardUpdate
PermissionRequest: TypeAlias = v1.RequestPermissionRequest | v2.RequestPermissionRequest
Choices: TypeAlias = v1.LoadSessionResponse | v2.ResumeSessionResponse
