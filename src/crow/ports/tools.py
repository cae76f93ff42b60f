"""What a tool may have beside what a `Tool` must."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from crow.core.support.validation import implements


@runtime_checkable
class SessionTool(Protocol):
    """A tool that serves the session and not its work, such as a search for tools.

    A sub-agent has it whatever tools its definition names, and asks for none of its caller's.
    """

    @property
    def serves_session(self) -> bool: ...


def serves_session(tool: object) -> bool:
    """True for a tool that serves the session and not its work."""
    return implements(tool, SessionTool) and tool.serves_session


@runtime_checkable
class ChangedTool(Protocol):
    """A tool whose definition may be another one than when it was used last."""

    @property
    def change(self) -> str:
        """What has changed, in words that follow its name; empty for nothing."""
        ...


@runtime_checkable
class ServerTool(Protocol):
    """A tool of an MCP server."""

    @property
    def mcp_server(self) -> Mapping[str, Any]:
        """The server: its ``name``, and ``source``, where it was described."""
        ...

    @property
    def raw_name(self) -> str:
        """What the server calls it."""
        ...
