"""Whether a session works, waits for its user or does nothing, and why it stopped."""

from __future__ import annotations

from crow.acp.jsonrpc import AUTH_REQUIRED, INTERNAL_ERROR, Message
from crow.acp.turn import STOP_REASONS, details, is_unconfigured, tokens
from crow.core.session import Reply


class RunState:
    """What the client was told last; telling it twice is not needed."""

    def __init__(self, *, busy: bool) -> None:
        self._told = "running" if busy else "idle"

    def running(self) -> list[Message]:
        """Something is being worked on."""
        return self._to("running")

    def blocked(self) -> list[Message]:
        """The work waits for the user."""
        return self._to("requires_action")

    def idle(self, reply: Reply | None) -> list[Message]:
        """Nothing is being worked on any more; without a reply it was taken back before."""
        self._told = "idle"
        return [{**_state("idle"), **(stopped(reply) if reply else {"stopReason": "cancelled"})}]

    def snapshot(self) -> Message:
        """What the client was told last, once more."""
        return _state(self._told)

    def _to(self, state: str) -> list[Message]:
        if state == self._told:
            return []
        self._told = state
        return [_state(state)]


def stopped(reply: Reply) -> Message:
    """Why the work has ended."""
    if reply.stop_reason == "error":
        return {"stopReason": "error", "error": failure(reply), **_counted(reply)}
    known = reply.stop_reason in STOP_REASONS
    told: Message = {"stopReason": reply.stop_reason if known else "end_turn", **_counted(reply)}
    return {**told, "_meta": {"crow": details(reply)}} if reply.detail or not known else told


def failure(reply: Reply) -> Message:
    """What ended a run, as an error of the protocol; ``data`` says it for programs."""
    said = reply.detail or "the run failed"
    if is_unconfigured(reply):
        return {"code": AUTH_REQUIRED, "message": said}
    told = details(reply)
    data: Message = {"code": told.get("kind", "error"), "reason": said}
    if "retryAfterMs" in told:
        data["retryAfterMs"] = told["retryAfterMs"]
    return {"code": INTERNAL_ERROR, "message": said, "data": data}


def _counted(reply: Reply) -> Message:
    return {"usage": tokens(reply.usage)} if reply.usage else {}


def _state(name: str) -> Message:
    return {"sessionUpdate": "state_update", "state": name}
