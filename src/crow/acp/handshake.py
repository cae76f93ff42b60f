"""The answer to ``initialize``, made by hand: it must not wait for any library."""

from __future__ import annotations

from typing import Any

from crow._version import __version__
from crow.acp.jsonrpc import INVALID_PARAMS, Message, failure, success

PROTOCOL_VERSION = 1

AUTH_METHOD: Message = {
    "type": "agent",
    "id": "environment",
    "name": "API key from the environment",
    "description": "Set CROW_API_KEY (or OPENAI_API_KEY) where the agent is started.",
}


class Offer:
    """What an agent can do that not every agent can.

    ``store``: sessions outlive the process. ``image``, ``audio``: what prompts may hold. ``mcp``:
    servers that the client names are used.
    """

    __slots__ = ("audio", "image", "mcp", "store")

    def __init__(
        self, *, store: bool = False, image: bool = True, audio: bool = False, mcp: bool = False
    ) -> None:
        self.store = store
        self.image = image
        self.audio = audio
        self.mcp = mcp

    def capabilities(self) -> Message:
        """The offer in the words of the protocol."""
        session: Message = {"close": {}, "fork": {}, "additionalDirectories": {}}
        if self.store:
            session |= {"list": {}, "resume": {}, "delete": {}}
        return {
            "loadSession": self.store,
            "promptCapabilities": {
                "image": self.image,
                "audio": self.audio,
                "embeddedContext": True,
            },
            "mcpCapabilities": {"http": self.mcp, "sse": self.mcp},
            "sessionCapabilities": session,
        }


def greet(request: Message, offer: Offer) -> Message:
    """The answer to an ``initialize`` request.

    Whatever version the client asks for, it is told the only one that is spoken here.
    """
    params: Any = request.get("params")
    version = params.get("protocolVersion") if params else None
    if isinstance(version, bool) or not isinstance(version, int | str):
        return failure(request["id"], INVALID_PARAMS, "Invalid params", "protocolVersion: missing")
    result = {
        "protocolVersion": PROTOCOL_VERSION,
        "agentCapabilities": offer.capabilities(),
        "agentInfo": {"name": "crow", "title": "Crow", "version": __version__},
        "authMethods": [AUTH_METHOD],
        "_meta": {"steering": {"supported": True}},
    }
    return success(request["id"], result)
