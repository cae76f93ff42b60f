"""The answer to ``initialize`` in version 2, made by hand: it must not wait for any library."""

from __future__ import annotations

from typing import Any

from crow._version import __version__
from crow.acp.handshake import DRAFT_VERSION, AgentCapabilities
from crow.acp.jsonrpc import INVALID_PARAMS, Message, as_object, failure, success


def greet(request: Message, offer: AgentCapabilities) -> Message:
    """The answer to a client that speaks version 2; a newer one's parameters may be any."""
    params: Message = request["params"]
    info = as_object(params.get("info"))
    is_told = all(isinstance(info.get(name), str) for name in ("name", "version"))
    if params["protocolVersion"] == DRAFT_VERSION and not is_told:
        details = "info: its name and version are missing"
        return failure(request["id"], INVALID_PARAMS, "Invalid params", details=details)
    result: Message = {
        "protocolVersion": DRAFT_VERSION,
        "info": {"name": "crow", "title": "Crow", "version": __version__},
        "capabilities": {"session": capabilities(offer), "auth": {"status": {}}},
        "authMethods": [
            method(each) for each in offer.methods(as_object(params.get("capabilities")))
        ],
        "_meta": {"steering": {"supported": True}},
    }
    return success(request["id"], result)


def capabilities(offer: AgentCapabilities) -> Message:
    """What can be done with sessions beyond what every agent can."""
    prompt: dict[str, Any] = {"embeddedContext": {}}
    session: Message = {"prompt": prompt, "additionalDirectories": {}, "fork": {}, "title": {}}
    for kind in ("image", "audio"):
        if getattr(offer, kind):
            prompt[kind] = {}
    if offer.mcp:
        session["mcp"] = {"stdio": {}, "http": {}}
    if offer.store:
        session |= {"delete": {}, "status": {}}
    return session


def method(offered: Message) -> Message:
    """A way to authenticate; its id has another name here."""
    return {"methodId": offered["id"], **{k: v for k, v in offered.items() if k != "id"}}
