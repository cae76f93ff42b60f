"""A session as it was left, opened again: mended, and with the text that its user had seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crow import Message, Session
from crow.extensions.persistence.history import History
from crow.extensions.persistence.lease import Piece, Tail
from crow.extensions.persistence.record import together
from crow.extensions.persistence.session_log import SessionLog
from crow.extensions.persistence.session_rows import Stored, find_session, lenient, stored_entries

if TYPE_CHECKING:
    from crow.extensions.persistence.sql import Connection


def restore(connection: Connection, session_id: str, tail: Tail) -> SessionLog | None:
    """A log that knows what is stored, and its session, mended; None where there is none.

    ``tail`` is what a process that was killed left behind.
    """
    stored = find_session(connection, session_id)
    if stored is None:
        return None
    pieces = [piece for piece in tail.pieces if piece.segment == stored["segment"]]
    entries = stored_entries(connection, stored["key"], stored["start"])
    known = {entry.seq for entry in entries}
    rows = [r for r in tail.rows if r.seq not in known and r.segment == stored["segment"]]
    entries = together(entries, rows)
    history = History.of(entries, _outputs(pieces))
    log = SessionLog(
        _session(stored, history.messages),
        seq=entries[-1].seq + 1 if entries else stored["start"],
        segment=stored["segment"],
        start=stored["start"],
        count=len(history.messages) - len(history.closing),
        messages=stored["messages"],
    )
    log.read = () if stored["start"] else entries
    _report(log, stored["usage"])
    log.knows(stored["states"])
    log.waits_for(rows)
    last = next((each.kind for each in reversed(entries) if each.kind != "opened"), "")
    if last not in ("said", "ended"):
        _speak(log, pieces)
    if history.damaged:
        number = len(history.damaged)
        log.notices.append(f"damaged records of this session, passed over: {number}")
    log.damaged = history.damaged
    log.catch_up()
    return log


def _session(stored: Stored, messages: list[Message]) -> Session:
    return Session(
        id=stored["id"],
        cwd=stored["cwd"],
        directories=tuple(stored["directories"]),
        messages=messages,
        state={name: lenient(text, {}) for name, text in stored["states"].items()},
        agent_type=stored["agent_type"],
        title=stored["title"],
        model=stored["model"],
        mode=stored["mode"],
        options=stored["options"],
        segment=stored["segment"],
    )


def _report(log: SessionLog, usage: dict[str, Any]) -> None:
    """Count the tokens anew from where a provider last reported them."""
    session = log.session
    log.usage, log.anchor = usage.get("last"), usage.get("anchor", 0)
    if log.usage:
        messages = session.messages
        session.messages = messages[: log.anchor]
        session.report(log.usage)
        session.messages = messages
    session.usage = usage.get("total", {})


def _outputs(pieces: list[Piece]) -> dict[str, str]:
    """What running tools had printed, by call id."""
    shown: dict[str, str] = {}
    for piece in pieces:
        if piece.sort == "output":
            shown[str(piece.where)] = shown.get(str(piece.where), "") + piece.text
    return shown


def _speak(log: SessionLog, pieces: list[Piece]) -> None:
    """Make a message of the text that was shown and never became one."""
    lost = [p for p in pieces if isinstance(p.where, int) and p.where >= log.count]
    text = "".join(piece.text for piece in lost if piece.sort == "text")
    thought = "".join(piece.text for piece in lost if piece.sort == "thought")
    if text:
        message: Message = {"role": "assistant", "content": text}
        if thought:
            message["reasoning_content"] = thought
        log.session.messages.append(message)
    elif thought:
        log.record("said", {"thought": thought})
