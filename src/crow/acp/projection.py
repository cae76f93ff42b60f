"""What a version of the protocol makes of the same inner events: one projection a version.

Whoever has the methods fits. No turn is decided here: sessions, prompts and questions are the
same for every version, and only the words differ.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from crow.core.frozen import frozen

if TYPE_CHECKING:
    from crow.acp.capabilities import ClientCapabilities
    from crow.acp.jsonrpc import Message
    from crow.core.agent import Agent
    from crow.core.events import Event
    from crow.core.ports import Option, PermissionRequest, Question
    from crow.core.session import Reply, Session


@frozen
class PermissionQuestion:
    """A question that is asked as a request for permission, and the updates around it."""

    params: Message
    opening: list[Message] = field(default_factory=list["Message"])
    answered: list[Message] = field(default_factory=list["Message"])
    unanswered: list[Message] = field(default_factory=list["Message"])


class Projection(Protocol):
    """One session in the words of one version, for one client."""

    @property
    def session(self) -> Session: ...

    def updates(self, event: Event) -> list[Message]:
        """What the client is told of an event; often one update, sometimes none."""
        ...

    def shown_id(self, call_id: str) -> str:
        """The id under which the client knows an open call."""
        ...

    def commands(self) -> Message:
        """The update that tells which slash commands there are."""
        ...

    def choices(self) -> Message:
        """The fields of an answer that opens a session: what can be chosen in it."""
        ...

    def options(self) -> list[Message]:
        """The complete list of options, as it is now."""
        ...

    def permission(self, request: PermissionRequest) -> Message:
        """The parameters of the request for permission to run a call."""
        ...

    def poll(self, question: Question, offered: list[Option], number: int) -> PermissionQuestion:
        """A question with these answers, as a request for permission."""
        ...

    def running(self) -> list[Message]:
        """Something is being worked on."""
        ...

    def blocked(self) -> list[Message]:
        """The work waits for the user."""
        ...

    def idle(self, reply: Reply | None) -> list[Message]:
        """Nothing is being worked on any more; the last reply, None where it was taken back."""
        ...


class Dialect(Protocol):
    """A version of the protocol."""

    @property
    def version(self) -> int: ...

    def capabilities(self, hello: Message) -> ClientCapabilities:
        """What the parameters of ``initialize`` say of the client."""
        ...

    def projection(
        self,
        agent: Agent,
        session: Session,
        capabilities: ClientCapabilities,
        *,
        live: bool = True,
        prefix: str = "",
        parent: str = "",
        told: int | None = None,
    ) -> Projection:
        """A session's; ``live``, or that of an earlier day. ``prefix`` is a sub-agent's.

        ``parent`` is the call that a sub-agent works for, as the client knows it.
        ``told`` is how many messages of the history are told of already, if not all of them.
        """
        ...
