"""What a store of sessions may do beside what a `Store` must."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from crow.core.events import Event
from crow.core.messages import Message
from crow.core.session import Session
from crow.core.store import SessionInfo, Store


@runtime_checkable
class ReplayStore(Store, Protocol):
    """A store that tells sessions again as a client saw them."""

    def replay(self, session_id: str, *, asked: bool = False) -> AsyncIterator[Event]:
        """A session as events; ``asked``: only the calls that its user was asked about.

        The first can be told while the rest is made. Raises `SessionError` with the first.
        """
        ...


@runtime_checkable
class SegmentStore(Store, Protocol):
    """A store that keeps histories from before compactions."""

    async def segments(self, session_id: str) -> list[list[Message]]:
        """The histories of a session, oldest first."""
        ...


@runtime_checkable
class ForkStore(Store, Protocol):
    """A store that copies sessions."""

    async def fork(self, session_id: str, *, before: int | None = None) -> str:
        """Copy a session, or its beginning; the id of the copy. Raises `SessionError`."""
        ...


@runtime_checkable
class ArchiveStore(Store, Protocol):
    """A store that puts sessions away."""

    async def archive(self, session_id: str, *, archived: bool = True) -> None:
        """Put a session away, or take it back. Raises `SessionError`."""
        ...


@runtime_checkable
class TitleStore(Store, Protocol):
    """A store that renames sessions which are not open."""

    async def rename(self, session_id: str, title: str) -> None:
        """Give a session another title. Raises `SessionError` where there is none of that id."""
        ...


@runtime_checkable
class KnowingStore(Store, Protocol):
    """A store that says which sessions there are without opening them."""

    async def knows(self, session_id: str) -> bool:
        """True where there is a session of that id. Raises `SessionError`."""
        ...


@runtime_checkable
class LeasingStore(Store, Protocol):
    """A store whose sessions another process can take over."""

    def holds(self, session: Session) -> bool:
        """False for an open session that another process has taken over."""
        ...


@runtime_checkable
class SharedStore(Store, Protocol):
    """A store that several machines may share."""

    def announce(self, address: str) -> bool:
        """Say where others reach this process; False where the store is this machine's alone."""
        ...


class SessionPoint(Protocol):
    """A prompt (``prompt``), or the last thing that was answered to it (``answer``).

    A fork ``before`` this record ends there; None is the session's end. ``depth`` is how many forks
    lead here, ``is_here`` whether the session that was asked about has it, ``at`` when it was said,
    in seconds of the epoch.
    """

    @property
    def session_id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def before(self) -> int | None: ...
    @property
    def depth(self) -> int: ...
    @property
    def is_here(self) -> bool: ...
    @property
    def at(self) -> float: ...


@runtime_checkable
class TreeStore(Store, Protocol):
    """A store that knows what sessions and their forks have in common."""

    async def tree(self, session_id: str) -> Sequence[SessionPoint]:
        """What was said in a session and in all that it shares a past with."""
        ...


class SearchHit(Protocol):
    """A session that a text was found in; ``snippet`` is the place."""

    @property
    def session(self) -> SessionInfo: ...
    @property
    def snippet(self) -> str: ...
    @property
    def seq(self) -> int | None:
        """The number of the record; None where the title alone has the text."""
        ...


@runtime_checkable
class SearchStore(Store, Protocol):
    """A store that finds what was said."""

    async def search(
        self, text: str, *, cwd: str | None = None, limit: int = 20
    ) -> Sequence[SearchHit]:
        """Sessions where all words of a text were said in one message, the best first."""
        ...


class SessionOverview(Protocol):
    """What helps to choose a session, as people are shown it.

    ``prompt`` is the first of ``turns``; ``cost`` is in dollars. ``state`` is what extensions have
    stored, as JSON text by name. ``used_by`` is empty where nobody has it open. ``outcome`` is
    ``answered``, ``interrupted``, ``unanswered`` or empty.
    """

    @property
    def session(self) -> SessionInfo: ...
    @property
    def prompt(self) -> str: ...
    @property
    def turns(self) -> int: ...
    @property
    def cost(self) -> float | None: ...
    @property
    def state(self) -> Mapping[str, str]: ...
    @property
    def used_by(self) -> str: ...
    @property
    def snippet(self) -> str: ...
    @property
    def outcome(self) -> str: ...


@runtime_checkable
class OverviewStore(Store, Protocol):
    """A store from whose sessions a person can choose."""

    async def overview(
        self, text: str = "", *, cwd: str | None = None, limit: int = 50
    ) -> Sequence[SessionOverview]:
        """The sessions used last; with a text those where it was said."""
        ...


@runtime_checkable
class ExportStore(Store, Protocol):
    """A store that writes sessions out."""

    async def export(self, session_id: str) -> str:
        """A session as JSON Lines: itself, then its records. Raises `SessionError`."""
        ...


@runtime_checkable
class ImportStore(Store, Protocol):
    """A store that takes sessions in that came about elsewhere."""

    async def add(self, session_id: str, head: Any, rows: Iterable[Mapping[str, Any]]) -> None:
        """Store one, as `ExportStore.export` has it. Raises `SessionError`."""
        ...
