"""Access to a session: for the one client there is, or whichever of many has it at the moment."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Protocol

from crow.acp.client import AcpClient
from crow.core.session import Session
from crow.core.support.validation import implements
from crow.ports.stores import LeasingStore

PEN = "pen"
"""The command that takes the pen."""


def is_taken_over(session: Session) -> bool:
    """True for an open session that another process has by now, as far as the store knows.

    This process had been stopped, or was cut off, for longer than it holds a session.
    """
    return implements(session.store, LeasingStore) and not session.store.holds(session)


class SessionAccess(Protocol):
    """The sessions of one client among those of an agent."""

    def opening(self, session_id: str) -> AbstractAsyncContextManager[Session | None]:
        """Be the only one that opens a session; the session, where it is to be had as it is."""
        ...

    def attach(self, session: Session, editor: AcpClient, *, again: bool = False) -> None:
        """Let an editor speak for a session; ``again``: after it was told all of it."""
        ...

    def has(self, session: Session, editor: AcpClient | None) -> bool:
        """True where the client may say something in a session, and is asked: it has the pen."""
        ...

    def is_taken(self, session: Session, editor: AcpClient | None) -> bool:
        """True where another client has the pen."""
        ...

    def refusal(self, session: Session, editor: AcpClient | None) -> str:
        """What a client is told that has not got the pen."""
        ...

    def take(self, session: Session, editor: AcpClient) -> bool:
        """Give a client the pen of a session that it is in; False where it is not there."""
        ...


class SoleClient:
    """The one client that an agent has: all sessions are its own."""

    def opening(self, session_id: str) -> Any:
        """Whatever is open is loaded like what is not."""
        del session_id
        return nullcontext()

    def attach(self, session: Session, editor: AcpClient, *, again: bool = False) -> None:
        """The editor is the session's client already."""
        del again
        editor.attach(session)

    def has(self, session: Session, editor: AcpClient | None) -> bool:
        """It has all."""
        del session, editor
        return True

    def is_taken(self, session: Session, editor: AcpClient | None) -> bool:
        """There is nobody else."""
        del session, editor
        return False

    def refusal(self, session: Session, editor: AcpClient | None) -> str:
        """There is nothing to tell."""
        del session, editor
        return ""

    def take(self, session: Session, editor: AcpClient) -> bool:
        """It has it."""
        del session, editor
        return True
