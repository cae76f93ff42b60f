"""Attachments of a stored session: records of extensions, and the contents that these name.

Where a `Store` has ``attachments``, every machine that has the store finds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from crow.core.frozen import frozen


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
