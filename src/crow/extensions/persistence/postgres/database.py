"""A PostgreSQL database as the place of sessions: opened, brought to this version, asked."""

from __future__ import annotations

import threading
import unicodedata
from functools import partial
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from crow.errors import SessionError
from crow.extensions.persistence.full_text import info
from crow.extensions.persistence.lease import Piece, Tail
from crow.extensions.persistence.postgres.append import append
from crow.extensions.persistence.postgres.attachments import PostgresAttachments, take_away
from crow.extensions.persistence.postgres.claim import (
    HELD,
    LEASE,
    Claims,
    RowClaim,
)
from crow.extensions.persistence.postgres.connection import (
    ConnectionLostError,
    PostgresConnection,
    explain,
)
from crow.extensions.persistence.postgres.schema import LOCK, MIGRATIONS
from crow.extensions.persistence.session_log import Batch, write
from crow.extensions.persistence.session_rows import remove_session

if TYPE_CHECKING:
    from collections.abc import Callable

    from crow.extensions.persistence.backend import Hit
    from crow.extensions.persistence.sql import Connection

T = TypeVar("T")
DEFAULTS: dict[str, Any] = {
    "connect_timeout": 5,
    "application_name": "crow",
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 8000,
}
LIMITS = {"statement_timeout": "15s", "lock_timeout": "3s"}
"""What holds for a connection, or where a pooler forgets that for each transaction."""
LOCAL = "".join(f"SET LOCAL {name} = '{value}'; " for name, value in LIMITS.items())
ASKED = "SELECT " + ", ".join(f"current_setting('{name}')" for name in LIMITS)
POOLED = "unsupported startup parameter"
TABLES = (
    "SELECT relname FROM pg_catalog.pg_class WHERE relname IN ('crow_version', 'sessions', 'log')"
    " AND relnamespace = current_schema()::regnamespace"
)
"""By a table, and not by ``to_regclass``, which remembers in a transaction what was not there."""
AWAY = 10.0
"""Seconds for which a database that was there is waited for: one that is started anew is back."""
IDLE = 4
"""Connections that wait for the next question."""


