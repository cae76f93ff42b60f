"""The database file: created, checked, brought to this version, and opened.

A damaged file is moved aside, never overwritten. WAL with ``synchronous=NORMAL``: what is
committed survives any death of the process; a power cut can take the last seconds, which the
files that the agent wrote meanwhile would not survive either, and never harms the file.

To look through a file for damage takes a start longer than all else, so whoever is the last to
close one notes how it looked then: who finds it so need not look, nor who opens it beside others.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from crow.errors import SessionError
from crow.extensions.persistence.lease import Lease, Tail, read_tail, user_of
from crow.extensions.persistence.schema import APPLICATION_ID, MIGRATIONS
from crow.extensions.persistence.session_log import Batch, write
from crow.extensions.persistence.writer import BUSY_TIMEOUT

if TYPE_CHECKING:
    from crow.extensions.persistence.backend import Hit
    from crow.extensions.persistence.sql import Connection, FileConnection

CHECK_SECONDS = 0.05
DOUBT = b"damaged"
"""What stands in the file of the lock after damage was met, until the file is looked through."""
NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "fuse.sshfs"})


class Database:
    """One database file: a `Backend`. ``notices`` is what a person should know of its opening."""

    begin = "BEGIN IMMEDIATE"
    writes_at_once = False
    attachments = None
    soon = 0.05

    def __init__(
        self,
        path: Path,
        *,
        synchronous: Literal["normal", "full"] = "normal",
        migrations: tuple[str, ...] = MIGRATIONS,
    ) -> None:
        self.path = path
        self.locks = path.with_name(path.name + ".locks")
        self.notices: list[str] = []
        self.synchronous = synchronous
        self.keeps_records = synchronous == "normal"
        self._migrations = migrations
        self._lock: int | None = None
        self._is_sound = False
        self._is_doubted = False
        self.patience = BUSY_TIMEOUT

    @property
    def name(self) -> str:
        """The file."""
        return str(self.path)

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """SQLite's."""
        import apsw

        return (apsw.Error,)

    def announce(self, address: str) -> bool:
        """False: the file is this machine's."""
        del address
        return False

    def exists(self) -> bool:
        """False before the first session."""
        return self.path.exists()

    def open(self) -> FileConnection:
        """The connection to write with. Raises `SessionError` in one line that says what to do."""
        import apsw

        try:
            self._create()
            alone = self._enter()
            try:
                connection = self._sound_and_current(alone)
            finally:
                self._share()
        except (OSError, apsw.Error, SessionError) as error:
            self.close()
            raise explain(error, self.path) from error
        self._is_sound, self._is_doubted = True, False
        return connection

    def read(self) -> FileConnection:
        """A connection that cannot write, for one question. The file must exist."""
        import apsw

        try:
            return self._readable(str(self.path), apsw.SQLITE_OPEN_READONLY)
        except apsw.CantOpenError:
            uri = f"{self.path.absolute().as_uri()}?immutable=1"
            return self._readable(uri, apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)

    def _readable(self, name: str, flags: int) -> FileConnection:

        connection = connect(name, flags)
        connection.set_busy_timeout(self.patience)
        version = _number(connection, "user_version")
        if version != len(self._migrations):
            connection.close()
            raise self._of_another_version(version)
        return connection

    def claim(self, session_id: str) -> Lease:
        """The lock of a session. Raises `SessionInUse`, ``OSError``."""
        return Lease.take(self.locks, session_id)

    def write(self, connection: Connection, batch: Batch, claim: object) -> bool:
        """Write a batch; the kernel takes no lock away from who lives."""
        return write(connection, batch)

    def tail(self, session_id: str) -> Tail:
        """What a session's lock file holds."""
        return read_tail(self.locks, session_id)

    def user_of(self, session_id: str) -> str:
        """Who holds a session's lock."""
        return user_of(self.locks, session_id)

    def index(self, connection: Connection) -> bool:
        """Index a part of what was said; True where more is left."""
        from crow.extensions.persistence.full_text import index

        return index(connection)

    def hits(
        self, connection: Connection, wanted: list[str], cwd: str | None, limit: int
    ) -> list[Hit]:
        """The records in which all words were said, the best first."""
        from crow.extensions.persistence.full_text import hits

        return hits(connection, wanted, cwd, limit)

    def delete(self, connection: Connection, session_id: str) -> bool:
        """Take a session away, and its words, which no key leads to."""
        from crow.extensions.persistence.full_text import forget, look_again
        from crow.extensions.persistence.session_rows import remove_session

        forget(connection, session_id)
        removed = remove_session(connection, session_id)
        look_again(connection)
        return removed

    def tidy(self, connection: Connection) -> None:
        """Bring the log of the file into it."""
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def explain(self, error: Exception) -> SessionError:
        """What went wrong with the file, in one line that says what to do."""
        import apsw

        if isinstance(error, apsw.CorruptError | apsw.NotADBError):
            self._doubt()
        return explain(error, self.path)

    def is_locked(self, error: BaseException) -> bool:
        """True where somebody else keeps a lock for too long."""
        import apsw

        return isinstance(error, apsw.BusyError | apsw.LockedError | BlockingIOError)

    def failed(self, connection: Connection | None, error: Exception) -> Connection | None:
        """The connection; none after damage, so that the file is looked at when opened again."""
        import apsw

        if connection is not None and isinstance(error, apsw.CorruptError | apsw.NotADBError):
            connection.close()
            return None
        return connection

    def _doubt(self) -> None:
        """Have the file looked through when it is opened next, whoever closes it last."""
        self._is_sound, self._is_doubted = False, True
        with suppress(OSError):
            noted = os.open(self.locks / ".database", os.O_RDWR | os.O_CREAT, 0o600)
            os.ftruncate(noted, 0)
            os.pwrite(noted, DOUBT, 0)
            os.close(noted)

    def again(self, error: Exception, waited: float) -> bool:
        """False: what a file refused once it refuses at once again."""
        return False

    def close(self) -> None:
        """Let others move or change the file; the last notes how it looks."""
        if self._lock is not None:
            if self._is_sound:
                with suppress(OSError):  # it is looked through then
                    fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if os.pread(self._lock, len(DOUBT), 0) != DOUBT:
                        os.pwrite(self._lock, self._look(), 0)
            self._is_sound = False
            os.close(self._lock)
            self._lock = None

    def _look(self) -> bytes:
        """What is different after every change of the file."""
        status = self.path.stat()
        times = status.st_mtime_ns, status.st_ctime_ns
        return f"{times} {status.st_size} {status.st_ino}".encode()

    def _is_known(self, alone: bool) -> bool:
        """True where the file is as its last user left it, or somebody else has it open."""
        assert self._lock is not None
        noted = os.pread(self._lock, 200, 0)
        is_doubted = self._is_doubted or noted == DOUBT
        if alone:
            os.ftruncate(self._lock, 0)  # until it is closed
        if is_doubted or not alone:
            return not is_doubted
        log = self.path.with_name(f"{self.path.name}-wal")
        return noted == self._look() and not log.exists()

    def _create(self) -> None:
        """Make folder, file and lock, for nobody's eyes but the owner's."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.locks.mkdir(exist_ok=True, mode=0o700)
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        if self._lock is None:
            self._lock = os.open(self.locks / ".database", os.O_RDWR | os.O_CREAT, 0o600)

    def _enter(self) -> bool:
        """True where no other process has the file open, and none can open it until `_share`."""
        assert self._lock is not None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._share()
            return False
        return True

    def _share(self) -> None:
        assert self._lock is not None
        deadline = time.monotonic() + self.patience / 1000
        while True:
            try:
                return fcntl.flock(self._lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def _sound_and_current(self, alone: bool) -> FileConnection:
        """A connection to a file that is whole, or to a new one with what of it could be read."""
        connection = self._sound(alone)
        if connection is not None:
            return self._current(connection, alone)
        if not alone:
            raise SessionError(f"{self.path} is damaged, and open in another process: close that")
        from crow.extensions.persistence.salvage import move_aside, salvaged

        aside = move_aside(self.path)
        self._create()
        connection = self._current(self._connect(), alone)
        saved = salvaged(aside, connection, connect)
        self.notices.append(
            f"{self.path} was damaged: it is kept as {aside}, and a new one begun with the "
            f"sessions that could be read whole ({saved})"
        )
        return connection

    def _sound(self, alone: bool) -> FileConnection | None:
        """A connection to the file; None where that is damaged."""
        import apsw

        known = self._is_known(alone)
        try:
            connection = self._connect()
            if known or is_sound(connection):
                return connection
            connection.close()
        except (apsw.CorruptError, apsw.NotADBError):
            pass
        return None

    def _connect(self) -> FileConnection:

        connection = connect(str(self.path))
        connection.set_busy_timeout(self.patience)
        remote = file_system(self.path) in NETWORK
        mode = connection.pragma("journal_mode", "truncate" if remote else "wal")
        safe = mode != "wal" or self.synchronous == "full"
        connection.pragma("synchronous", "full" if safe else "normal")
        connection.pragma("foreign_keys", True)
        connection.pragma("wal_autocheckpoint", 4000)
        return connection

    def _current(self, connection: FileConnection, alone: bool) -> FileConnection:
        """The same connection, its file brought to this version."""
        version = _number(connection, "user_version")
        if version == len(self._migrations):
            return connection
        try:
            if version > len(self._migrations) or not alone:
                raise self._of_another_version(version)
            self._check_owner(connection)
            if version:
                self._back_up(connection, version)
            self._migrate(connection, version)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_owner(self, connection: FileConnection) -> None:
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
        if tables and _number(connection, "application_id") != APPLICATION_ID:
            raise SessionError(f"{self.path} is a database of another program: use another db_path")

    def _of_another_version(self, version: int) -> SessionError:
        if version > len(self._migrations):
            return SessionError(
                f"{self.path} was written by a newer Crow (version {version} of the tables, this "
                f"one knows {len(self._migrations)}): update crow-acp, or use another db_path"
            )
        return SessionError(f"{self.path} is in use by an older Crow: close that first")

    def _back_up(self, connection: FileConnection, version: int) -> None:
        from crow.extensions.persistence.salvage import free_name

        copy = free_name(self.path, f"version-{version}")
        os.close(os.open(copy, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))

        target = connect(str(copy))
        with target.backup("main", connection, "main") as backup:
            backup.step()
        target.close()

    def _migrate(self, connection: FileConnection, version: int) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            for script in self._migrations[version:]:
                connection.execute(script).fetchall()
            connection.pragma("application_id", APPLICATION_ID)
            connection.pragma("user_version", len(self._migrations))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def connect(name: str, flags: int | None = None) -> FileConnection:
    """Open a database, new where there is none; ``flags`` are SQLite's. Raises ``apsw.Error``."""
    import apsw

    create = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    connection: Any = apsw.Connection(name, flags=create if flags is None else flags)
    return connection


