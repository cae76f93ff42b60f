"""One connection's part in the seats: which it has taken, and that it leaves all of them."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from crow.acp.client import AcpClient
from crow.acp.listen.session_pool import SessionPool
from crow.core.session import Session


class Shared:
    """The sessions of one of many clients; a `crow.acp.seating.Seating`."""

    def __init__(self, seats: SessionPool) -> None:
        self._seats = seats
        self._taken: list[tuple[str, AcpClient]] = []
        self._is_gone = False

    def opening(self, session_id: str) -> AbstractAsyncContextManager[Session | None]:
        """A session that is open goes on as it is."""
        return self._seats.opening(session_id)

    def attach(self, session: Session, editor: AcpClient, *, again: bool = False) -> None:
        """Expect an editor on the session's seat, unless its client is gone meanwhile."""
        seat = self._seats.of(session)
        if self._is_gone:
            editor.attach(session)
        elif editor.arrival is None:
            arrival = editor.arrival = seat.expect(editor, again=again)
            self._taken = [held for held in self._taken if self._seats.holds(*held)]
            self._taken.append((session.id, editor))
            editor.attach(session, arrival.told)

    def has(self, session: Session, editor: AcpClient | None) -> bool:
        """True where it sits there, or is about to."""
        return editor is not None and self._seats.holds(session.id, editor)

    def is_taken(self, session: Session, editor: AcpClient | None) -> bool:
        """True where somebody else sits there."""
        return self._seats.of(session).editor not in (None, editor)

    def leave(self) -> None:
        """The client is gone; its sessions go on without it."""
        self._is_gone = True
        for session_id, editor in self._taken:
            self._seats.leave(session_id, editor)
