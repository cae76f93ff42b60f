"""The log of one open session: what is written of it, and what waits to be.

Nothing that waits is lost while the process lives: it is written as soon as that is possible again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from crow import Message, Session, Usage
from crow.dataclasses import entity, frozen
from crow.errors import SessionError
from crow.extensions.persistence.record import (
    TELLING,
    Entry,
    Kind,
    LastRequest,
    Row,
    dump,
    is_long,
    witnessed,
)
from crow.messages import Content, is_prompt, text_of

if TYPE_CHECKING:
    from crow.extensions.persistence.lease import Claim
    from crow.extensions.persistence.sql import Connection

Fields = dict[str, "str | int | None"]
TITLE_LENGTH = 60
ENOUGH = 2000
"""Characters that are looked at for a title: a prompt can have millions."""


@frozen
class Batch:
    """A batch of one transaction: rows, and what changed of session and states."""

    session_id: str
    rows: Sequence[Row]
    fields: Fields
    states: dict[str, str]
    used: bool = False
    first: bool = False

    @property
    def nothing(self) -> bool:
        """True where there is nothing to write."""
        return not (self.rows or self.fields or self.states or self.used or self.first)


class Timer:
    """Does something once, a moment later, in the event loop that is at work then."""

    __slots__ = ("_due",)

    def __init__(self) -> None:
        self._due: tuple[asyncio.AbstractEventLoop, asyncio.TimerHandle] | None = None

    @property
    def is_on(self) -> bool:
        """True until it has done so, or was stopped."""
        return self._due is not None

    def is_later(self, loop: asyncio.AbstractEventLoop, within: float) -> bool:
        """True where it is not on in this loop, or would do so later than that."""
        if self._due is None or self._due[0] is not loop:
            return True
        return self._due[1].when() > loop.time() + within

    def start(
        self, loop: asyncio.AbstractEventLoop, within: float, work: Callable[[], object]
    ) -> None:
        """Do something within so many seconds, unless stopped."""
        self.stop()
        self._due = loop, loop.call_later(within, work)

    def stop(self) -> None:
        """Do nothing."""
        due, self._due = self._due, None
        if due is not None:
            due[1].cancel()


@entity
class SessionLog:
    """The page of one session.

    ``count`` is how many messages of the current segment have a row, ``start`` the seq of the
    segment's first row; ``kept`` the first seq that is not in the tail. ``trouble`` says why
    nothing can be written; it is empty where all is well. ``error`` says that of a write that
    nobody waited for, and ``vanished`` that it found no session to write to. ``failure`` is the
    trouble that ended the present run. ``said`` is text that was shown since the last message,
    ``printed`` the end of what calls that run have shown. ``gone`` is a deleted session, ``timer``
    hands over what waits. ``reaching`` is the seq of a message that waits, and whose text has
    streamed. ``looks`` says that it is about to look at what hooks did. ``read`` is all that the
    database has, as it was read, until more is recorded.
    """

    session: Session
    lease: Claim | None = None
    seq: int = 0
    segment: int = 0
    start: int = 0
    count: int = 0
    messages: int = 0
    kept: int = 0
    stored: bool = False
    vanished: bool = False
    error: str = ""
    gone: bool = False
    timer: Timer = field(default_factory=Timer)
    trouble: str = ""
    failure: str = ""
    notices: list[str] = field(default_factory=list[str])
    said: list[str] = field(default_factory=list[str])
    printed: dict[str, str] = field(default_factory=dict[str, str])
    waiting: dict[int, Row] = field(default_factory=dict[int, Row])
    fields: Fields = field(default_factory=dict[str, "str | int | None"])
    states: dict[str, str] = field(default_factory=dict[str, str])
    results: dict[str, Content] = field(default_factory=dict[str, Content])
    usage: Usage | None = None
    anchor: int = 0
    traced: int = 0
    looks: bool = False
    sent: LastRequest = field(default_factory=LastRequest)
    reaching: int | None = None
    damaged: list[int] = field(default_factory=list[int])
    read: Sequence[Entry] = ()

    def record(self, kind: Kind, data: object) -> None:
        """Let a row wait."""
        self._wait(kind, dump(data))

    def _wait(self, kind: Kind, value: str | Message) -> None:
        self.read = ()
        self.waiting[self.seq] = Row(self.seq, self.segment, kind, value)
        self.seq += 1

    def hold(self, lease: Claim | None) -> None:
        """Have the right to write; where machines share the store, with a row that says whose."""
        self.lease = lease
        if lease is not None and lease.opened is not None:
            self.record("opened", lease.opened)

    def say(self, prompt: Message | None = None) -> None:
        """Let a row wait with what was shown and is in no message, such as a command's answer."""
        if self.said or prompt is not None:
            asked = {} if prompt is None else {"prompt": prompt}
            self.record("said", {**asked, "text": "".join(self.said)})
            self.said.clear()

    def witness(self) -> None:
        """Let a row wait with what hooks did since the last one."""
        trace = self.session.trace
        if trace.count > self.traced:
            did = witnessed(trace.since(self.traced, quiet=TELLING))
            self.traced = trace.count
            if did:
                self.record("hooks", {"records": did})

    def witness_soon(self) -> None:
        """`witness` in the next turn of the loop: while a command runs, or a model answers."""
        if not self.looks:
            self.looks = True
            asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        self.looks = False
        if not self.gone:
            self.witness()

    def waits_for(self, rows: Sequence[Row]) -> None:
        """Let rows wait that were on their way to the database when the process was killed."""
        self.waiting.update({row.seq: row for row in rows})
        self.messages += sum(row.kind in ("message", "answer") for row in rows)
        prompt = next(filter(is_prompt, self.session.messages), None)
        if prompt is not None and not self.session.title:
            self.session.title = title_of(text_of(prompt.get("content")))

    def unkept(self) -> list[Row]:
        """The rows that are neither in the tail nor in the database."""
        found = map(self.waiting.get, range(self.kept, self.seq))
        return [row for row in found if row is not None]

    def catch_up(self, summary: str = "", trigger: str = "") -> bool:
        """Let every message wait that has no row yet; True where a person's prompt is one."""
        session = self.session
        if session.segment != self.segment:
            self._turn_over(summary, trigger)
        new = session.messages[self.count :]
        for message in new:
            self._take(message)
        self.count = len(session.messages)
        self.messages += len(new)
        return any(map(is_prompt, new))

    def _turn_over(self, summary: str, trigger: str) -> None:
        """Begin a segment, with what it carries over from the one before."""
        self.segment = self.session.segment
        self.start = self.seq
        self.record("segment", {"summary": summary, "trigger": trigger})
        for message in self.session.messages:
            self.record("carried", message)
        self.count = len(self.session.messages)
        self.usage, self.anchor = None, 0

    def _take(self, message: Message) -> None:
        call_id = message.get("tool_call_id")
        if call_id in self.results and self.results[call_id] == message.get("content"):
            return self.record("answer", {"call_id": call_id})
        if message["role"] == "assistant":
            self.results.clear()
        if not self.session.title and is_prompt(message):
            self.session.title = title_of(text_of(message.get("content")))
        return self._wait("message", message if is_long(message) else dump(message))

    def batch(self, rows: list[Row] | None = None, *, used: bool = False) -> Batch:
        """All that is to be written; of the rows only these, where some are given."""
        fields, states = self._changed(self._all_fields()), self._changed_states()
        rows = list(self.waiting.values()) if rows is None else rows
        return Batch(self.session.id, rows, fields, states, used, not self.stored)

    def part(self, rows: list[Row]) -> Batch:
        """These rows, and what cannot be written without them."""
        return Batch(self.session.id, rows, self._changed(self._moving_fields()), {})

    def _changed(self, fields: Fields) -> Fields:
        known = self.fields
        return {name: value for name, value in fields.items() if known.get(name, ...) != value}

    def written(self, batch: Batch) -> None:
        """Let nothing of a batch wait any longer."""
        for row in batch.rows:
            self.waiting.pop(row.seq, None)
        self.fields.update(batch.fields)
        self.states.update(batch.states)
        self.stored = True
        if self.reaching is not None and self.reaching not in self.waiting:
            self.reach()

    def reach(self) -> None:
        """Let the tail forget what streamed: it is part of a record."""
        self.reaching = None
        if self.lease is not None:
            self.lease.reached()

    def knows(self, states: dict[str, str]) -> None:
        """Take the session as it is for what is stored."""
        self.stored = True
        self.fields = self._all_fields()
        self.states = dict(states)

    def begin_again(self) -> None:
        """Write what is in memory once more: the database has been replaced meanwhile."""
        self.seq = self.start = self.count = self.messages = self.kept = 0
        self.stored = self.vanished = False
        self.waiting.clear()
        self.fields.clear()
        self.states.clear()

    def _moving_fields(self) -> Fields:
        return {
            "segment": self.segment,
            "start": self.start,
            "messages": self.messages,
            "title": storable(self.session.title),
        }

    def _all_fields(self) -> Fields:
        session = self.session
        return {
            **self._moving_fields(),
            "cwd": storable(session.cwd),
            "directories": dump(session.directories),
            "model": None if session.model is None else storable(session.model),
            "mode": storable(session.mode),
            "options": dump(session.options),
            "usage": dump({"total": session.usage, "last": self.usage, "anchor": self.anchor}),
            "parent": session.parent.id if session.parent else None,
            "agent_type": session.agent_type,
        }

    def _changed_states(self) -> dict[str, str]:
        now = {name: dump(state) for name, state in self.session.state.items()}
        return {name: text for name, text in now.items() if self.states.get(name) != text}


