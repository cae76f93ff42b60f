"""Who is told of on one connection: a session, and the sub-agents that work for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from crow.acp.connection import Connection
from crow.acp.projection import Projection
from crow.acp.session_view import SessionView
from crow.acp.versions import Version
from crow.core.agent import Agent
from crow.core.session import Session
from crow.keys import SUBAGENT_CALLS

if TYPE_CHECKING:
    from crow.acp.subagents import Hired, Subagent


class Projections:
    """The projections of a session and of its sub-agents, in the words of the client's version.

    ``own`` is the session's; ``told`` is how many messages of its history will not be told of any
    more, if not all.
    """

    def __init__(
        self,
        agent: Agent,
        session: Session,
        connection: Connection,
        version: Version,
        told: int | None,
    ) -> None:
        self.session = session
        self._agent = agent
        self._connection = connection
        self._version = version
        self._subagents: dict[str, Projection] = {}
        self._shown: dict[str, Subagent] = {}
        self._gone: Mapping[str, Hired] = {}
        self.own = version.projection(
            SessionView(agent, session, connection.capabilities, told=told)
        )

    def of(self, session_id: str) -> Projection:
        """The session's own projection, or a sub-agent's."""
        if session_id == self.session.id:
            return self.own
        if subagent := self.subagent(session_id):
            return subagent.projection
        if session_id not in self._subagents:
            caller = self.session.cache.get(SUBAGENT_CALLS, {}).get(session_id)
            view = SessionView(
                self._agent,
                self.session,
                self._connection.capabilities,
                subagent=session_id,
                parent=self.own.shown_id(caller) if caller else "",
            )
            self._subagents[session_id] = self._version.projection(view)
        return self._subagents[session_id]

    def meet(self, gone: Mapping[str, Hired]) -> None:
        """Know of sub-agents that the client will be told of, and that may have ended meanwhile."""
        self._gone = gone

    def subagent(self, session_id: str) -> Subagent | None:
        """A sub-agent that is shown as a session of its own; None for what is not."""
        if session_id == self.session.id or not self._connection.capabilities.subagents:
            return None
        if session_id not in self._shown:
            from crow.acp.subagents import hired

            known = hired(self.session, session_id) or self._gone.get(session_id)
            if known is not None:
                self._shown[session_id] = self._made_known(*known)
        return self._shown.get(session_id)

    def _made_known(self, session: Session, call: str) -> Subagent:
        from crow.acp.subagents import Subagent

        assert session.parent is not None, "a sub-agent works for somebody"
        able, caller = self._connection.capabilities, session.parent.id
        view = SessionView(self._agent, session, able, caller=caller, told=0)
        shown = self.of(caller).shown_id(call) if call else ""
        return Subagent(session, self._version.projection(view), shown)
