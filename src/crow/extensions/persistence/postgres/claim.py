"""The right to write one session, as a row that its holder renews, and the thread that does so.

A claim has an epoch, which grows with every holder; whatever is written holds the row and looks for
its own epoch first, so that a runner that was thought dead can append nothing. Time is the
database's alone. Text that streams is brought there every quarter of a second: so much of it a
machine that dies takes along.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import socket
import threading
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crow.errors import SessionError, SessionInUse
from crow.extensions.persistence.lease import Piece
from crow.extensions.persistence.record import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from crow.extensions.persistence.postgres.connection import PostgresConnection
    from crow.extensions.persistence.sql import Value

logger = logging.getLogger("crow.persistence")

LEASE = 15.0
"""Seconds after which a session whose holder is not heard of can be had by others."""
PIECES = 0.25
PATIENCE = 3.0

TAKE = """
WITH before AS (SELECT who FROM leases WHERE session = ?1 AND owner <> '')
INSERT INTO leases (session, epoch, owner, who, until, address)
VALUES (?1, 1, ?2, ?3, clock_timestamp() + ?4 * interval '1 second', ?6)
ON CONFLICT (session) DO UPDATE SET
    epoch = leases.epoch + 1, owner = excluded.owner, who = excluded.who, until = excluded.until,
    address = excluded.address
