"""A session as one client is told of it."""

from __future__ import annotations

from collections.abc import Iterator

from crow.acp.capabilities import ClientCapabilities
from crow.core.agent import Agent
from crow.core.session import Session
from crow.core.support.frozen import frozen


@frozen
class SessionView:
    """A view of a session: what of it is told, to whom, and how.

    ``live``: it happens now, and not on an earlier day. ``subagent`` is the id of the sub-agent
    whose work in the session it is, and ``parent`` the call it works for, as the client knows that.
    ``caller`` is the session that one works for which is shown as a session of its own.
    ``told`` is how many messages of the history are told of already, if not all of them.
    """

    agent: Agent
    session: Session
    capabilities: ClientCapabilities
    live: bool = True
    subagent: str = ""
    parent: str = ""
    caller: str = ""
    told: int | None = None

    def used_ids(self) -> Iterator[str]:
        """The ids of the calls that the client knows of already.

        Those that run now are not among them: it gets to know them by the ids that they have.
        """
        if self.subagent or not self.live:
            return
        session, messages = self.session, self.session.messages
        on = {call.call.id for run in session.runs for call in run.open if not call.ended}
        last = next((m for m in reversed(messages) if m.get("tool_calls")), None) if on else None
        for message in messages[: self.told]:
            for call in message.get("tool_calls", ()):
                if message is not last or call["id"] not in on:
                    yield call["id"]
