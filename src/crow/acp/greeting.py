"""The answer to ``initialize``, made by hand: it must not wait for any library."""

from __future__ import annotations

from typing import Any

from crow._version import __version__
from crow.acp.handshake import DRAFT_VERSION, PROTOCOL_VERSION, AgentCapabilities, version_of
from crow.acp.jsonrpc import INVALID_PARAMS, INVALID_REQUEST, Message, as_object, failure, success


def greet(request: Message, offer: AgentCapabilities, before: Message | None = None) -> Message:
    """The answer to an ``initialize`` request; ``before`` are the parameters of an earlier one.

    Whatever version the client asks for, it is told the newest that is spoken here and not newer.
    A connection speaks one version from its first greeting on.
    """
    params: Any = request.get("params")
    version = params.get("protocolVersion") if params else None
    if isinstance(version, bool) or not isinstance(version, int | str):
        details = "protocolVersion: missing"
        return failure(request["id"], INVALID_PARAMS, "Invalid params", details=details)
    spoken = version_of(version, offer)
    if before and version_of(before.get("protocolVersion"), offer) != spoken:
        details = "this connection speaks another version already"
        return failure(request["id"], INVALID_REQUEST, "Invalid request", details=details)
    if spoken == DRAFT_VERSION:
        from crow.acp.v2.greeting import greet as greet_in_draft

        return greet_in_draft(request, offer)
    client = as_object(request["params"].get("clientCapabilities"))
    result = {
        "protocolVersion": PROTOCOL_VERSION,
        "agentCapabilities": offer.capabilities(),
        "agentInfo": {"name": "crow", "title": "Crow", "version": __version__},
        "authMethods": offer.methods(client),
        "_meta": {"steering": {"supported": True}},
    }
    return success(request["id"], result)