WHERE leases.owner IN ('', ?5) OR leases.until < clock_timestamp() AND (
    leases.until > pg_postmaster_start_time()
    OR clock_timestamp() > pg_postmaster_start_time() + ?4 * interval '1 second'
)
RETURNING epoch, coalesce((SELECT who FROM before), '')
"""
"""A lease that ran out while the database was down can be renewed first by who holds it."""

HELD = (
    "SELECT owner, who, greatest(0, extract(epoch FROM until - clock_timestamp()))::bigint, address"
    " FROM leases WHERE session = ? AND owner <> ''"
)
GUARD = "SELECT 1 FROM leases WHERE session = ? AND epoch = ? FOR KEY SHARE"
"""Waits for whoever changes the epoch, and not for who renews: the epoch is part of a key."""

STREAM = (
    "INSERT INTO pieces (session, lines) SELECT told.session, told.lines"
    " FROM (VALUES {marks}) AS told (session, epoch, lines) JOIN leases USING (session, epoch)"
)
FORGET = (
    "DELETE FROM pieces USING (VALUES {marks}) AS told (session, epoch)"
    " JOIN leases USING (session, epoch) WHERE pieces.session = told.session"
)
RENEW = (
    "UPDATE leases SET until = clock_timestamp() + ? * interval '1 second'"
    " WHERE (session, epoch) IN ({marks}) RETURNING session"
)
RELEASE = (
    "UPDATE leases SET owner = '', who = '', until = '-infinity' WHERE session = ? AND epoch = ?"
)


class RowClaim:
    """A held claim; `release` it."""

    __slots__ = (
        "_claims",
        "_lines",
        "epoch",
        "is_dirty",
        "is_lost",
        "opened",
        "session_id",
        "streams",
    )

    def __init__(self, claims: Claims, session_id: str, epoch: int, opened: dict[str, Any]) -> None:
        self.session_id = session_id
        self.epoch = epoch
        self.opened = opened
        self.is_dirty = epoch > 1
        self.streams = False
        self.is_lost = False
        self._claims = claims
        self._lines: list[str] = []

    def stream(self, piece: Piece) -> None:
        """Keep streamed text, until `reached`; it is on its way a moment later."""
        self._lines.append(json.dumps([piece.segment, piece.where, piece.sort, piece.text]))
        self.streams = True
        self._claims.hurry()

    def keep(self, rows: list[Row]) -> None:
        """Refuse records: they are kept in the database or not at all. Raises ``OSError``."""
        if rows:
            raise OSError(errno.EIO, f"{len(rows)} records could not be brought there")

    def reached(self) -> None:
        """Say that the streamed text is part of a record now."""
        self.streams = False

    def settle(self) -> None:
        """Forget nothing: records are never kept here."""

    def clear(self) -> None:
        """Forget the streamed text, soon."""
        self._lines.clear()
        self.streams = False
        if self.is_dirty:
            self._claims.hurry()

    def guard(self, connection: PostgresConnection) -> None:
        """Hold it until the transaction ends. Raises `SessionInUse` where another does."""
        if connection.execute(GUARD, (self.session_id, self.epoch)).get is None:
            raise self.taken_over()

    def taken_over(self) -> SessionInUse:
        """Another has it by now; the error that says so."""
        self.is_lost = True
        return SessionInUse(lost(self.session_id))

    def release(self) -> None:
        """Let others have the session, now or as soon as the database is there again."""
        self._claims.release(self)

    def taken(self) -> list[str]:
        """What streamed since the last time, to be brought to the database."""
        lines, self._lines = self._lines, []
        return lines if self.streams else []

    def take_back(self, lines: list[str]) -> None:
        """Let that wait again."""
        self._lines[:0] = lines


class Claims:
    """All claims that a place holds, and their thread, which lives while there are any.

    ``address`` is where other machines reach this process, stored with what is claimed from now on.
    """

    def __init__(
        self,
        connect: Callable[[], PostgresConnection],
        borrow: Callable[[], PostgresConnection],
        lease: float = LEASE,
    ) -> None:
        self.lease = lease
        self.address = ""
        self._connect = connect
        self._borrow = borrow
        self._owner = f"{_life_of(os.getpid())} {uuid.uuid4().hex}"
        self._who = f"{socket.gethostname()}, process {os.getpid()}"
        self._held: dict[str, RowClaim] = {}
        self._released: list[RowClaim] = []
        self._lock = threading.Lock()
        self._news = threading.Event()
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self, connection: PostgresConnection, session_id: str) -> RowClaim:
        """Claim a session. Raises `SessionInUse` where another holds it."""
        dead = ""
        while True:
            who = (session_id, self._owner, self._who)
            values = (*who, self.lease, dead or self._owner + "!", self.address)
            taken = connection.execute(TAKE, values).fetchone()
            if taken is not None:
                epoch, lost = taken
                opened = {"who": self._who, "epoch": epoch, "lost": lost}
                return self._hold(RowClaim(self, session_id, epoch, opened))
            held = connection.execute(HELD, (session_id,)).fetchone()
            owner, holder, left, address = held or ("", "", 0, "")
            if not owner or (_is_dead(owner) and owner != dead):
                dead = owner
                continue
            raise SessionInUse(
                f"the session {session_id} is in use by {holder}: close it there, or fork it "
                f"(where that machine is gone, try again in {left + 1} seconds)",
                address=address,
                left=left + 1,
            )

    def _hold(self, claim: RowClaim) -> RowClaim:
        with self._lock:
            self._held[claim.session_id] = claim
            if self._thread is None:
                self._end.clear()
                self._thread = threading.Thread(target=self._live, name="crow-claims", daemon=True)
                self._thread.start()
        return claim

    def release(self, claim: RowClaim) -> None:
        """Let a claim go; by the thread, where the database is not there now."""
        with self._lock:
            if self._held.get(claim.session_id) is not claim:
                return
            del self._held[claim.session_id]
        try:
            connection = self._borrow()
            try:
                _let_go(connection, claim)
            finally:
                connection.close()
        except SessionError as error:
            logger.info("a claim waits to be let go: %s", error)
            with self._lock:
                self._released.append(claim)
            self._news.set()

    def hurry(self) -> None:
        """Bring what streamed to the database in a moment."""
        self._news.set()

    def close(self) -> None:
        """Let all claims go that were released, and end the thread."""
        with self._lock:
            thread, self._thread = self._thread, None
        self._end.set()
        self._news.set()
        if thread is not None:
            thread.join(PATIENCE)

    def _live(self) -> None:
        connection: PostgresConnection | None = None
        due = time.monotonic() + self.lease / 3
        while True:
            self._news.wait(max(due - time.monotonic(), 0))
            self._end.wait(PIECES)  # what streams meanwhile goes together
            self._news.clear()
            ending = self._end.is_set()
            try:
                connection = connection or self._connect()
                if time.monotonic() >= due:
                    self._renew(connection)
                    due = time.monotonic() + self.lease / 3
                self._bring(connection)
            except SessionError as error:
                logger.info("claims were not renewed: %s", error)
                connection = _closed(connection)
                due = min(due, time.monotonic() + 1)
            if ending:
                break
        _closed(connection)

    def _bring(self, connection: PostgresConnection) -> None:
        """Bring what streamed, forget what became a record, let go what was released."""
        with self._lock:
            held, released = list(self._held.values()), self._released
            self._released = []
        for number, claim in enumerate(released):
            try:
                _let_go(connection, claim)
            except SessionError:
                with self._lock:
                    self._released += released[number:]
                raise
        forget(connection, held)
        bring(connection, held)

    def _renew(self, connection: PostgresConnection) -> None:
        with self._lock:
            held = list(self._held.values())
        if not held:
            return
        marks = ", ".join(["(?, ?)"] * len(held))
        keys: list[Any] = [each for claim in held for each in (claim.session_id, claim.epoch)]
        renewed = connection.execute(RENEW.format(marks=marks), [self.lease, *keys])
        there = {row[0] for row in renewed}
        for claim in held:
            if claim.session_id not in there:
                logger.warning(str(claim.taken_over()))
                with self._lock:
                    self._held.pop(claim.session_id, None)


def bring(connection: PostgresConnection, claims: Iterable[RowClaim]) -> None:
    """Bring what streamed in some sessions to the database, in one statement."""
    told = [(claim, lines) for claim in claims if (lines := claim.taken())]
    if not told:
        return
    rows = [(claim.session_id, claim.epoch, "\n".join(lines)) for claim, lines in told]
    try:
        _for_all(connection, STREAM, rows)
    except SessionError:
        for claim, lines in told:
            claim.take_back(lines)
        raise
    for claim, _ in told:
        claim.is_dirty = True


def forget(connection: PostgresConnection, claims: Iterable[RowClaim]) -> None:
    """Forget what streamed and is a record by now."""
    over = [claim for claim in claims if claim.is_dirty and not claim.streams]
    if over:
        _for_all(connection, FORGET, [(claim.session_id, claim.epoch) for claim in over])
    for claim in over:
        claim.is_dirty = False


def _for_all(connection: PostgresConnection, sql: str, rows: Sequence[Sequence[Value]]) -> None:
    marks = ", ".join([f"({', '.join('?' * len(rows[0]))})"] * len(rows))
    connection.execute(sql.format(marks=marks), [value for row in rows for value in row])


def _let_go(connection: PostgresConnection, claim: RowClaim) -> None:
    bring(connection, [claim])
    forget(connection, [claim])
    connection.execute(RELEASE, (claim.session_id, claim.epoch))


def lost(session_id: str) -> str:
    """What to say of a session that another took over."""
    return (
        f"the session {session_id} was taken over by another process: go on there, or load it again"
    )


def _closed(connection: PostgresConnection | None) -> None:
    if connection is not None:
        connection.raw.close()


def _life_of(pid: int) -> str:
    """A process as the kernel knows it: machine start, name space, number, start time."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        space = str(Path("/proc/self/ns/pid").readlink())
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        started = rest[18]
    except (OSError, IndexError, ValueError):
        return f"- - {pid} -"
    if state in "ZX":  # nobody has asked yet how it ended
        return f"- - {pid} -"
    return f"{boot} {space} {pid} {started}"


def _is_dead(owner: str) -> bool:
    """True for a process of this machine that has ended; of another machine nobody knows."""
    boot, space, pid, started, _ = owner.split(" ")
    here = _life_of(os.getpid()).split(" ")
    return (
        started != "-" and here[:2] == [boot, space] and _life_of(int(pid)).split(" ")[3] != started
    )
