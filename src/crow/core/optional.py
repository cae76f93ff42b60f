"""What a model or a store may have beside its port: protocols that ``isinstance`` knows.

Who has none of it works as well; a client then offers less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from crow.core.events import Event
    from crow.core.messages import Message
    from crow.core.ports import LLM
    from crow.core.session import Session

# models


@runtime_checkable
class NamedModels(Protocol):
    """A model that gives those of other names."""

    def named(self, model: str) -> LLM:
        """The model of a name. Raises `ModelError` where there is none."""
        ...


@runtime_checkable
class ListedModels(Protocol):
    """A model that knows under which name each is offered, whoever has written it how."""

    def listed_name(self, model: str | None) -> str:
        """The one name of a model, its own without one."""
        ...


@runtime_checkable
class ModelFinder(Protocol):
    """A model that can look for others to choose from."""

    async def find_models(self) -> bool:
        """Look for more; True where there are others now."""
        ...


@runtime_checkable
class KeyHolder(Protocol):
    """A model that remembers keys."""

    async def forget(self) -> None:
        """Look for keys anew: they have changed."""
        ...


def model_named(llm: LLM, name: str | None) -> LLM:
    """The model of a name, itself without one or where it knows no others. Raises `ModelError`."""
    return llm.named(name) if name is not None and isinstance(llm, NamedModels) else llm


# stores


@runtime_checkable
class ReplayStore(Protocol):
    """A store that tells sessions again as a client saw them."""

    async def replay(self, session_id: str, *, asked: bool = False) -> list[Event]:
        """A session as events; ``asked``: only the calls that its user was asked about."""
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