class Postgres:
    """One database, at an address ``postgresql://...``: a `Backend`.

    Its tables are made in the first schema of the role's search path.
    """

    writes_at_once = True
    soon = 5.0
    keeps_records = False
    path = None

    def __init__(
        self,
        address: str,
        *,
        lease: float = LEASE,
        migrations: tuple[str, ...] = MIGRATIONS,
    ) -> None:
        self.name = without_password(address)
        self.notices: list[str] = []
        self.patience = 0
        self._address = address
        self._migrations = migrations
        self._claims = Claims(self.open, self.read, lease)
        self._idle: list[PostgresConnection] = []
        self._lock = threading.Lock()
        self._is_current = False
        self._limits: str | None = None
        self.attachments = PostgresAttachments(self.ask)

    @property
    def begin(self) -> str:
        """What begins a transaction, limited in time."""
        return f"BEGIN; {self._limits or ''}"

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """None: its connections explain them."""
        return ()

    def announce(self, address: str) -> bool:
        """Tell whoever wants a session that is open here where to find this process."""
        self._claims.address = address
        return True

    def exists(self) -> bool:
        """True: only the database itself knows."""
        return True

    def open(self) -> PostgresConnection:
        """A connection of one's own. Raises `SessionError` in one line that says what to do."""
        raw = self._connect()
        connection = PostgresConnection(raw, self.name, limits=self._limits or "")
        if not self._is_current:
            try:
                self._bring_up(connection)
            except BaseException:
                connection.raw.close()
                raise
            self._is_current = True
        return connection

    def read(self) -> PostgresConnection:
        """A connection for one question, which had others before and after."""
        with self._lock:
            while self._idle:
                connection = self._idle.pop()
                if connection.is_usable and _answers(connection):
                    return connection
        return self._shared()

    def _shared(self) -> PostgresConnection:
        """A new connection that serves the next question, too."""
        opened = self.open()
        return PostgresConnection(opened.raw, self.name, self._take_back, limits=opened.limits)

    def ask(self, work: Callable[[PostgresConnection], T], /) -> T:
        """Do something on a connection, again where that is lost, for a while."""
        since = monotonic()
        while True:
            with self._lock:
                idle = self._idle.pop() if self._idle else None
            try:
                connection = idle or self._shared()
                try:
                    return work(connection)
                finally:
                    connection.close()
            except SessionError as error:
                if not self.again(error, waited := monotonic() - since):
                    raise
                sleep(min(waited / 4, 1))

    def _take_back(self, connection: PostgresConnection) -> None:
        with self._lock:
            if len(self._idle) < IDLE:
                return self._idle.append(connection)
        return connection.raw.close()

    def close(self) -> None:
        """Let go of claims and connections."""
        self._claims.close()
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.raw.close()

    def _connect(self) -> Any:
        try:
            from psycopg import ClientCursor, Error, connect
            from psycopg.conninfo import conninfo_to_dict
        except ImportError as error:
            raise SessionError(
                f"{self.name}: PostgreSQL needs an extra of Crow's: uv add 'crow-acp[postgres]'"
            ) from error
        try:
            given = DEFAULTS | conninfo_to_dict(self._address)
            return self._limited(
                partial(connect, autocommit=True, cursor_factory=ClientCursor), given
            )
        except (Error, ValueError) as error:
            raise explain(error, self.name, lost=True) from error

    def _limited(self, to: Callable[..., Any], given: dict[str, Any]) -> Any:
        """A connection that has limits, or one to a pooler, which wants to hear them each time."""
        from psycopg import Error

        if self._limits:
            return to(**given)
        try:
            raw = to(**limited(given))
        except Error as error:
            if POOLED not in str(error):
                raise
            raw, self._limits = to(**given), LOCAL
        if self._limits is None:
            self._limits = "" if raw.execute(ASKED).fetchone() == (*LIMITS.values(),) else LOCAL
        return raw

    def _bring_up(self, connection: PostgresConnection) -> None:
        """Bring the tables to this version; others that begin wait for it."""
        version = self._version(connection)
        if version < len(self._migrations):
            with connection.raw.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(?)", (LOCK,))
                version = self._version(connection)
                for script in self._migrations[version:]:
                    connection.execute(script)
                connection.execute("CREATE TABLE IF NOT EXISTS crow_version (number bigint)")
                connection.execute("DELETE FROM crow_version")
                connection.execute(
                    "INSERT INTO crow_version (number) VALUES (?)", (len(self._migrations),)
                )
        if version > len(self._migrations):
            raise SessionError(
                f"{self.name} was written by a newer Crow (version {version} of the tables, this "
                f"one knows {len(self._migrations)}): update crow-acp, or use another database"
            )

    def _version(self, connection: PostgresConnection) -> int:
        tables = {row[0] for row in connection.execute(TABLES)}
        ours = "crow_version" in tables
        if tables and not ours:
            raise SessionError(
                f"{self.name} has tables of another program: give Crow a schema of its own (CREATE "
                "SCHEMA crow, and ALTER ROLE ... SET search_path = crow)"
            )
        return int(connection.execute("SELECT number FROM crow_version").get or 0) if ours else 0

    def claim(self, session_id: str) -> RowClaim:
        """The right to write a session. Raises `SessionInUse`, `SessionError`."""
        connection = self.read()
        try:
            return self._claims.take(connection, session_id)
        finally:
            connection.close()

    def write(self, connection: Any, batch: Batch, claim: Any) -> bool:
        """Write a batch, where the claim is still held. False where its session is not there."""
        if claim is None:
            raise SessionError(f"{self.name}: the session {batch.session_id} could not be claimed")
        if not batch.first:
            return append(connection, batch, claim)
        claim.guard(connection)
        return write(connection, batch)

    def tail(self, session_id: str) -> Tail:
        """The text that streamed and is in no record yet."""
        import json

        connection = self.read()
        try:
            rows = connection.execute(
                "SELECT lines FROM pieces WHERE session = ? ORDER BY id", (session_id,)
            ).fetchall()
        finally:
            connection.close()
        lines = [line for row in rows for line in row[0].splitlines()]
        return Tail(pieces=[Piece(*json.loads(line)) for line in lines])

    def user_of(self, session_id: str) -> str:
        """Who holds a session's claim, as far as the database knows."""
        connection = self.read()
        try:
            _, who, left, _ = connection.execute(HELD, (session_id,)).fetchone() or ("", "", 0, "")
        finally:
            connection.close()
        return who if left else ""

    def index(self, connection: Connection) -> bool:
        """Nothing: the database indexes what it is told."""
        return False

    def hits(
        self, connection: Connection, wanted: list[str], cwd: str | None, limit: int
    ) -> list[Hit]:
        """The records in which all words were said, the best first."""
        query = query_of(wanted)
        if not query:
            return []
        rows = connection.execute(
            "SELECT s.id, s.cwd, s.title, s.updated, s.messages, s.archived,"
            " log.seq, log.kind, log.data FROM log JOIN sessions s ON s.key = log.session"
            " WHERE log.words @@ to_tsquery('pg_catalog.simple', ?1) AND (?2 IS NULL OR s.cwd = ?2)"
            " ORDER BY ts_rank(log.words, to_tsquery('pg_catalog.simple', ?1), 1) DESC, log.id DESC"
            " LIMIT ?3",
            (query, cwd, limit),
        )
        return [(info(row), *row[6:]) for row in rows]

    def delete(self, connection: Any, session_id: str) -> bool:
        """Take a session away, and what its claim and extensions kept."""
        take_away(connection, "session = ?", (session_id,))
        connection.execute("DELETE FROM pieces WHERE session = ?", (session_id,))
        connection.execute("DELETE FROM leases WHERE session = ?", (session_id,))
        return remove_session(connection, session_id)

    def tidy(self, connection: Connection) -> None:
        """Nothing: a commit is safe."""

    def explain(self, error: Exception) -> SessionError:
        """What went wrong with the database, in one line that says what to do."""
        return explain(error, self.name)

    def is_locked(self, error: BaseException) -> bool:
        """False: it is waited for as long as a statement may take."""
        return False

    def failed(self, connection: Connection | None, error: Exception) -> Connection | None:
        """The connection; none where it is lost."""
        if isinstance(connection, PostgresConnection) and not connection.is_usable:
            connection.raw.close()
            return None
        return connection

    def again(self, error: Exception, waited: float) -> bool:
        """True where the connection was lost: what was committed already changes nothing."""
        return isinstance(error, ConnectionLostError) and self._is_current and waited < AWAY


