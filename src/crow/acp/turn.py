"""The state of a turn and its stop reason, in the words of the protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, cast, get_args

from crow.acp.jsonrpc import AUTH_REQUIRED, INTERNAL_ERROR, Message
from crow.core.errors import ModelError
from crow.core.events import Notice
from crow.core.hooks.run_context import Reply
from crow.core.messages import Content, Usage, text_of

if TYPE_CHECKING:
    import crow.acp.v2.outgoing as v2
    from crow.acp.outgoing import PromptResponse
    from crow.acp.words import Update

Known = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]
State = Literal["idle", "running", "requires_action"]
STOP_REASONS: Mapping[str, Known] = {name: name for name in get_args(Known)}
"""The reasons that the protocol has."""
UNASKED = ("hook_stopped", "max_turn_requests", "max_tokens")
TITLE = 60
ENOUGH = 2000
"""Characters of a part that are looked at for a title: a prompt can have millions."""


def is_unconfigured(reply: Reply) -> bool:
    """True where there are no credentials to ask a model with."""
    return isinstance(reply.error, ModelError) and reply.error.kind == "unconfigured"


async def explain(reply: Reply) -> None:
    """Show the user why a run ended that did not end by itself."""
    session = reply.session
    if is_unconfigured(reply):
        return
    if reply.stop_reason == "error":
        notice = Notice(reply.detail or "the run failed", "error")
        await session.client.update(session.id, notice)
    elif reply.detail and reply.stop_reason in UNASKED:
        await session.client.update(session.id, Notice(reply.detail, "warning"))


def answer(reply: Reply) -> PromptResponse:
    """The result of ``session/prompt``.

    A failure ends the turn in the ordinary way: clients take an error here for a broken agent.
    """
    known = reply.stop_reason in STOP_REASONS
    result: PromptResponse = {"stopReason": STOP_REASONS.get(reply.stop_reason, "end_turn")}
    if reply.usage:
        result["usage"] = tokens(reply.usage)
    if reply.detail or not known:
        result["_meta"] = {"crow": details(reply)}
    return result


def over() -> Update:
    """The update that ends a run for a client that has not asked for it, or came in its middle."""
    return {"sessionUpdate": "session_info_update", "_meta": {"crow": {"running": False}}}


def details(reply: Reply) -> Message:
    """What the protocol's stop reasons cannot say."""
    said: Message = {"stopReason": reply.stop_reason, "detail": reply.detail}
    if isinstance(reply.error, ModelError):
        said["kind"] = reply.error.kind
        if reply.error.retry_after is not None:
            said["retryAfterMs"] = round(reply.error.retry_after * 1000)
    return said


def tokens(usage: Usage) -> v2.Usage:
    """The tokens of a turn."""
    counted: v2.Usage = {
        "totalTokens": usage.get("total_tokens", 0),
        "inputTokens": usage.get("input_tokens", 0),
        "outputTokens": usage.get("output_tokens", 0),
    }
    if "cached_tokens" in usage:
        counted["cachedReadTokens"] = usage["cached_tokens"]
    if "cache_write_tokens" in usage:
        counted["cachedWriteTokens"] = usage["cache_write_tokens"]
    if "reasoning_tokens" in usage:
        counted["thoughtTokens"] = usage["reasoning_tokens"]
    return counted


def title_of(prompt: Content) -> str:
    """A title for a session that has none: the first line of its first prompt."""
    parts = [prompt] if isinstance(prompt, str) else [text_of([part]) for part in prompt]
    begun = " ".join(part[:ENOUGH] for part in parts).lstrip()
    words = " ".join("".join(begun.splitlines()[:1]).split())
    return words if len(words) <= TITLE else words[: TITLE - 1].rstrip() + "…"


class RunState:
    """The state that the client was told last; telling it twice is not needed."""

    def __init__(self, *, busy: bool) -> None:
        self._told: State = "running" if busy else "idle"
        self._ended: Reply | None = None

    def running(self) -> list[Update]:
        """Something is being worked on."""
        return self._to("running")

    def blocked(self) -> list[Update]:
        """The work waits for the user."""
        return self._to("requires_action")

    def ended(self, reply: Reply | None) -> None:
        """Something was worked on, and more waits: what came of it is told when nothing waits."""
        self._ended = reply or self._ended

    def idle(self, reply: Reply | None) -> list[Update]:
        """Nothing is being worked on any more; without any reply it was all taken back before."""
        return [cast("Update", {"sessionUpdate": "state_update", **self.over(reply)})]

    def over(self, reply: Reply | None) -> v2.StateUpdate:
        """The state when nothing is worked on any more."""
        self._told = "idle"
        reply, self._ended = reply or self._ended, None
        return stopped(reply)

    def snapshot(self) -> Update:
        """What the client was told last, once more."""
        return _state(self._told)

    def _to(self, state: State) -> list[Update]:
        if state == self._told:
            return []
        self._told = state
        return [_state(state)]


def stopped(reply: Reply | None) -> v2.StateUpdate:
    """Why the work has ended; without any reply it was taken back."""
    if reply is None:
        return {"state": "idle", "stopReason": "cancelled"}
    if reply.stop_reason == "error":
        return {"state": "idle", "stopReason": "error", "error": failure(reply), **_counted(reply)}
    told: v2.StateUpdateIdleEndTurn = {
        "state": "idle",
        "stopReason": STOP_REASONS.get(reply.stop_reason, "end_turn"),
        **_counted(reply),
    }
    if reply.detail or reply.stop_reason not in STOP_REASONS:
        told["_meta"] = {"crow": details(reply)}
    return told


def failure(reply: Reply) -> v2.Error:
    """What ended a run, as an error of the protocol; ``data`` says it for programs."""
    said = reply.detail or "the run failed"
    if is_unconfigured(reply):
        return {"code": AUTH_REQUIRED, "message": said}
    told = details(reply)
    data: Message = {"code": told.get("kind", "error"), "reason": said}
    if "retryAfterMs" in told:
        data["retryAfterMs"] = told["retryAfterMs"]
    return {"code": INTERNAL_ERROR, "message": said, "data": data}


def _counted(reply: Reply) -> v2.IdleStateUpdateFields:
    return {"usage": tokens(reply.usage)} if reply.usage else {}


def _state(name: State) -> Update:
    """A state that says nothing more."""
    match name:
        case "idle":
            return {"sessionUpdate": "state_update", "state": "idle"}
        case "running":
            return {"sessionUpdate": "state_update", "state": "running"}
        case "requires_action":
            return {"sessionUpdate": "state_update", "state": "requires_action"}
