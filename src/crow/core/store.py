"""The store of sessions: where they outlive their process, and what may lie beside them there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from crow.core.events import Event
from crow.core.messages import Message
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

    One more member is used where an object has it: ``attachments``, what extensions keep beside
    sessions for all machines that share the store; None where no others do.
    """

    def save(self, session: Session) -> None:
        """Write what is not written yet."""
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
class ReplayStore(Protocol):
    """A store that tells sessions again as a client saw them."""

    def replay(self, session_id: str, *, asked: bool = False) -> AsyncIterator[Event]:
        """A session as events; ``asked``: only the calls that its user was asked about.

        The first can be told while the rest is made. Raises `SessionError` with the first.
        """
        ...


@runtime_checkable
class SegmentStore(Protocol):
    """A store that keeps histories from before compactions."""

    async def segments(self, session_id: str) -> list[list[Message]]:
        """The histories of a session, oldest first."""
        ...


@runtime_checkable
class ForkStore(Protocol):
    """A store that copies sessions."""

    async def fork(self, session_id: str, *, before: int | None = None) -> str:
        """Copy a session, or its beginning; the id of the copy. Raises `SessionError`."""
        ...


@runtime_checkable
class ArchiveStore(Protocol):
    """A store that puts sessions away."""

    async def archive(self, session_id: str, *, archived: bool = True) -> None:
        """Put a session away, or take it back. Raises `SessionError`."""
        ...


@runtime_checkable
class TitleStore(Protocol):
    """A store that renames sessions which are not open."""

    async def rename(self, session_id: str, title: str) -> None:
        """Give a session another title. Raises `SessionError` where there is none of that id."""
        ...


@runtime_checkable
class KnowingStore(Protocol):
    """A store that says which sessions there are without opening them."""

    async def knows(self, session_id: str) -> bool:
        """True where there is a session of that id. Raises `SessionError`."""
        ...


@runtime_checkable
class LeasingStore(Protocol):
    """A store whose sessions another process can take over."""

    def holds(self, session: Session) -> bool:
        """False for an open session that another process has taken over."""
        ...


@runtime_checkable
class SharedStore(Protocol):
    """A store that several machines may share."""

    def announce(self, address: str) -> bool:
        """Say where others reach this process; False where the store is this machine's alone."""
        ...