def limited(given: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a connection, with the limits among its options."""
    options = [given.get("options") or "", *(f"-c {name}={v}" for name, v in LIMITS.items())]
    return {**given, "options": " ".join(options).strip()}


def _answers(connection: PostgresConnection) -> bool:
    try:
        connection.execute("SELECT 1")
    except SessionError:
        return False
    return True


def query_of(words: list[str]) -> str:
    """Words as PostgreSQL searches for them: a word's parts in a row, the last as a beginning."""
    parts = [plain(word).split() for word in words]
    wanted = [" <-> ".join(part) for part in parts if part]
    return " & ".join(f"({each})" for each in [*wanted[:-1], f"{wanted[-1]}:*"]) if wanted else ""


def plain(text: str) -> str:
    """Letters and digits, without case and accents: as the table's function ``plain`` has it."""
    folded = unicodedata.normalize("NFKD", text).lower()
    bare = (c for c in folded if not "\u0300" <= c <= "\u036f")
    return "".join(c if c.isalnum() else " " for c in bare)


def without_password(address: str) -> str:
    """An address as it may be shown."""
    parts = urlsplit(address)
    place = parts.netloc.rpartition("@")
    who = place[0].partition(":")[0]
    return urlunsplit((parts.scheme, f"{who}@{place[2]}" if who else place[2], parts.path, "", ""))
