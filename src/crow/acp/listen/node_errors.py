"""Errors on the way to another node, in words."""

from __future__ import annotations

from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

REASONS = {
    401: "it does not know this node: start all of them with the same token",
    403: "it is not known there under that name: start it with --node-url",
    503: "it has too many clients",
}


def is_failure(error: Exception) -> bool:
    """True for what can happen on any network."""
    return isinstance(error, OSError | WebSocketException | ValueError)


def explained(error: Exception) -> str:
    """Why a node was not reached, in a few words."""
    match error:
        case InvalidStatus():
            status = error.response.status_code
            return REASONS.get(status, f"it answers with HTTP status {status}")
        case TimeoutError():
            return "it does not answer"
        case ConnectionClosed():
            return "the node is gone"
        case _:
            return str(error) or type(error).__name__
