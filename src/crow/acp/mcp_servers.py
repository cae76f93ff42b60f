"""MCP servers that a client has itself: their messages go over the client's own connection.

As the unstable schema in release 2.4 of ``@agentclientprotocol/sdk`` has it: every request of MCP
is one of ``mcp/message``, with an id of its own, and what the server says to it before its answer
comes as notifications of that id.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from crow.acp.connection import Connection
from crow.acp.errors import ClientError, invalid
from crow.acp.jsonrpc import INTERNAL_ERROR, Message, as_object
from crow.core.support.frozen import frozen

if TYPE_CHECKING:
    from crow.acp.outgoing import MessageMcpRequest

MESSAGE = "mcp/message"
REACHED = ("stdio", "http", "sse", "acp")
Hear = Callable[[str, Message | None], None]


class McpServers:
    """The servers of one client, and the requests to them that are on."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._on: dict[tuple[str, str], Hear] = {}
        self._count = 0

    def reached(self, servers: list[Message]) -> list[Message]:
        """The servers that a client names; to those that are its own there is a channel.

        Raises `Refusal` where one is reached in a way that nobody knows here.
        """
        for kind in (each.get("type", "stdio") for each in servers):
            if kind not in REACHED:
                raise invalid(f"mcpServers: there is no {kind!r}, only {', '.join(REACHED)}")
        return [
            {"name": each["name"], "channel": McpChannel(self, each["serverId"])}
            if each.get("type") == "acp"
            else each
            for each in servers
        ]

    async def hear(self, params: Message) -> None:
        """Pass on what a server says to a request; nothing where that is answered."""
        hear = self._on.get((params["serverId"], params["requestId"]))
        if hear is not None:
            hear(params["method"], params.get("params"))

    async def ask(self, server_id: str, method: str, params: Message, hear: Hear) -> Message:
        """Send a request of MCP; what came of it. Raises ``OSError``."""
        request_id, self._count = f"crow-{self._count}", self._count + 1
        asked: MessageMcpRequest = {
            "serverId": server_id,
            "requestId": request_id,
            "method": method,
            "params": params,
        }
        self._on[server_id, request_id] = hear
        try:
            answer = await self._connection.request(MESSAGE, asked)
        finally:
            del self._on[server_id, request_id]
        if "result" in answer:
            return {"result": answer["result"]}
        if "error" in answer:
            return {"error": as_object(answer["error"])}
        raise ClientError(INTERNAL_ERROR, f"{MESSAGE} was answered with neither result nor error")


@frozen
class McpChannel:
    """The way to one server of a client's."""

    servers: McpServers
    server_id: str

    async def ask(self, method: str, params: Message, hear: Hear) -> Message:
        """Send a request of MCP; its ``result`` or ``error``. Raises ``OSError``."""
        return await self.servers.ask(self.server_id, method, params, hear)
