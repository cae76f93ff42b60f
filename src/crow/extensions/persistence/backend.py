"""The backend that stores sessions: what an SQLite file and a PostgreSQL database share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from crow.errors import SessionError
from crow.extensions.persistence.lease import Claim, Tail
from crow.storage import Attachments, SessionInfo

if TYPE_CHECKING:
    from crow.extensions.persistence.session_log import Batch
    from crow.extensions.persistence.sql import Connection

Hit = tuple[SessionInfo, int, str, str]


class Backend(Protocol):
    """A database that holds sessions. ``notices`` is what a person should know of its opening.

    ``patience`` is for how many milliseconds a lock is waited for, and ``begin`` the statement that
    begins a transaction; ``writes_at_once`` is whether `write` needs none. ``keeps_records`` is
    whether a claim can keep a record faster than the database does. ``soon`` is for how many
    seconds what a turn ends with may wait, to go with what the next one begins with.
    """

    notices: list[str]
    patience: int
    writes_at_once: bool
    keeps_records: bool
    soon: float

    @property
    def begin(self) -> str: ...

    @property
    def name(self) -> str:
        """What a person calls it: the file, or the address without its password."""
        ...

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What the library of the database raises; see `explain`."""
        ...

    @property
    def path(self) -> Path | None:
        """Its file, where it is one."""
        ...

    def announce(self, address: str) -> bool:
        """Say where other machines reach this process; False where no other machine is told."""
        ...

    @property
    def attachments(self) -> Attachments | None:
        """What extensions keep beside sessions; None where only this machine has the place."""
        ...

    def exists(self) -> bool:
        """False where nothing can ever have been stored."""
        ...

    def open(self) -> Connection:
        """The connection to write with. Raises `SessionError` in one line that says what to do."""
        ...

    def close(self) -> None:
        """Let go of everything, once the writer has ended."""
        ...

    def read(self) -> Connection:
        """A connection for one question; closed, it may serve the next. Raises `SessionError`."""
        ...

    def explain(self, error: Exception) -> SessionError:
        """What went wrong with the database, in one line that says what to do."""
        ...

    def failed(self, connection: Connection | None, error: Exception) -> Connection | None:
        """The connection after an error; None where it is of no use any more."""
        ...

    def again(self, error: Exception, waited: float) -> bool:
        """True for an error after which the same work is tried again, on a new connection.

        ``waited`` is for how many seconds that has been so.
        """
        ...

    def is_locked(self, error: BaseException) -> bool:
        """True where somebody else keeps a lock for too long."""
        ...

    def claim(self, session_id: str) -> Claim:
        """The right to write a session. Raises `SessionInUse`, `SessionError`, ``OSError``."""
        ...

    def write(self, connection: Connection, batch: Batch, claim: Claim | None) -> bool:
        """Write a batch; writing it again changes nothing. False where its session is not there.

        Raises `SessionError` for a new session whose id another has, and where the claim is lost.
        """
        ...

    def tail(self, session_id: str) -> Tail:
        """What of a session is in no record yet, whoever writes it."""
        ...

    def user_of(self, session_id: str) -> str:
        """Who has a session open, this process included; empty where nobody has."""
        ...

    def index(self, connection: Connection) -> bool:
        """Index a part of what was said; True where more is left."""
        ...

    def hits(
        self, connection: Connection, wanted: list[str], cwd: str | None, limit: int
    ) -> list[Hit]:
        """The records in which all words were said, the best first: session, seq, kind, data."""
        ...

    def delete(self, connection: Connection, session_id: str) -> bool:
        """Take a session away with all that belongs to it; False where there is none."""
        ...

    def tidy(self, connection: Connection) -> None:
        """Put what is written where a power cut cannot reach it."""
        ...
