"""Sub-agents as sessions of their own, for clients that show such, as the draft has them.

The session that a sub-agent works for is told that it is there and how far it is; what it says and
does is told under its own id. A client can watch it, and end what it does (``session/cancel``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crow.acp.jsonrpc import Message, as_object
from crow.acp.projection import Projection
from crow.core.events import (
    Event,
    Notice,
    PlanChanged,
    Retrying,
    RunEnded,
    TextDelta,
    ThoughtDelta,
    ToolEnded,
    ToolPending,
    ToolProgress,
    ToolStarted,
    UsageReported,
    UserMessage,
)
from crow.core.hooks.run_context import Reply
from crow.core.session import Session
from crow.keys import SUBAGENTS

if TYPE_CHECKING:
    import crow.acp.v2.outgoing as v2
    from crow.acp.words import Update

SHOWN = (
    *(UserMessage, TextDelta, ThoughtDelta, ToolPending, ToolStarted, ToolProgress, ToolEnded),
    *(PlanChanged, UsageReported, Notice, Retrying, RunEnded),
)
Told = tuple[str, "Update"]
"""An update, and the session that it is told of."""
Hired = tuple[Session, str]
"""The session of a sub-agent, and its caller's call that began it."""
NAME = "subagents"
"""Whose state in a session says which sub-agents came to no result yet, by their calls."""


def unfinished(session: Session) -> Message:
    """The sub-agents that came to no result yet, by the calls of the session that began them."""
    return as_object(session.state.get(NAME, {}).get("unfinished"))


def call_of(session: Session, subagent: str) -> str:
    """The call of a session that a sub-agent works for now; empty where there is none."""
    return next((call for call, each in unfinished(session).items() if each == subagent), "")


def hired(root: Session, subagent: str) -> Hired | None:
    """A sub-agent that works in a person's session now; None where there is none."""
    session = (SUBAGENTS.get(root) or {}).get(subagent)
    if session is None or session.parent is None:
        return None
    return session, call_of(session.parent, subagent)


class Subagent:
    """One sub-agent, as its client sees it. ``call`` is the shown id of its call."""

    def __init__(self, session: Session, projection: Projection, call: str) -> None:
        assert session.parent is not None, "a sub-agent works for somebody"
        self.projection = projection
        self._session = session
        self._caller = session.parent.id
        self._call = call
        self._is_known = False

    def updates_for(self, event: Event) -> list[Told]:
        """What the client is told of an event, the first time that there is somebody at all."""
        if not isinstance(event, SHOWN):
            return []
        told: list[Told] = [] if self._is_known else [(self._caller, self._announced())]
        self._is_known = True
        told += [(self._session.id, update) for update in self.projection.updates(event)]
        if isinstance(event, RunEnded):
            told.append((self._caller, self._ended(event)))
        return told

    def as_it_was(self, ended: RunEnded) -> Told:
        """The one update of a sub-agent that has come to its end before."""
        return self._caller, {**self._announced(), **self._ended(ended)}

    def _announced(self) -> v2.SessionUpdateSubagentUpdate:
        session, told = self._session, self._changed({"state": "running"})
        if session.title:
            told["title"] = session.title
        if session.agent_type:
            told["description"] = session.agent_type
        told["capabilities"] = {"cancel": {}}
        if self._call:
            told["_meta"] = {"claudeCode": {"parentToolUseId": self._call}}
        return told

    def _ended(self, event: RunEnded) -> v2.SessionUpdateSubagentUpdate:
        reply = Reply("", event.stop_reason, {}, self._session, event.detail)
        return {**self._changed(self.projection.state.over(reply)), "capabilities": None}

    def _changed(self, state: v2.StateUpdate) -> v2.SessionUpdateSubagentUpdate:
        return {
            "sessionUpdate": "subagent_update",
            "sessionId": self._session.id,
            "state": state,
        }