def write(connection: Connection, batch: Batch) -> bool:
    """Write a batch; writing it again changes nothing. False where its session is not there.

    Raises `SessionError` for a new session whose id another has.
    """
    key = connection.execute("SELECT key FROM sessions WHERE id = ?", (batch.session_id,)).get
    if batch.first:
        if key is not None:
            raise SessionError(f"there is a session {batch.session_id} already: load it")
        key = _insert(connection, batch)
    elif key is None:
        return False
    elif batch.fields:
        _update(connection, key, batch.fields)
    insert(connection, key, batch.rows)
    if batch.states:
        connection.executemany(
            "INSERT INTO states (session, name, data) VALUES (?, ?, ?)"
            " ON CONFLICT (session, name) DO UPDATE SET data = excluded.data",
            [(key, name, text) for name, text in batch.states.items()],
        )
    if batch.used:
        touch(connection, key)
    return True


def insert(connection: Connection, key: Any, rows: Sequence[Row]) -> None:
    """Write rows that are not written yet."""
    connection.executemany(
        "INSERT INTO log (session, seq, segment, kind, at, data)"
        " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (session, seq) DO NOTHING",
        [(key, row.seq, row.segment, row.kind, row.at, row.data) for row in rows],
    )


def _insert(connection: Connection, batch: Batch) -> Any:
    fields = {"id": batch.session_id, "created": now(), "updated": now(), "touched": 0}
    fields |= batch.fields
    names, marks = ", ".join(fields), ", ".join("?" * len(fields))
    sql = f"INSERT INTO sessions ({names}) VALUES ({marks}) RETURNING key"  # noqa: S608
    key = connection.execute(sql, (*fields.values(),)).get
    touch(connection, key)
    return key


def _update(connection: Connection, key: Any, fields: Fields) -> None:
    names = ", ".join(f"{name} = ?" for name in ("updated", *fields))
    values = (now(), *fields.values(), key)
    connection.execute(f"UPDATE sessions SET {names} WHERE key = ?", values)  # noqa: S608


def touch(connection: Connection, key: Any) -> None:
    """Make a session the last used one, whatever the clock says."""
    connection.execute(
        "UPDATE sessions SET touched = 1 + (SELECT max(touched) FROM sessions)"
        " WHERE key = ? AND (touched = 0 OR touched < (SELECT max(touched) FROM sessions))",
        (key,),
    )


def title_of(text: str) -> str:
    """The first line that says something, at most sixty characters of it."""
    line = "".join(text.lstrip()[:ENOUGH].splitlines()[:1]).rstrip()
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rstrip() + "…"


def storable(text: str) -> str:
    """The text; what is no Unicode in it, such as a byte of a file's name, spelled out."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def now() -> str:
    """The time as ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
