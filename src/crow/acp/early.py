"""A session opened before the protocol's library is there to check the request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crow.acp.jsonrpc import Message, Refusal, as_object, failure, success

if TYPE_CHECKING:
    from crow.acp.agent import AcpAgent
    from crow.acp.transport import LibraryTransport


def is_plain_new_session(message: Message) -> bool:
    """True for a ``session/new`` that needs no schema to be understood."""
    params = as_object(message.get("params"))
    servers: Any = params.get("mcpServers", [])
    is_plain = isinstance(params.get("cwd"), str) and servers == []
    is_known = set(params) <= {"cwd", "mcpServers"}
    return message["method"] == "session/new" and "id" in message and is_plain and is_known


async def open_session(acp_agent: AcpAgent, request: Message, transport: LibraryTransport) -> None:
    """Answer such a request."""
    try:
        reply = success(request["id"], await acp_agent.new_session(request["params"]))
    except Refusal as refusal:
        reply = failure(request["id"], refusal.code, str(refusal), refusal.details)
    await transport.send(reply)
