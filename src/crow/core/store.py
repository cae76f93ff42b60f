"""The store of sessions: where they outlive their process, and what may lie beside them there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from crow.core.session import Session
from crow.core.support.frozen import frozen


@frozen
class Attachment:
    """A record beside a session. ``at`` is in seconds of the epoch, ``data`` is the owner's JSON.

    ``contents`` are the hashes (SHA-256, hexadecimal) that it names. ``id`` orders; it is the
    store's, and zero before.
    """

    session: str
    at: float
    data: str
    contents: tuple[str, ...] = ()
    id: int = 0


class Attachments(Protocol):
    """Records and contents of one owner and another; called in threads. Raises `SessionError`.

    A content is there once, by its hash, as long as a record names it. All goes with its session.
    """

    def add(self, owner: str, records: Sequence[Attachment], contents: Mapping[str, bytes]) -> None:
        """Keep records, and those of their contents that may not be there: all or nothing.

        Raises ``LookupError`` where a content that a record names is neither given nor there.
        """
        ...

    def of(self, owner: str, sessions: Sequence[str], since: float) -> list[Attachment]:
        """The records of some sessions since a time, in order."""
        ...

    def remove(self, owner: str, ids: Iterable[int]) -> None:
        """Take records away, and the contents that nobody names any more."""
        ...

    def clean_up(self, owner: str, before: float) -> None:
        """Take away what is older."""
        ...

    def content(self, mark: str) -> bytes | None:
        """A content by its hash; None where it is not kept."""
        ...

    def has(self, mark: str) -> bool:
        """True where a content is kept."""
        ...

    def size(self) -> int:
        """Bytes of all contents, about."""
        ...


@frozen
class SessionInfo:
    """A stored session, as a list shows it. ``updated`` is ISO 8601, UTC."""

    id: str
    cwd: str
    title: str
    updated: str
    messages: int
    archived: bool = False


class Store(Protocol):
    """A place where sessions outlive their process.

    It may do more: an `AttachmentStore`, and the protocols of `crow.ports.stores`.
    """

    def save(self, session: Session) -> None:
        """Write what is not written yet: what ``session.save()`` does, when a hook says so."""
        ...

    async def load(self, session_id: str) -> Session:
        """A stored session with a whole history, mended where it was interrupted.

        Raises `SessionError` where there is none of that id, or another process has it open.
        """
        ...

    async def sessions(
        self, *, cwd: str | None = None, cursor: str | None = None, limit: int = 50
    ) -> tuple[list[SessionInfo], str | None]:
        """Stored sessions, the last used first, and the cursor of the next page."""
        ...

    async def delete(self, session_id: str) -> bool:
        """Remove a session for good; False where there is none of that id."""
        ...


@runtime_checkable
class AttachmentStore(Store, Protocol):
    """A store beside whose sessions extensions keep something."""

    @property
    def attachments(self) -> Attachments | None:
        """Where; None where only this machine has the store."""
        ...