def is_sound(connection: FileConnection) -> bool:
    """False for a damaged file. Looks for a twentieth of a second, however big the file is."""
    import apsw

    deadline = time.monotonic() + CHECK_SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > deadline, 1000)
    try:
        return connection.execute("PRAGMA quick_check(1)").get == "ok"
    except apsw.InterruptError:
        return True
    finally:
        connection.set_progress_handler(None)


def file_system(path: Path, mounts: Path = Path("/proc/mounts")) -> str:
    """The type of the file system that a path is on; empty where nobody knows."""
    try:
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    real, best, kind = path.resolve(), "", ""
    for line in lines:
        _, point, sort, *_ = line.split(" ")
        point = point.replace("\\040", " ")
        if len(point) >= len(best) and real.is_relative_to(point):
            best, kind = point, sort
    return kind


def explain(error: Exception, path: Path) -> SessionError:
    """What went wrong with the file, in one line that says what to do."""
    import apsw

    match error:
        case SessionError():
            return error
        case apsw.FullError():
            why = "the disk is full: free some space"
        case apsw.BusyError() | apsw.LockedError() | BlockingIOError():
            why = "another program keeps it locked: close that"
        case apsw.CorruptError() | apsw.NotADBError():
            why = "it is damaged: start again, and it is moved aside"
        case (
            apsw.ReadOnlyError()
            | apsw.CantOpenError()
            | apsw.PermissionsError()
            | PermissionError()
        ):
            why = "it cannot be written: look at its permissions, or use another db_path"
        case apsw.IOError():
            why = f"it could not be written ({error}): free some space, or use another db_path"
        case OSError():
            why = f"{error.strerror or error}: free some space, or use another db_path"
        case _:
            why = str(error) or type(error).__name__
    return SessionError(f"{path}: {why}")


def _number(connection: FileConnection, pragma: str) -> int:
    return int(connection.pragma(pragma))
